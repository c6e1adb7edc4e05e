package netloop

import (
	"context"
	"errors"
	"fmt"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"

	"github.com/netloop/netloop/internal/guard"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// admission is the server as the transport sees it.
type admission struct{ s *Server }

// Tables implements transport.Handler.
func (a admission) Tables(hello *netloopv1.Hello) ([]byte, error) {
	if a.s.draining.Load() {
		return nil, errDraining
	}
	if err := a.s.schema.s.Accepts(hello); err != nil {
		return nil, err
	}
	return a.s.schema.s.TablesFor(hello), nil
}

// Admit implements transport.Handler.
func (a admission) Admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*transport.Admission, error) {
	return a.s.admit(ctx, hello, remote)
}

var errDraining = &transport.Refusal{Code: CodeClosing, Text: "the server is closing"}

// admit decides about one client, whose schema Tables has found to fit. The
// transport calls it on the connection's own goroutine, after the handshake's
// frames and before any other byte of the client is read.
func (s *Server) admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*transport.Admission, error) {
	if s.draining.Load() {
		return nil, errDraining
	}
	r := s.room
	if hello.GetRoom() != r.spec.Name {
		return nil, &transport.Refusal{Code: CodeRoomUnknown, Text: fmt.Sprintf("there is no room %q", hello.GetRoom())}
	}
	if r.Overload() >= OverloadRefusing {
		return nil, &transport.Refusal{Code: CodeBusy, Text: "the server is overloaded: try again later"}
	}
	if err := r.sit(); err != nil {
		return nil, err
	}
	join := &Join{
		Token: hello.GetToken(), Addr: remote, params: hello.GetParams(),
		Minor: int(min(uint32(s.schema.s.Minor), hello.GetMinor())),
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AdmitTimeout)
	defer cancel()
	if err := r.askToAdmit(ctx, join); err != nil {
		r.seats.Add(-1)
		return nil, s.refusal(err, remote)
	}
	if err := s.letIn(ctx, join); err != nil {
		r.seats.Add(-1)
		return nil, err
	}
	return r.admission(join, hello), nil
}

// sit takes a seat, unless the room is full.
func (r *Room) sit() error {
	if r.seats.Add(1) <= int64(r.spec.MaxClients) {
		return nil
	}
	r.seats.Add(-1)
	return &transport.Refusal{Code: CodeFull, Text: fmt.Sprintf("the room is full: %d clients", r.spec.MaxClients)}
}

// errAdmitGone is the error of an OnAdmit function that has ended its goroutine.
var errAdmitGone = errors.New("netloop: OnAdmit called runtime.Goexit")

// askToAdmit calls the game's OnAdmit functions. They get a goroutine of their own, so that
// one which ends it takes neither the connection's with it nor the client's seat.
func (r *Room) askToAdmit(ctx context.Context, join *Join) error {
	if len(r.onAdmit) == 0 {
		return nil
	}
	answer := make(chan error, 1) // One sender, one value.
	go func() {
		err := errAdmitGone
		defer func() { answer <- err }()
		for _, fn := range r.onAdmit {
			if e := called(&r.aside, "OnAdmit", func() error { return fn(ctx, join) }); e != nil {
				err = e
				return
			}
		}
		err = nil
	}()
	return <-answer
}

// refusal turns an error of admission into what the client may read.
func (s *Server) refusal(err error, remote string) error {
	code, text, said := public(err)
	if errors.Is(err, context.DeadlineExceeded) {
		code, text = CodeTimeout, "admission took too long"
	}
	if panicked := (*hookPanic)(nil); !said && !errors.As(err, &panicked) {
		s.room.aside.Failed(&guard.Place{Name: "OnAdmit"}, err, "client", remote)
	}
	return &transport.Refusal{Code: code, Text: text}
}

// admission gives a client its id and its place in the room's inbox.
func (r *Room) admission(join *Join, hello *netloopv1.Hello) *transport.Admission {
	s := r.server
	c := &Client{id: ClientID(s.lastID.Add(1)), room: r, join: join}
	epoch := r.epoch.Load()
	var scale *netloopv1.TimeScale
	if *r.scale.Load() != loop.Unscaled {
		now := r.timeScale()
		scale = &netloopv1.TimeScale{Num: now.Num, Den: now.Den, Tick: now.Tick, ScaledNs: uint64(now.At), Fraction: now.Fraction}
	}
	return &transport.Admission{
		Welcome: &netloopv1.Welcome{
			Protocol:    schema.ProtocolVersion,
			Minor:       uint32(join.Minor),
			ClientId:    uint64(c.id),
			InstanceId:  s.instance[:],
			Room:        r.spec.Name,
			TickRate:    &netloopv1.Rate{Num: r.spec.Rate.Num, Den: r.spec.Rate.Den},
			FixedRate:   &netloopv1.Rate{Num: r.spec.FixedRate.Num, Den: r.spec.FixedRate.Den},
			SendEvery:   uint32(r.spec.SendEvery),
			Epoch:       &netloopv1.Epoch{Tick: epoch.Tick, ServerNs: uint64(epoch.At)},
			ServerNs:    uint64(s.clock.Now()),
			Fingerprint: s.schema.s.Fingerprint(),
			TimeScale:   scale,
		},
		Session: transport.SessionConfig{
			ID: uint64(c.id), Inbox: r.inbox, Clock: s.clock.Now, Stats: s.transport, Decode: s.schema.s.Decode,
			Sent: r.leaving.sender(c.id),
		},
		Joined: func(session *transport.Session) {
			r.inbox.Push(transport.Arrival{Kind: transport.Joined, Session: session, At: s.clock.Now(), Decoded: c})
		},
	}
}
