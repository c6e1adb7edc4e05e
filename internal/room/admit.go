package room

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/room/seats"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Admission admits clients to a room. Any goroutine may use it. In a room with delayed spectators
// it passes spectators to the admission of the spectator room, see [Admission.route].
type Admission struct {
	*core
	seats      seats.Seats
	penalties  penalties
	inbox      *transport.Inbox
	load       *Load
	scale      *TimeScale
	handled    *atomic.Pointer[[]byte] // see Messages
	spectators *Admission              // of the spectator room; nil: there is no such room

	moves    bool                             // clients may ask to move
	epoch    atomic.Pointer[loop.Epoch]       // of the newest tick; zero before the first tick
	refusing atomic.Pointer[transport.Closed] // set once the room admits no more clients
}

// open creates the inbox and the seats.
func (a *Admission) open() {
	a.inbox = transport.NewInbox(a.cfg.Arrivals, a.cfg.Stats)
	a.inbox.MaxJoins = maxEntering
	a.seats.Playing.Most, a.seats.Watching.Most = a.spec.seats()
	a.seats.Rouse = a.Sleep.rouse
	if p := a.cfg.Places; p != nil {
		a.seats.Places.Free = p.Free
	}
	a.epoch.Store(&loop.Epoch{})
}

// Admit admits or refuses a client with a compatible schema. The transport calls it on the
// connection's goroutine, after it has read the frames of the handshake and before it reads more
// bytes of the client.
func (a *Admission) Admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*transport.Admitted, error) {
	return a.route(hello).admit(ctx, hello, remote)
}

func (a *Admission) admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*transport.Admitted, error) {
	if why := a.refusing.Load(); why != nil {
		return nil, &transport.Refusal{Code: why.Code, Text: why.Text}
	}
	back := hello.GetResume()
	if at, conn, err := a.seats.Claim(back.GetToken(), back.GetAttempt()); at != nil || err != nil {
		if err != nil {
			return nil, err
		}
		if err := a.regainPlace(ctx, at); err != nil {
			return nil, err
		}
		return a.admission(&admitted{seat: at, who: a.seats.Join(at), addr: remote}, conn, hello), nil
	}
	shown, err := a.ticketOf(hello)
	if err != nil {
		return nil, err
	}
	join := &Join{
		Token: hello.GetToken(), Addr: remote, Params: hello.GetParams(),
		Minor: a.minor(hello), Spectator: hello.GetSpectate(),
	}
	var otherwise error
	var known *Identity
	if shown != nil {
		known = shown.Identity()
		defer a.seats.PutBack(shown) // No effect if the ticket was used for a seat.
		join.Ticket, join.Reserved, join.Spectator = true, shown.Params, shown.Spectator
	} else if otherwise, err = a.refuseNewcomer(hello); err != nil {
		return nil, err
	}
	if err := a.vet(ctx, join, known); err != nil {
		return nil, cmp.Or(otherwise, err)
	}
	q := &seats.Request{Who: join, Policy: a.spec.SameSubject, Ticket: shown, Otherwise: otherwise, NextID: a.cfg.Server.NextID}
	if err := a.claimPlace(ctx, q, known); err != nil {
		return nil, cmp.Or(otherwise, err)
	}
	at, conn, err := a.seats.Assign(q)
	if err != nil {
		a.freePlace(q)
		return nil, cmp.Or(otherwise, err)
	}
	return a.admission(&admitted{seat: at, join: join, who: join, evicts: q.Evicts, addr: remote}, conn, hello), nil
}

// vet checks the token of a newcomer, unless its player is known by its ticket. Then it asks the
// game, and applies penalties.
func (a *Admission) vet(ctx context.Context, join *Join, known *Identity) error {
	if known != nil {
		join.Subject, join.Claims = known.Subject, known.Claims
		join.Token = cmp.Or(known.Token, join.Token)
	} else if err := a.cfg.Identify(ctx, join); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.AdmitTimeout)
	defer cancel()
	if err := a.askToAdmit(ctx, join); err != nil {
		return a.Refusal(ctx, "OnAdmit", err, join.Addr)
	}
	return a.applyPenalty(ctx, join)
}

// knows reports whether a client has the secret of a seat, or a ticket, of this room.
func (a *Admission) knows(hello *netloopv1.Hello) bool {
	return a.seats.Knows(hello.GetResume().GetToken(), hello.GetTicket())
}

