package netloop

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// newMethod checks and registers a declaration. It panics with the reason if it is invalid.
func newMethod[M any](sc *Schema, name string, call bool, o []RPCOption) *schema.Method {
	sc.s.Claim("method", name)
	in, err := schema.NewCodec[M]()
	if err != nil {
		panic(fmt.Sprintf("netloop: method %q: %v", name, err))
	}
	m := schema.NewMethod(sc.s, name, in, call)
	for _, one := range o {
		one.apply(m)
	}
	if err := m.Settle(reflect.TypeFor[M]()); err != nil {
		panic(fmt.Sprintf("netloop: method %q: %v", name, err))
	}
	sc.s.AddMethod(m)
	return m
}

// RPC declares a one-way message: from a client to the server, or from the server to clients. M is
// a plain struct (its fields are tagged as those of a [Class]) or a pointer to a protobuf message.
// Its handler runs exactly once per accepted message, at the stage that the declaration or the
// sender names.
type RPC[M any] struct{ m *schema.Method }

// NewRPC declares an RPC: reliable and in order, at Update, unless options say otherwise. It panics
// if M cannot be sent; [Class] lists the valid fields and tags.
func NewRPC[M any](sc *Schema, name string, o ...RPCOption) *RPC[M] {
	return &RPC[M]{newMethod[M](sc, name, false, o)}
}

func (e *RPC[M]) method() *schema.Method { return e.m }

// Handle sets the function that runs for each message of this kind from a client. Call Handle in
// [Game] Open; a second handler for the same RPC fails it. The handler owns the message. An error
// is counted and logged, at level debug if [Refuse] made it; the client is not told: use a [Call]
// for an answer. A panic loses this message only. from is nil for a message that the server itself
// has posted ([RPC.Post]).
func (e *RPC[M]) Handle(r *Room, fn func(t *Tick, from *Client, m M) error) {
	r.handled(r.e.Messages.Handle(e.m, func(from *room.Client, it *rpcqueue.Item) error {
		return fn(&r.tick, clientOf(from), schema.Open[M](it.Msg))
	}))
}

// SendOption is an option of [RPC.Send], [RPC.SendRoom], and the functions of package client that
// send.
type SendOption struct{ apply func(*schema.Send) }

// sendWith returns the settings of a send with the options applied.
func sendWith(options []SendOption) schema.Send {
	if len(options) == 0 {
		return schema.Send{}
	}
	s := new(schema.Send)
	for _, one := range options {
		one.apply(s)
	}
	return *s
}

// RunAt selects one of the stages that the method allows ([AtStage]), instead of its default.
// Sending panics with any other stage, and the receiver rejects it.
func RunAt(s Stage) SendOption { return SendOption{func(o *schema.Send) { o.Stage = s }} }

// WithState delays a message on the client until its replicated state has reached the tick of
// sending: until a whole snapshot of that tick, or a later one, has been applied, and with it all
// changes up to that tick that did not fit into the snapshots before. So a handler finds the
// objects that the message refers to, except for an object of a lost packet until its data has been
// sent again: [Ref.Get] reports that. On a client that interpolates (client.Interpolate) it is
// delayed until the tick of sending is shown, so that an explosion is heard when it is seen.
//
// Delayed messages run in the order in which they arrived; other messages may overtake them. A
// client holds at most 256 messages and 64 KiB, each for at most 120 ticks; beyond that the oldest
// runs early, which the client counts.
//
// WithState is an option of [RPC.Send] alone, for reliable and unreliable RPCs, and may be joined
// with [RunAt]. [RPC.SendRoom] and the functions of package client that send panic with it.
func WithState() SendOption { return SendOption{func(o *schema.Send) { o.WithState = true }} }

