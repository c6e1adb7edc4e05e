package room

import (
	"cmp"
	"context"
	"errors"
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/room/seats"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Admit admits or refuses a client with a fitting schema. The transport calls it on the
// connection's own goroutine, after the frames of the handshake and before it reads any other byte
// of the client.
func (r *Room) Admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*transport.Admission, error) {
	if why := r.refusing.Load(); why != nil {
		return nil, &transport.Refusal{Code: why.Code, Text: why.Text}
	}
	back := hello.GetResume()
	if at, conn, err := r.seats.Claim(back.GetToken(), back.GetAttempt()); at != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return r.admission(&admitted{seat: at, who: r.seats.Join(at), addr: remote}, conn, hello), nil
	}
	shown, err := r.ticketOf(hello)
	if err != nil {
		return nil, err
	}
	join := &Join{
		Token: hello.GetToken(), Addr: remote, Params: hello.GetParams(),
		Minor: r.minor(hello), Spectator: hello.GetSpectate(),
	}
	var otherwise error
	if shown != nil {
		defer r.seats.PutBack(shown) // Unless it has become a seat.
		join.Ticket, join.Reserved, join.Spectator = true, shown.Params, shown.Spectator
	} else if otherwise, err = r.refuseNewcomer(hello); err != nil {
		return nil, err
	}
	if err := r.vet(ctx, join); err != nil {
		return nil, cmp.Or(otherwise, err)
	}
	q := &seats.Request{Who: join, Policy: r.spec.SameSubject, Ticket: shown, Otherwise: otherwise, NextID: r.cfg.Server.NextID}
	at, conn, err := r.seats.Assign(q)
	if err != nil {
		return nil, cmp.Or(otherwise, err)
	}
	return r.admission(&admitted{seat: at, join: join, who: join, evicts: q.Evicts, addr: remote}, conn, hello), nil
}

// vet checks the token of a newcomer, asks the game, and applies penalties.
func (r *Room) vet(ctx context.Context, join *Join) error {
	if err := r.cfg.Identify(ctx, join); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.AdmitTimeout)
	defer cancel()
	if err := r.askToAdmit(ctx, join); err != nil {
		return r.Refusal("OnAdmit", err, join.Addr)
	}
	return r.applyPenalty(ctx, join)
}

// Knows reports whether a client has the secret of a seat, or a ticket, of this very room. Any
// goroutine may call it.
func (r *Room) Knows(hello *netloopv1.Hello) bool {
	return r.seats.Knows(hello.GetResume().GetToken(), hello.GetTicket())
}

// ticketOf finds the ticket of a hello; nil if the hello has no ticket, or the room's code. A
// hello with a resume secret may have the code of a room that was private before a crash of the
// server: a room that is not private ignores an unknown ticket then.
func (r *Room) ticketOf(hello *netloopv1.Hello) (*seats.Ticket, error) {
	text := hello.GetTicket()
	if text == "" || r.spec.Code != "" && text == r.spec.Code {
		return nil, nil
	}
	t, err := r.seats.Show(text, r.clock.Now())
	if errors.Is(err, seats.ErrTicket) && !r.spec.Private && len(hello.GetResume().GetToken()) > 0 {
		return nil, nil
	}
	return t, err
}

// Refusing returns the code with which all newcomers are refused at present, and 0 if their
// admission decides. The transport also asks before it spends resources on a connection. hear
// reports that it still reads the hello of some of them, because they may have a seat here or are
// to be told the reason in words. Any goroutine may call it.
func (r *Room) Refusing() (code transport.Code, hear bool) {
	full, awaited := r.seats.Full(r.spec.SameSubject, r.clock.Now())
	switch {
	case r.Overload() >= overload.Refusing:
		return transport.CodeBusy, awaited
	case full:
		return transport.CodeFull, true
	}
	return 0, true
}