// ticketOf returns the ticket of a hello, or nil if the hello has no ticket or has the room's code
// instead. If the hello also has a resume secret, a room that is not private ignores an unknown
// ticket: the room may have been private before a crash of the server, and the ticket may be its
// code.
func (a *Admission) ticketOf(hello *netloopv1.Hello) (*seats.Ticket, error) {
	text := hello.GetTicket()
	if text == "" || a.spec.Code != "" && text == a.spec.Code {
		return nil, nil
	}
	t, err := a.seats.Show(text, a.clock.Now())
	if errors.Is(err, seats.ErrTicket) && !a.spec.Private && len(hello.GetResume().GetToken()) > 0 {
		return nil, nil
	}
	return t, err
}

// refusal is [Admission.Refusing] for this room alone, without its spectator room.
func (a *Admission) refusal() (code transport.Code, hear bool) {
	full, awaited := a.seats.Full(a.spec.SameSubject, a.clock.Now())
	switch {
	case a.load.Level() >= overload.Refusing:
		return transport.CodeBusy, awaited
	case full:
		return transport.CodeFull, true
	}
	return 0, true
}

// refuseNewcomer returns an error for a client without a ticket if the room is private, full or
// overloaded, or may have lost its name. If the client may be a player with a seat in the room,
// which only its token can show, err is nil, and otherwise is the error to return if it has no
// seat.
func (a *Admission) refuseNewcomer(hello *netloopv1.Hello) (otherwise, err error) {
	players, dropped := a.seats.Returning(a.spec.SameSubject)
	if a.spec.Private && hello.GetTicket() == "" {
		err = ErrUnknown(a.spec.Name) // The error must not reveal that the room exists.
		if players {
			return err, nil
		}
		return nil, err
	}
	if a.cfg.Hold != nil {
		if err := a.cfg.Hold(); err != nil && players {
			return err, nil
		} else if err != nil {
			return nil, err
		}
	}
	switch code, _ := a.refusal(); {
	case code == 0:
		return nil, nil
	case code == transport.CodeFull:
		return nil, seats.ErrFull(a.spec.MaxClients)
	case dropped:
		return errOverloaded, nil
	}
	return nil, errOverloaded
}

var errOverloaded = transport.Refuse(transport.CodeBusy, "the server is overloaded: try again later")

// ErrUnknown returns the error for a room that does not exist.
func ErrUnknown(name string) error {
	return transport.Refuse(transport.CodeRoomUnknown, "there is no room %q", name)
}

// Locked reports whether the room is locked.
func (a *Admission) Locked() bool { return a.seats.Locked() }

// AllowMoves lets clients ask to move to another room. Call it before the first tick.
func (a *Admission) AllowMoves() { a.moves = true }

// Seats returns the number of clients in the room or being admitted, without delayed spectators.
func (a *Admission) Seats() int {
	players, spectators, _ := a.seats.Count(a.clock.Now())
	return players + spectators
}

// Players returns the number of players' seats that are taken or reserved.
func (a *Admission) Players() int { return a.seats.Players(a.clock.Now()) }

// minor returns the minor version of the schema to use with a client: the smaller of the client's
// and the server's.
func (a *Admission) minor(hello *netloopv1.Hello) int {
	return int(min(uint32(a.schema.Minor), hello.GetMinor()))
}

// errAdmitGone is the error of an OnAdmit function that has ended its goroutine.
var errAdmitGone = errors.New("netloop: OnAdmit called runtime.Goexit")

// askToAdmit calls the game on another goroutine, so that a function that ends its goroutine does
// not end the goroutine of the connection.
func (a *Admission) askToAdmit(ctx context.Context, join *Join) error {
	answer := make(chan error, 1) // One sender, one value.
	go func() {
		err := errAdmitGone
		defer func() { answer <- err }()
		err = a.game.Admit(ctx, join)
	}()
	return <-answer
}