// Post queues a message for the room from any goroutine. Its handler runs at the method's default
// stage in one of the next ticks, with a nil client. At most 1 024 messages may wait; beyond that
// Post returns [ErrBusy]. Once the room has ended it returns a [*Closed]; messages that wait at its
// end are dropped and counted.
func (e *RPC[M]) Post(r *Room, m M) error {
	if err := e.m.Belongs(r.schema.s); err != nil {
		return fmt.Errorf("netloop: RPC.Post: %w", err)
	}
	err := r.e.Mailbox.Post(rpcqueue.Item{Method: &e.m.Queue, Msg: schema.Erase(m)})
	if errors.Is(err, room.ErrEnded) {
		return &Closed{CodeClosing, "the room has ended"}
	}
	return err
}

// ErrBusy is returned by [RPC.Post] when too many posted messages wait.
var ErrBusy error = room.ErrFull

// Send sends a message to clients, with the flush of this tick. It panics if the message cannot be
// sent, because it exceeds a limit that its tags set, or [MaxMessage], or [MaxUnreliable] for an
// unreliable RPC. The panic costs the running system its call: shorten a composed text with
// [Truncate]. It panics with an RPC of another schema, and on a client: use client.Send there.
func (e *RPC[M]) Send(t *Tick, to Target, m M, o ...SendOption) {
	r := t.server("RPC.Send")
	if err := e.m.Belongs(r.schema.s); err != nil {
		panic("netloop: RPC.Send: " + err.Error())
	}
	out := transport.Message{Method: e.m.Queue.ID, Reliable: e.m.Queue.Reliable, Payload: r.e.Messages.Encode(e.m, schema.Erase(m))}
	send := sendWith(o)
	if !send.AllowedBy(e.m) {
		panic(fmt.Sprintf("netloop: RPC.Send: method %q does not run at %s: its declaration allows %v", e.m.Queue.Name, send.Stage, e.m.Queue.Stages))
	}
	out.Stage = uint8(send.Stage)
	if send.WithState {
		out.Tick = r.e.StateTick()
	}
	for _, c := range r.e.Clients() {
		if to.includes(clientOf(c)) {
			c.Send(out)
		}
	}
}

// Call declares a client's question and the server's answer. Q and R are message types, as M of an
// [RPC] is.
type Call[Q, R any] struct{ m *schema.Method }

// NewCall declares a call. It panics if Q or R cannot be sent.
func NewCall[Q, R any](sc *Schema, name string, o ...RPCOption) *Call[Q, R] {
	m := newMethod[Q](sc, name, true, o)
	out, err := schema.NewCodec[R]()
	if err != nil {
		panic(fmt.Sprintf("netloop: method %q: %v", name, err))
	}
	m.Out = out
	return &Call[Q, R]{m}
}

func (k *Call[Q, R]) method() *schema.Method { return k.m }

// Handle sets the function that answers. Its answer is sent with the flush of the tick in which it
// ran. Only the text of an error made by [Refuse] is sent to the client; any other error is logged
// and arrives as "internal error", and so does an answer that exceeds [MaxMessage] or a limit of
// its tags.
func (k *Call[Q, R]) Handle(r *Room, fn func(t *Tick, from *Client, q Q) (R, error)) {
	r.handled(r.e.Messages.HandleCall(k.m, func(from *room.Client, question any) (any, error) {
		answer, err := fn(&r.tick, clientOf(from), schema.Open[Q](question))
		if err != nil {
			return nil, err
		}
		return schema.Erase(answer), nil
	}))
}

// Reply is the pending answer of a [Call.HandleLater] function to a client's question. It may be
// kept and used in any later tick of its room.
type Reply[R any] struct{ o *room.Answer }

// HandleLater sets the function that receives the question; the answer is sent with [Reply.Send],
// at once or in any later tick: after work given to [Go], when a timer ends, or when another player
// has decided. The client stops waiting for the answer after the [Timeout] of the call. A client
// with too many pending answers ([RPCLimits] Answers) is refused with [CodeBusy]. A panic answers
// as it does in [Call.Handle].
func (k *Call[Q, R]) HandleLater(r *Room, fn func(t *Tick, from *Client, q Q, reply Reply[R])) {
	r.handled(r.e.Messages.HandleLater(k.m, func(from *room.Client, question any, o *room.Answer) {
		fn(&r.tick, clientOf(from), schema.Open[Q](question), Reply[R]{o})
	}))
}

