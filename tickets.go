package netloop

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// Ticket is a seat of a room that waits for whoever has it, in client.Config Ticket: a lobby has
// places before it sends its players on, and a party gets all or none. It is a secret and a text of
// at most 279 bytes, good for one client: a party has one for each. A ticket that has expired, was
// used, or whose room has ended is refused with [CodeTicket], as one that never was.
type Ticket string

// Reservation says what seats are kept for.
type Reservation struct {
	// Seats is how many; zero means one. Each is a ticket.
	Seats int
	// TTL is for how long they are kept; zero means 30 s, at most an hour.
	TTL time.Duration
	// Spectator reserves seats to watch from.
	Spectator bool
	// Params is what the room's game reads of those who come, by [Join.Reservation]: which team
	// they are in, for instance. It is kept as JSON, and clients do not see it.
	Params any
}

// The defaults and bounds of a Reservation.
const (
	defaultTicketTTL = 30 * time.Second
	maxTicketTTL     = time.Hour
	maxTicketParams  = 16 << 10
)

// complete fills in the defaults.
func (v Reservation) complete() (room.Reservation, error) {
	res := room.Reservation{Seats: v.Seats, TTL: v.TTL, Spectator: v.Spectator}
	if res.Seats == 0 {
		res.Seats = 1
	}
	if res.TTL == 0 {
		res.TTL = defaultTicketTTL
	}
	if res.Seats < 0 || res.Seats > maxMaxClients {
		return res, fmt.Errorf("netloop: Reserve: %d seats: use 1 to %d", v.Seats, maxMaxClients)
	}
	if res.TTL < 0 || res.TTL > maxTicketTTL {
		return res, fmt.Errorf("netloop: Reserve: a TTL of %v: use 0 for %v, up to %v", v.TTL, defaultTicketTTL, maxTicketTTL)
	}
	if v.Params == nil {
		return res, nil
	}
	var err error
	if res.Params, err = json.Marshal(v.Params); err != nil {
		return res, fmt.Errorf("netloop: Reserve: Params: %w", err)
	}
	if len(res.Params) > maxTicketParams {
		return res, fmt.Errorf("netloop: Reserve: Params: %d bytes of JSON: use at most %d", len(res.Params), maxTicketParams)
	}
	return res, nil
}

// Reserve keeps seats of a room, all that are asked for or none, and returns a ticket for each.
// They count as taken until they have been used or their time is over. A room that is full refuses
// with [CodeFull], one that is not there with [CodeRoomUnknown]; locked and private rooms do
// not. Such an error is a [*Refusal]. Any goroutine may call it.
func (s *Server) Reserve(ctx context.Context, name string, v Reservation) ([]Ticket, error) {
	res, err := v.complete()
	if err != nil {
		return nil, err
	}
	r, ok := s.hall.Find(ctx, name)
	if !ok {
		return nil, public(errNoRoom(name))
	}
	texts, err := r.seats(res.Spectator).Reserve(res)
	if err != nil {
		return nil, public(err)
	}
	all := make([]Ticket, len(texts))
	for i, text := range texts {
		all[i] = Ticket(text)
	}
	return all, nil
}

// Reserve keeps seats of a room, as [Server.Reserve] does, from a tick: then is called in
// EarlyUpdate of a later tick with one ticket for each seat, or none and the error, as by [Go]. It
// panics on a client.
func Reserve(t *Tick, name string, v Reservation, then func(*Tick, []Ticket, error)) {
	s := t.server("Reserve").server
	Go(t, func(ctx context.Context) ([]Ticket, error) { return s.Reserve(ctx, name, v) }, then)
}

// public turns a refusal of the engine's into the one that a game sees.
func public(err error) error {
	if refused := (*transport.Refusal)(nil); errors.As(err, &refused) {
		return &Refusal{refused.Code, refused.Text}
	}
	return err
}

// Lock keeps everybody out of the room who has no ticket, from now on, or lets them in again. Who
// is there stays, and comes back after a break.
func (r *Room) Lock(t *Tick, locked bool) {
	t.server("Room.Lock")
	r.e.Lock(locked)
	if r.screening != nil {
		r.screening.Lock(locked)
	}
}