// refuseNewcomer refuses a client without a ticket, unless the room admits all clients. Only
// admission can determine whether a newcomer has a seat in the room as a player. If it may have
// one, refuseNewcomer returns no error, and in otherwise the error for a newcomer without a seat.
func (r *Room) refuseNewcomer(hello *netloopv1.Hello) (otherwise, err error) {
	players, dropped := r.seats.Returning(r.spec.SameSubject)
	if r.spec.Private && hello.GetTicket() == "" {
		err = ErrUnknown(r.spec.Name) // The error must not reveal that the room exists.
		if players {
			return err, nil
		}
		return nil, err
	}
	switch code, _ := r.Refusing(); {
	case code == 0:
		return nil, nil
	case code == transport.CodeFull:
		return nil, seats.ErrFull(r.spec.MaxClients)
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

// Reserve reserves seats and returns one ticket for each: for all seats, or none. Any goroutine
// may call it.
func (r *Room) Reserve(res Reservation) ([]string, error) {
	if why := r.refusing.Load(); why != nil {
		return nil, &transport.Refusal{Code: why.Code, Text: why.Text}
	}
	return r.seats.Reserve(res, r.spec.Name, r.clock.Now())
}

// Lock stops or permits the admission of clients with neither a ticket nor a seat. Any goroutine
// may call it and Locked.
func (r *Room) Lock(locked bool) { r.seats.Lock(locked) }

// Locked reports whether the room is locked.
func (r *Room) Locked() bool { return r.seats.Locked() }

// minor returns the minor version of the schema that is in force with a client.
func (r *Room) minor(hello *netloopv1.Hello) int {
	return int(min(uint32(r.schema.Minor), hello.GetMinor()))
}

// errAdmitGone is the error of an OnAdmit function that has ended its goroutine.
var errAdmitGone = errors.New("netloop: OnAdmit called runtime.Goexit")

// askToAdmit asks the game on a goroutine of its own, so that a function that ends its goroutine
// does not end the connection's.
func (r *Room) askToAdmit(ctx context.Context, join *Join) error {
	answer := make(chan error, 1) // One sender, one value.
	go func() {
		err := errAdmitGone
		defer func() { answer <- err }()
		err = r.game.Admit(ctx, join)
	}()
	return <-answer
}

// Refusal turns an error of an admission hook into the refusal that the client reads.
func (r *Room) Refusal(hook string, err error, remote string) error {
	code, text := r.reason(hook, err, &r.aside, "client", remote)
	if errors.Is(err, context.DeadlineExceeded) {
		code, text = transport.CodeTimeout, "admission took too long"
	}
	return &transport.Refusal{Code: code, Text: text}
}

// admission creates a client's session config, its welcome, and the secret of its seat. conn
// counts the client's connections.
func (r *Room) admission(e *admitted, conn uint64, hello *netloopv1.Hello) *transport.Admission {
	resume := hello.GetResume()
	e.resumable = resume != nil && r.spec.KeepDropped > 0
	if e.join == nil {
		e.received, e.kept = resume.GetReceived(), resume.GetKept()
	}
	var secret []byte
	var keep time.Duration
	if e.resumable {
		secret, keep = r.seats.Issue(e.seat), r.spec.KeepDropped
	}
	id := e.seat.ID
	epoch := r.epoch.Load()
	var scale *netloopv1.TimeScale
	if *r.scale.Load() != loop.Unscaled {
		now := r.timeScale()
		scale = &netloopv1.TimeScale{Num: now.Num, Den: now.Den, Tick: now.Tick, ScaledNs: uint64(now.At), Fraction: now.Fraction}
	}
	return &transport.Admission{
		Welcome: &netloopv1.Welcome{
			Protocol:    schema.ProtocolVersion,
			Minor:       uint32(r.minor(hello)),
			ClientId:    id,
			InstanceId:  r.cfg.Instance,
			Room:        r.spec.Name,
			TickRate:    &netloopv1.Rate{Num: r.spec.Rate.Num, Den: r.spec.Rate.Den},
			FixedRate:   &netloopv1.Rate{Num: r.spec.Fixed.Num, Den: r.spec.Fixed.Den},
			SendEvery:   uint32(r.spec.SendEvery),
			Epoch:       &netloopv1.Epoch{Tick: epoch.Tick, ServerNs: uint64(epoch.At)},
			ServerNs:    uint64(r.clock.Now()),
			Fingerprint: r.schema.Fingerprint(),
			TimeScale:   scale,
			ResumeToken: secret,
			KeepNs:      uint64(keep),
			Resumed:     e.join == nil,
			Spectator:   e.who.Spectator,
			Moves:       r.moves,
			Handles:     *r.handles.Load(),
		},
		Session: transport.SessionConfig{
			ID: id, Conn: conn, Inbox: r.inbox, Clock: r.clock.Now, Stats: r.cfg.Stats, Decode: r.schema.Decode,
			Size: r.schema.Size, Limits: r.cfg.LinkLimits,
			Moves: hello.GetMoves(), AskMoves: r.moves,
			Sent: r.sent.sender(id),
		},
		Who: e.who,
		Joined: func(session *transport.Session) {
			r.inbox.Push(transport.Arrival{Kind: transport.Joined, Session: session, At: r.clock.Now(), Decoded: e})
			r.seats.AddSession(session)
		},
	}
}

// admitted is the result of an admission, new or resumed, for the tick that takes it.
type admitted struct {
	seat *seats.Seat
	join *Join // nil: admitted by the secret of its seat, without asking the game
	who  *Join // join, or that of the connection before
	// evicts is the dropped client that leaves for this one; 0 is none.
	evicts uint64
	// The hello's data for a resume.
	resumable bool   // it may resume later
	received  uint64 // number of the room's reliable messages that it has received
	kept      bool   // it has its copies of the state
	addr      string
}