// Waiting reports whether the client still waits for the answer: it has not been
// sent, the client has not left, and the call has not timed out.
func (p Reply[R]) Waiting(t *Tick) bool {
	p.check(t, "Reply.Waiting")
	return p.o.Waiting()
}

// Send answers the call, with the flush of this tick: with v, or with err if it is not nil, as the
// text of a [Refuse] error and otherwise as "internal error". A call has exactly one answer: a
// second one is counted and logged, and an answer after the client has stopped waiting is counted;
// neither is sent.
func (p Reply[R]) Send(t *Tick, v R, err error) {
	p.check(t, "Reply.Send")
	p.o.Send(schema.Erase(v), err)
}

func (p Reply[R]) check(t *Tick, what string) {
	r := t.server(what)
	if p.o == nil {
		panic("netloop: " + what + ": the zero Reply answers nothing: use the one that HandleLater was given")
	}
	if p.o.Room() != r.e {
		panic(fmt.Sprintf("netloop: %s: the call %q was asked in another room", what, p.o.Method()))
	}
}

// Messages between rooms, and between rooms and the program around the server. Rooms share no
// memory: a message is copied, and waits in a queue for a tick of the receiving room.

// Sender is a room that has sent a message.
type Sender struct {
	Room string // its name
	Kind string
}

// SendRoom sends a message to another room of the server, or to this one. The message runs there
// exactly once, in a later tick, at the stage that the declaration or [RunAt] names; messages of
// one sender for one stage run in the order of sending. The message wakes a room that sleeps.
// Referenced data is copied. An RPC for rooms alone is [ServerOnly].
//
// Unless it is nil, then is called in EarlyUpdate of a later tick with the result: nil once the
// handler has returned, even with an error, and otherwise a [*Refusal], which is counted in
// netloop_queue_drops_total{queue="room_message"} or, with the reasons of [RPCOption], in
// netloop_rpcs_total:
//
//	CodeRoomUnknown    there is no such room, or it has ended before the handler ran
//	CodeBusy           too many messages wait there, or this room has sent 1 024, or 1 MiB, in
//	                   this tick
//	CodeUnknownMethod  the room has no handler for it
//
// If 1 024 works and messages with a pending result are under way, the message is not sent and the
// error is [ErrTooMuchWork]. After the sending room has ended, then is not called.
//
// It panics as [RPC.Send] does.
func (e *RPC[M]) SendRoom(t *Tick, name string, m M, then func(*Tick, error), o ...SendOption) {
	r := t.server("RPC.SendRoom")
	e.sendTo(t, "RPC.SendRoom", "room "+name, m, then, o, func(it rpcqueue.Item) error {
		to, ok := r.server.rooms.Get(name)
		if !ok {
			return room.ErrEnded
		}
		return to.e.Mailbox.Receive(it)
	})
}

// sendTo sends a message through deliver, which queues it at the receiver. Its panics begin with
// what; to is the receiver's name in the digest of a recording.
func (e *RPC[M]) sendTo(t *Tick, what, to string, m M, then func(*Tick, error), o []SendOption, deliver func(rpcqueue.Item) error) {
	r := t.server(what)
	if err := e.m.Belongs(r.schema.s); err != nil {
		panic("netloop: " + what + ": " + err.Error())
	}
	send := sendWith(o)
	switch {
	case !send.AllowedBy(e.m):
		panic(fmt.Sprintf("netloop: %s: method %q does not run at %s: its declaration allows %v", what, e.m.Queue.Name, send.Stage, e.m.Queue.Stages))
	case send.WithState:
		panic("netloop: " + what + ": WithState is for messages to clients")
	}
	mail := room.Mail{To: to, Method: e.m, Stage: send.Stage, Msg: schema.Erase(m), Deliver: deliver}
	if then != nil {
		mail.Then = func(err error) { then(&r.tick, publicRefusal(err)) }
	}
	if !r.e.Mailbox.Send(mail) {
		t.AfterFunc(0, func(t *Tick) { then(t, ErrTooMuchWork) })
	}
}