// Locked reports whether the room is locked. Any goroutine may call it.
func (r *Room) Locked() bool { return r.e.Locked() }

// Move lets the client go on to the room of a ticket, over the connection that it has: it leaves
// this room at the end of the tick, with [CodeMoved], and joins the other one as a newcomer whose
// [Join] Subject and Claims are known. What was sent before still reaches it. A client that has
// lost its connection moves when it is back; one that was kicked does not. A client in another
// language that cannot do so is closed with CodeMoved, and the ticket as the text. If the other
// room does not take it after all, it is closed with the reason.
func (c *Client) Move(t *Tick, ticket Ticket) {
	t.server("Client.Move")
	c.e.Move(string(ticket))
}

// AllowMoves lets the room's clients go on by themselves to the room of a ticket or of a private
// room's code, by Move of package client: such a client leaves this room as if the game had called
// [Client.Move]. Without it a client that asks for a move breaks the protocol. It belongs into
// [Game] Open.
func (r *Room) AllowMoves() {
	if r.opens("AllowMoves") {
		r.e.AllowMoves()
	}
}

// Spectator reports whether the client watches: its inputs are dropped, and its messages but for
// those of methods that are [ForSpectators], and it counts in [RoomSpec] MaxSpectators. What it
// sees is the game's to say, as for others.
func (c *Client) Spectator() bool { return c.e.Join().Spectator }

// Reservation decodes what the reservation says by which the client comes into dst, a pointer,
// and reports whether it has a ticket at all. Without [Reservation] Params dst stays as it is.
func (j *Join) Reservation(dst any) (bool, error) {
	if len(j.reserved) == 0 {
		return j.Ticket, nil
	}
	if err := json.Unmarshal(j.reserved, dst); err != nil {
		return true, fmt.Errorf("netloop: the parameters of the reservation: %w", err)
	}
	return true, nil
}

// ticketRoom finds the room that a ticket or a code opens. Who tries many that open nothing waits.
func (s *Server) ticketRoom(ctx context.Context, text, remote string) (*Room, error) {
	if s.guesses.Owes(siteOf(remote), s.clock.Now()) {
		s.metrics.Drops.Add(1, "tickets", "site")
		return nil, transport.Refuse(CodeBusy, "too many tickets from where you are opened nothing: try again later")
	}
	find, key := s.hall.FindCode, text
	if name, ok := room.TicketRoom(text); ok {
		find, key = s.hall.Find, name
	}
	r, ok := find(ctx, key)
	if !ok {
		s.chargeGuess(remote)
		return nil, room.ErrTicket
	}
	return r, nil
}

// chargeGuess lets a site pay for a ticket that opened nothing.
func (s *Server) chargeGuess(remote string) {
	s.metrics.Drops.Add(1, "tickets", "unknown")
	s.guesses.Pay(siteOf(remote), s.clock.Now())
}

// The code of a private room: six of these letters and digits are 30 bits.
const (
	codeLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	codeLen     = 6
	maxCode     = 64
)

// checkCode reports a code that none can be.
func (s *RoomSpec) checkCode() error {
	switch {
	case s.Code == "":
		return nil
	case !s.Private:
		return ConfigError("Room.Code", s.Code, "set Room.Private too, or leave it out")
	case len(s.Code) > maxCode || strings.Contains(s.Code, "@"):
		return ConfigError("Room.Code", s.Code, "use at most %d bytes, and no @", maxCode)
	}
	return nil
}

// place takes the name of a room, and the code of a private one, which it makes up if need be.
func (s *Server) place(spec *RoomSpec) (*directory.Place[*Room], error) {
	if !spec.Private || spec.Code != "" {
		return s.hall.Reserve(spec.Name, spec.Code)
	}
	for {
		var random [codeLen]byte
		rand.Read(random[:]) // Never fails.
		for i := range random {
			random[i] = codeLetters[int(random[i])%len(codeLetters)]
		}
		p, err := s.hall.Reserve(spec.Name, string(random[:]))
		if errors.Is(err, directory.ErrCode) {
			continue
		}
		spec.Code = string(random[:])
		return p, err
	}
}
