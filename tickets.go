package netloop

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Ticket is a reserved seat of a room for the client that has it as its client.Config Ticket. A
// lobby reserves seats before it moves its players, and a party gets all seats or none. A ticket is
// a secret text of at most 279 bytes for one client: a party has a ticket for each member. A field
// of a message for a ticket needs the tag `net:"max=279"`: without it a string has at most 128
// bytes. An expired, used or unknown ticket, or a ticket for a room that has ended, is refused with
// [CodeTicket].
type Ticket string

// Reservation describes seats to reserve. It cannot be canceled: a seat without a client is free
// again after TTL.
type Reservation struct {
	// Seats is the number of seats, each with a ticket; zero means one.
	Seats int
	// TTL is the time for which the seats are reserved, in real time, also while the room is paused
	// or asleep; zero means 30 s, at most an hour.
	TTL time.Duration
	// Spectator reserves seats for spectators.
	Spectator bool
	// Params is data for the room's game, which reads it with [Join.Reservation]: a player's team,
	// for instance. All seats of a reservation have the same Params. They are stored as JSON, at
	// most 16 KiB, and are not sent to clients.
	Params any
}

// The defaults and bounds of a Reservation.
const (
	defaultTicketTTL = 30 * time.Second
	maxTicketTTL     = time.Hour
	maxTicketParams  = 16 << 10
)

// complete returns the reservation for the engine, with its defaults set and Params as JSON, or an
// error for a field out of its range.
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

// Reserve reserves seats of a room, all of them or none, and returns a ticket for each. The seats
// count as taken until the tickets have been used or have expired. For a full room the error is a
// [*Refusal] with [CodeFull], for an unknown room with [CodeRoomUnknown]. Seats of locked and
// private rooms can be reserved. In a cluster the room may be on another server; the error is a
// Refusal with [CodeBusy] if that does not answer within 5 s. Any goroutine may call it.
func (s *Server) Reserve(ctx context.Context, name string, v Reservation) ([]Ticket, error) {
	res, err := v.complete()
	if err != nil {
		return nil, err
	}
	texts, err := s.reserveHere(ctx, name, res)
	if refused := (*transport.Refusal)(nil); errors.As(err, &refused) && refused.Code == CodeRoomUnknown {
		texts, err = s.reserveElsewhere(ctx, name, res)
	}
	if err != nil {
		return nil, public(err)
	}
	all := make([]Ticket, len(texts))
	for i, text := range texts {
		all[i] = Ticket(text)
	}
	return all, nil
}

// reserveHere reserves seats of a room of this server.
func (s *Server) reserveHere(ctx context.Context, name string, res room.Reservation) ([]string, error) {
	r, ok := s.rooms.Find(ctx, name)
	if !ok {
		return nil, errNoRoom(name)
	}
	if err := r.hold(); err != nil {
		return nil, err
	}
	return r.e.Admission.Reserve(res)
}

// Reserve reserves seats of a room from a tick, as [Server.Reserve] does. The function then, which
// must not be nil, is called in EarlyUpdate of a later tick, as by [Go], with one ticket for each
// seat, or with an error. Reserve panics on a client.
func (t *Tick) Reserve(name string, v Reservation, then func(*Tick, []Ticket, error)) {
	s := t.server("Tick.Reserve").server
	Go(t, func(ctx context.Context) ([]Ticket, error) { return s.Reserve(ctx, name, v) }, then)
}

// public turns a refusal of the engine into the public type.
func public(err error) error {
	if refused := (*transport.Refusal)(nil); errors.As(err, &refused) {
		return &Refusal{refused.Code, refused.Text}
	}
	return err
}

// Lock makes the room refuse new clients without a ticket from now on or, if locked is false, admit
// them again. Clients in the room are kept, and may return after a lost connection.
func (r *Room) Lock(t *Tick, locked bool) {
	t.server("Room.Lock")
	r.e.Admission.Lock(locked)
}

// Locked reports whether the room is locked. Any goroutine may call it.
func (r *Room) Locked() bool { return r.e.Admission.Locked() }

// Move moves the client to the room of a ticket, over its existing connection: it leaves this room
// at the end of the tick, with [CodeMoved], and joins the other room as a new client with the same
// [Join] Subject and Claims. Messages that were sent before are still delivered. A client that has
// lost its connection moves after it has returned; a kicked client does not move. A client in
// another language that does not support moves is closed with CodeMoved, with the ticket as the
// text. If the other room refuses the client, its connection is closed with the reason.
//
// If the room is on another server of the cluster, the client plays on in this room until it has a
// connection to that server. Then it is dropped here (OnDrop), and it leaves with CodeMoved when
// that server has reported its arrival. If that server refuses it or vanishes, the client returns
// (OnResume); if neither happens within [RoomSpec] KeepDropped, and 10 s at least, it leaves with
// [CodeLost]. If the ticket is not valid, or that server does not answer, the client stays, and the
// log has the reason. A ticket is usable for the client of one player: a second Move to the same
// room needs the same ticket. In a cluster each Move takes one tick more.
func (c *Client) Move(t *Tick, ticket Ticket) {
	t.server("Client.Move")
	c.e.Move(string(ticket))
}