// HandleRoom sets the function that runs for each message of this kind from a room, see
// [RPC.SendRoom]; from is nil for a message that the program has posted. Call HandleRoom in [Game]
// Open. It replaces Handle: clients' messages of the kind do not run, and are counted as forbidden.
// An error is counted and logged; the sender does not see it.
func (e *RPC[M]) HandleRoom(r *Room, fn func(t *Tick, from *Sender, m M) error) {
	r.handled(r.e.Messages.HandleRoom(e.m, func(from *room.Sender, it *rpcqueue.Item) error {
		return fn(&r.tick, (*Sender)(from), schema.Open[M](it.Msg))
	}))
}

// PostRoom is [RPC.Post] for a room by its name; while that room is being opened, PostRoom waits,
// at most until ctx ends. Without such a room the error is a [*Refusal] with [CodeRoomUnknown]. Any
// goroutine may call it except those of rooms, which call SendRoom.
func (e *RPC[M]) PostRoom(ctx context.Context, s *Server, name string, m M) error {
	r, ok := s.rooms.Find(ctx, name)
	if !ok {
		return public(errNoRoom(name))
	}
	return e.Post(r, m)
}

// SendServer sends a message to the program around the server, where it runs exactly once if
// [RPC.HandleServer] has set a function for it. The rules of SendRoom apply; messages under way
// when the server ends are delivered to the program before Run returns.
func (e *RPC[M]) SendServer(t *Tick, m M, then func(*Tick, error)) {
	s := t.server("RPC.SendServer").server
	e.sendTo(t, "RPC.SendServer", "server", m, then, nil, s.inbox.Receive)
}

// HandleServer sets the function that runs for each message of this kind that a room sends to the
// program. Messages run one at a time and in their order, on a goroutine of the server that no tick
// waits for; 4 096 of them may wait, 256 of one room. When all rooms have ended, ctx has
// DrainTimeout of the [Config] left. A function that ignores the end of ctx for a second is
// abandoned, and counted in netloop_left_behind_total. Call it before Run, once for each RPC, and
// not in a game's Open, which is called for each room.
func (e *RPC[M]) HandleServer(s *Server, fn func(ctx context.Context, from *Sender, m M)) error {
	if err := e.m.Belongs(s.schema.s); err != nil {
		return fmt.Errorf("netloop: RPC.HandleServer: %w", err)
	}
	err := s.inbox.Handle(&e.m.Queue, func(ctx context.Context, from *room.Sender, msg any) error {
		return s.room.e.CallAside("HandleServer", func() error { fn(ctx, (*Sender)(from), schema.Open[M](msg)); return nil })
	})
	if err != nil {
		return fmt.Errorf("netloop: RPC.HandleServer: %w", err)
	}
	return nil
}

// startInbox starts to deliver the rooms' messages to the program. The returned function, to be
// called when all rooms have ended, ends that: it gives pending messages DrainTimeout.
func (s *Server) startInbox() (end func()) {
	s.inbox.Open()
	ctx, cancel := context.WithCancel(context.Background())
	stop, served := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		for !s.serveInbox(ctx, stop) { // A function has ended its goroutine: start the next one.
			s.log.Error("a function of HandleServer called runtime.Goexit")
		}
	}()
	return func() {
		defer cancel()
		close(stop)
		within, over := context.WithTimeout(ctx, s.cfg.DrainTimeout)
		defer over()
		select {
		case <-served:
		case <-within.Done():
			cancel()
			s.waitFor("HandleServer", served, cancelGrace)
		}
	}
}

// serveInbox delivers messages on a goroutine of its own until stop is closed. It reports false if
// a function has ended that goroutine.
func (s *Server) serveInbox(ctx context.Context, stop <-chan struct{}) bool {
	done := make(chan bool, 1) // One sender, one value.
	go func() {
		all := false
		defer func() { done <- all }()
		s.inbox.Serve(ctx, stop)
		all = true
	}()
	return <-done
}