// admission creates a client's session config, its welcome, and the secret of its seat. conn is the
// number of the client's connection.
func (a *Admission) admission(e *admitted, conn uint64, hello *netloopv1.Hello) *transport.Admitted {
	resume := hello.GetResume()
	// A client that moves to another server returns by its secret if it is not accepted there.
	e.resumable = resume != nil && (a.spec.KeepDropped > 0 || a.spec.Travels && hello.GetTravels())
	e.travels = hello.GetTravels()
	if e.join == nil {
		e.received, e.kept = resume.GetReceived(), resume.GetKept()
	}
	var secret []byte
	var keep time.Duration
	if e.resumable {
		secret, keep = a.seats.Issue(e.seat), max(a.spec.KeepDropped, 0)
	}
	id := e.seat.ID
	epoch := a.epoch.Load()
	var scale *netloopv1.TimeScale
	if !a.scale.isDefault() {
		now := a.scale.message()
		scale = &netloopv1.TimeScale{Num: now.Num, Den: now.Den, Tick: now.Tick, ScaledNs: uint64(now.At), Fraction: now.Fraction}
	}
	return &transport.Admitted{
		Welcome: &netloopv1.Welcome{
			Protocol:    schema.ProtocolVersion,
			Minor:       uint32(a.minor(hello)),
			ClientId:    id,
			InstanceId:  a.cfg.Instance,
			Room:        a.spec.Name,
			TickRate:    &netloopv1.Rate{Num: a.spec.Rate.Num, Den: a.spec.Rate.Den},
			FixedRate:   &netloopv1.Rate{Num: a.spec.Fixed.Num, Den: a.spec.Fixed.Den},
			SendEvery:   uint32(a.spec.SendEvery),
			Epoch:       &netloopv1.Epoch{Tick: epoch.Tick, ServerNs: uint64(epoch.At)},
			ServerNs:    uint64(a.clock.Now()),
			Fingerprint: a.schema.Fingerprint(),
			TimeScale:   scale,
			ResumeToken: secret,
			KeepNs:      uint64(keep),
			Resumed:     e.join == nil,
			Spectator:   e.who.Spectator,
			Moves:       a.moves,
			Handles:     *a.handled.Load(),
		},
		Session: transport.SessionConfig{
			ID: id, Conn: conn, Inbox: a.inbox, Clock: a.clock.Now, Stats: a.cfg.Stats, Decode: a.schema.Decode,
			Size: a.schema.Size, Limits: a.cfg.LinkLimits,
			Moves: hello.GetMoves(), Travels: hello.GetTravels(), AskMoves: a.moves,
			Sent: a.sent.sender(id),
		},
		Who: e.who,
		Joined: func(session *transport.Session) {
			a.inbox.Push(transport.Arrival{Kind: transport.Joined, Session: session, At: a.clock.Now(), Decoded: e})
			a.seats.AddSession(session)
		},
	}
}

// End rejects all joins from now on, and reports this to the server. Any goroutine may call it.
func (a *Admission) End(code transport.Code, text string) {
	a.refuse(code, text)
	a.cfg.Server.EndAdmission(code, text)
}

func (a *Admission) refuse(code transport.Code, text string) {
	a.refusing.CompareAndSwap(nil, &transport.Closed{Code: code, Text: text})
}

// setEpoch stores the epoch of a tick, for welcomes.
func (a *Admission) setEpoch(e loop.Epoch) {
	if e != *a.epoch.Load() {
		a.epoch.Store(new(e))
	}
}

// Closing reports whether the room admits no more clients because it ends.
func (a *Admission) Closing() bool { return a.refusing.Load() != nil }

// applyPenalty refuses or delays a client with a penalty. While it waits, the client has no seat,
// and does not count as an unadmitted connection. The number of these is limited per address: a
// flooder would otherwise use up the connections of its neighbours.
func (a *Admission) applyPenalty(ctx context.Context, j *Join) error {
	wait, ok := a.penalties.turn(j.Holder(), a.clock.Now())
	if !ok {
		a.metrics.Drops.Add(1, "admission", "flood")
		return errFlood
	}
	if wait == 0 {
		return nil
	}
	transport.Approved(ctx)
	turn, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	<-turn.Done()
	if ctx.Err() != nil {
		return errFlood // The client has given up, or AdmitTimeout is over.
	}
	return nil
}

// penalise starts a penalty for a client that floods.
func (a *Admission) penalise(c *Client) {
	a.penalties.add(c.join.Holder().Key, a.clock.Now())
}

// admitted is the result of an admission, of a new or a resuming client, for the tick in which the
// client enters.
type admitted struct {
	seat *seats.Seat
	join *Join // nil: admitted by the secret of its seat, without a call of the game
	who  *Join // join, or the last join of the seat if join is nil
	// evicts is the id of the dropped client that loses its seat to this client; 0: none.
	evicts uint64
	// The data of the hello for a resume.
	resumable bool   // the client may resume later
	received  uint64 // number of the room's reliable messages that the client has received
	kept      bool   // the client still has its copies of the state
	travels   bool   // the client can move to another server
	addr      string
}

// The parts of package seats that callers of a room use.
type (
	Join        = seats.Join
	Reservation = seats.Reservation
	SameSubject = seats.SameSubject
)

// The policies for a second connection of a player.
const (
	TakeOver = seats.TakeOver
	Refuse   = seats.Refuse
	Allow    = seats.Allow
)

// ErrTicket is the error for every invalid ticket.
var ErrTicket = seats.ErrTicket

// TicketRoom returns the name of the room of a ticket, or false if the text is not a ticket.
func TicketRoom(ticket string) (string, bool) { return seats.TicketRoom(ticket) }