// AllowMoves lets the room's clients request a move to the room of a ticket, or to a private room
// by its code, with Move of package client. Such a client leaves this room as if the game had
// called [Client.Move]. Without AllowMoves a client that asks for a move violates the protocol.
// Call AllowMoves in [Game] Open.
func (r *Room) AllowMoves() {
	if r.opens("AllowMoves") {
		r.e.Admission.AllowMoves()
	}
}

// Spectator reports whether the client is a spectator. Inputs of a spectator are dropped, and so
// are its messages, except messages of methods with [ForSpectators]. It takes a seat of [RoomSpec]
// MaxSpectators. The game decides its visibility, as for other clients.
func (c *Client) Spectator() bool { return c.e.Join().Spectator }

// Reservation decodes the Params of the client's reservation into dst, a pointer, and reports
// whether the client has a ticket. Without [Reservation] Params dst is not changed.
func (j *Join) Reservation(dst any) (bool, error) {
	if len(j.reserved) == 0 {
		return j.Ticket, nil
	}
	if err := json.Unmarshal(j.reserved, dst); err != nil {
		return true, fmt.Errorf("netloop: the parameters of the reservation: %w", err)
	}
	return true, nil
}

// ticketRoom finds the room of a hello's ticket, or of a private room's code, which this server's
// rooms have first. If the room is on another server, the error sends the client there. A site (an
// IPv4 address, an IPv6 /56) with many invalid tickets is refused for some time.
func (s *Server) ticketRoom(ctx context.Context, hello *netloopv1.Hello, remote string) (*Room, error) {
	text := hello.GetTicket()
	if err := s.ticketsExhausted(remote); err != nil {
		return nil, err
	}
	find, key := s.rooms.FindCode, text
	if name, ok := room.TicketRoom(text); ok {
		find, key = s.rooms.Find, name
	}
	r, ok := find(ctx, key)
	if !ok {
		err := s.sendElsewhere(ctx, hello, true, remote)
		if refused := (*transport.Refusal)(nil); err != nil && (!errors.As(err, &refused) || refused.Code != CodeTicket) {
			return nil, err
		}
	}
	if !ok {
		return nil, s.unknownTicket(remote)
	}
	return r, nil
}

// ticketsExhausted returns the refusal of a site with too many invalid tickets, or nil.
func (s *Server) ticketsExhausted(remote string) error {
	if !s.invalidTickets.Exhausted(siteOf(remote), s.clock.Now()) {
		return nil
	}
	s.metrics.Drops.Add(1, "tickets", "site")
	return transport.Refuse(CodeBusy, "too many invalid tickets from your address, try again later")
}

// unknownTicket returns the refusal of a ticket or a code of no room, and counts it against its
// site.
func (s *Server) unknownTicket(remote string) error {
	if err := s.ticketsExhausted(remote); err != nil {
		return err
	}
	s.countBadTicket(remote)
	return room.ErrTicket
}

// countBadTicket counts a ticket that matched no room against its site.
func (s *Server) countBadTicket(remote string) {
	s.metrics.Drops.Add(1, "tickets", "unknown")
	s.invalidTickets.Allow(siteOf(remote), s.clock.Now())
}

// The code of a private room: six of these letters and digits have 30 bits.
const (
	codeLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	codeLen     = 6
	maxCode     = 64
)

// checkCode returns an error if the spec's Code is invalid.
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

// reserveName reserves the name of a room and, for a private room, its code, which it generates if
// the code is empty.
func (s *Server) reserveName(spec *RoomSpec) (*directory.Reservation[*Room], error) {
	if !spec.Private || spec.Code != "" {
		return s.rooms.Reserve(spec.Name, spec.Code)
	}
	for {
		var random [codeLen]byte
		rand.Read(random[:]) // Never fails.
		for i := range random {
			random[i] = codeLetters[int(random[i])%len(codeLetters)]
		}
		if s.codeElsewhere(string(random[:])) {
			continue
		}
		p, err := s.rooms.Reserve(spec.Name, string(random[:]))
		if errors.Is(err, directory.ErrCode) {
			continue
		}
		spec.Code = string(random[:])
		return p, err
	}
}

// codeElsewhere reports whether a room of another server has a code.
func (s *Server) codeElsewhere(code string) bool {
	if s.member == nil {
		return false
	}
	_, taken := s.member.WithCode(code)
	return taken
}

// siteOf returns the site of an address. Opened rooms and invalid tickets count against the site.
func siteOf(remote string) netip.Prefix {
	at, _ := netip.ParseAddrPort(remote) // Invalid addresses share the zero site.
	return endpoint.Site(at.Addr())
}
