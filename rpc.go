package netloop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

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
// a plain struct, with the tags that [Class] lists, or a pointer to a protobuf message. Its handler
// runs exactly once per accepted message, at the stage that the declaration or the sender names.
type RPC[M any] struct{ m *schema.Method }

// NewRPC declares an RPC. Without options it is reliable and in order, and runs at Update. It
// panics if M cannot be sent; [Class] lists the valid fields and tags.
func NewRPC[M any](sc *Schema, name string, o ...RPCOption) *RPC[M] {
	return &RPC[M]{newMethod[M](sc, name, false, o)}
}

func (e *RPC[M]) method() *schema.Method { return e.m }

// Handle sets the function that runs for each message of this kind from a client. Call Handle in
// [Game] Open; Open fails with a second handler for the same RPC. The handler owns the message. An
// error is counted and logged, at level debug if it is from [Refuse], and is not sent to the
// client: use a [Call] for an answer. After a panic only this message is lost. from is nil for a
// message from [RPC.Post].
func (e *RPC[M]) Handle(r *Room, fn func(t *Tick, from *Client, m M) error) {
	if !r.needs(fn != nil, "RPC.Handle", e.m) {
		return
	}
	r.handled(r.e.Messages.Handle(e.m, func(from *room.Client, it *rpcqueue.Item) error {
		return fn(&r.tick, clientOf(from), schema.Open[M](it.Msg))
	}))
}

// SendOption is an option of [RPC.Send], of [RPC.SendRoom], and of the functions of package client
// that send messages.
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

// RunAt selects one of the stages that the method permits ([AtStage]), in place of the default
// stage. With any other stage, the sending function panics and the receiver rejects the message.
func RunAt(s Stage) SendOption { return SendOption{func(o *schema.Send) { o.Stage = s }} }

// WithState delays a message on the client until the client's replicated state has reached the tick
// in which the message was sent: until it has applied a whole snapshot of that tick or of a later
// tick, and all earlier changes that did not fit into earlier snapshots. So the handler finds the
// objects to which the message refers. The exception is an object in a lost packet, until its data
// has been sent again: [Ref.Get] reports false for it. A client that interpolates
// (client.Interpolate) delays the message until it draws the tick of sending, so that an explosion
// is heard when it is seen.
//
// Delayed messages run in the order of their arrival; other messages may overtake them. A client
// delays at most 256 messages and 64 KiB, and each for at most 120 ticks. Above these limits the
// oldest message runs early, and the client counts it.
//
// WithState is an option only of [RPC.Send], for reliable and unreliable RPCs, and may be combined
// with [RunAt]. [RPC.SendRoom] and the functions of package client that send messages panic with
// it.
func WithState() SendOption { return SendOption{func(o *schema.Send) { o.WithState = true }} }

// Post queues a message for the room from any goroutine. Its handler runs at the method's default
// stage in one of the next ticks, with a nil client. At most 1 024 messages may wait; above this
// limit Post returns [ErrBusy]. After the end of the room it returns a [*Closed]. Messages that
// wait at the end of the room are dropped and counted.
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

// ErrBusy is the error of [RPC.Post] when too many posted messages wait.
var ErrBusy error = room.ErrFull

// Send sends a message to clients, with the flush of this tick. It panics if the message is too
// large: if it exceeds a limit of its tags, or [MaxMessage], or [MaxUnreliable] for an unreliable
// RPC. The panic ends the call of the running system: shorten a composed text with [Truncate]. It
// also panics with an RPC of another schema, and on a client: use client.Send there.
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

// Call declares a client's question and the server's answer. Q and R are message types, like the M
// of an [RPC].
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

// Handle sets the function that returns the answer. The answer is sent with the flush of the tick
// in which the function ran. Only the text of an error from [Refuse] is sent to the client. Any
// other error is logged, and the client receives "internal error"; so does an answer that exceeds
// [MaxMessage] or a limit of its tags.
func (k *Call[Q, R]) Handle(r *Room, fn func(t *Tick, from *Client, q Q) (R, error)) {
	if !r.needs(fn != nil, "Call.Handle", k.m) {
		return
	}
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
// has decided. The client stops waiting for the answer after the [Timeout] of the call. Calls of a
// client with too many pending answers ([RPCLimits] Answers) are refused with [CodeBusy]. After a
// panic the client receives "internal error".
func (k *Call[Q, R]) HandleLater(r *Room, fn func(t *Tick, from *Client, q Q, reply Reply[R])) {
	if !r.needs(fn != nil, "Call.HandleLater", k.m) {
		return
	}
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

// Send answers the call with the flush of this tick: with v, or with err if err is not nil. The
// client receives the text of an error from [Refuse], and "internal error" for any other error. A
// call has exactly one answer: a second answer is counted and logged, and an answer after the
// client has stopped waiting is counted; neither is sent.
func (p Reply[R]) Send(t *Tick, v R, err error) {
	p.check(t, "Reply.Send")
	p.o.Send(schema.Erase(v), err)
}

func (p Reply[R]) check(t *Tick, what string) {
	r := t.server(what)
	if p.o == nil {
		panic("netloop: " + what + ": the zero Reply has no call: use the one that HandleLater got")
	}
	if p.o.Room() != r.e {
		panic(fmt.Sprintf("netloop: %s: the call %q was asked in another room", what, p.o.Method()))
	}
}

// Messages between rooms, and between rooms and the program that runs the server. Rooms share no
// memory: a message is copied, and waits in a queue for a tick of the receiving room.

// Sender is a room that has sent a message.
type Sender struct {
	Room string // its name
	Kind string
}

// SendRoom sends a message to another room of the server or of its cluster, or to this one. The
// message runs there exactly once, in a later tick, at the stage that the declaration or [RunAt]
// names. Messages of one sender for one stage run in the order of sending. The message wakes a
// sleeping room. SendRoom copies the data of m. Declare an RPC that only rooms send as
// [ServerOnly].
//
// The function then, unless it is nil, is called in EarlyUpdate of a later tick with the result.
// The result is nil if the handler has returned, even with an error, and otherwise a [*Refusal].
// Refusals are counted in netloop_queue_drops_total{queue="room_message"} or, with the reasons of
// [RPCOption], in netloop_rpcs_total:
//
//	CodeRoomUnknown    there is no such room, or it has ended before the handler ran
//	CodeBusy           too many messages wait there, or this room has sent 1 024, or 1 MiB, in
//	                   this tick
//	CodeUnknownMethod  the room has no handler for it, or its server has another schema
//
// If the server of the room does not answer within 5 s, the error is a Refusal with CodeBusy too,
// and the handler may have run. A message to a room that is about to move to another server
// ([Room.HandOver]) may be refused with CodeRoomUnknown. The default room of another server has no
// name in the cluster, and gets no messages.
//
// If 1 024 pieces of work and messages with a pending result exist, the message is not sent and the
// error is [ErrTooMuchWork]. After the end of the sending room, then is not called.
//
// It panics as [RPC.Send] does.
func (e *RPC[M]) SendRoom(t *Tick, name string, m M, then func(*Tick, error), o ...SendOption) {
	r := t.server("RPC.SendRoom")
	s := r.server
	e.sendTo(t, "RPC.SendRoom", "room "+name, m, then, o, delivery{
		here:      func(it rpcqueue.Item) error { return s.deliver(name, it) },
		elsewhere: func(l *room.Letter) { s.member.Send(mailOf(name, l)) },
	})
}

// delivery queues a message at its receiver. elsewhere is called if here returns room.ErrElsewhere.
type delivery struct {
	here      func(rpcqueue.Item) error
	elsewhere func(*room.Letter)
}

// sendTo sends a message through deliver, which queues it at the receiver. what is the first word
// of its panics; to is the receiver's name in the digest of a recording.
func (e *RPC[M]) sendTo(t *Tick, what, to string, m M, then func(*Tick, error), o []SendOption, deliver delivery) {
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
	mail := room.Mail{To: to, Method: e.m, Stage: send.Stage, Msg: schema.Erase(m), Deliver: deliver.here, Forward: deliver.elsewhere}
	if then != nil {
		mail.Then = func(err error) { then(&r.tick, publicRefusal(err)) }
	}
	if !r.e.Mailbox.Send(mail) {
		t.AfterFunc(0, func(t *Tick) { then(t, ErrTooMuchWork) })
	}
}

// HandleRoom sets the function that runs for each message of this kind from a room, see
// [RPC.SendRoom]; from is nil for a message that the program has posted. Call HandleRoom in [Game]
// Open. It replaces Handle: messages of this kind from clients do not run, and are counted as
// forbidden. An error is counted and logged; the sender does not see it.
func (e *RPC[M]) HandleRoom(r *Room, fn func(t *Tick, from *Sender, m M) error) {
	if !r.needs(fn != nil, "RPC.HandleRoom", e.m) {
		return
	}
	r.handled(r.e.Messages.HandleRoom(e.m, func(from *room.Sender, it *rpcqueue.Item) error {
		return fn(&r.tick, (*Sender)(from), schema.Open[M](it.Msg))
	}))
}

// PostRoom is [RPC.Post] for a room by its name. While the room is being opened, PostRoom waits, at
// most until ctx ends. If there is no such room, the error is a [*Refusal] with [CodeRoomUnknown].
// For a room of another server of the cluster, PostRoom returns when the handler has returned, with
// the refusals of SendRoom, or the error of ctx. Any goroutine may call it except the goroutines of
// rooms, which call SendRoom.
func (e *RPC[M]) PostRoom(ctx context.Context, s *Server, name string, m M) error {
	r, ok := s.rooms.Find(ctx, name)
	switch {
	case ok:
		return e.Post(r, m)
	case s.member == nil:
		return public(errNoRoom(name))
	}
	return e.postElsewhere(ctx, s, name, m)
}

// SendServer sends a message to the program that runs the server. The message runs there exactly
// once if [RPC.HandleServer] has set a function for it. The rules of SendRoom apply. Messages that
// still wait when the server ends are delivered to the program before Run returns.
func (e *RPC[M]) SendServer(t *Tick, m M, then func(*Tick, error)) {
	s := t.server("RPC.SendServer").server
	e.sendTo(t, "RPC.SendServer", "server", m, then, nil, delivery{here: s.inbox.Receive})
}

// HandleServer sets the function that runs for each message of this kind that a room sends to the
// program. Messages run one at a time and in order, on a goroutine for which no tick waits; 4 096
// messages may wait, 256 of one room. When all rooms have ended, ctx ends after the DrainTimeout of
// the [Config]. A function that ignores the end of ctx for a second is abandoned, and counted in
// netloop_left_behind_total. Call it before Run, once for each RPC, and not in a game's Open, which
// is called for each room.
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

// startInbox starts to deliver the rooms' messages to the program. Call the returned function when
// all rooms have ended: it ends the delivery, and gives pending messages DrainTimeout.
func (s *Server) startInbox() (end func()) {
	s.inbox.Open()
	ctx, cancel := context.WithCancel(context.Background())
	stop, served := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		for !s.serveInbox(ctx, stop) { // A function has ended the goroutine: start another one.
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

// serveInbox delivers messages on another goroutine until stop is closed. It reports false if a
// function has ended that goroutine.
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

// RPCOption is an option of [NewRPC] and [NewCall].
//
// The receiver checks a client's message in this order. The first check that fails decides: the
// message is dropped and counted in netloop_rpcs_total under the outcome, and a call is answered
// with the code.
//
//	check                                          outcome            code
//	the client's own rate (Config RPC)             client_limited     CodeFlood
//	the method exists                              unknown_method     CodeUnknownMethod
//	the stage exists, and the method allows it     unknown_stage      CodeStageNotAllowed
//	                                               stage_not_allowed  CodeStageNotAllowed
//	the room handles it                            no_handler         CodeUnknownMethod
//	Limit                                          method_limited     CodeFlood
//	LimitPerTick                                   tick_limited       CodeFlood
//	LateDrop                                       late_dropped       CodeRefused
//	the stage's queue has room                     full               CodeBusy
//	when its stage runs: its sender is still here  client_gone        none
//	its sender plays, or ForSpectators             forbidden          CodeRefused
//	ServerOnly, or HandleRoom                      forbidden          none
//	MinRole                                        forbidden          CodeRefused
//	Validate                                       invalid            CodeInvalid
//	OwnerOnly                                      not_owner          CodeRefused
//	HandleLater: not too many answers are pending  failed             CodeBusy
type RPCOption struct{ apply func(*schema.Method) }

// AtStage names the stages at which a method may run. It runs at the first of them, unless the
// sender selects another one with [RunAt]. Without AtStage a method runs at Update.
func AtStage(first Stage, others ...Stage) RPCOption {
	return RPCOption{func(m *schema.Method) { m.Queue.Stages = append([]Stage{first}, others...) }}
}

// Unreliable sends a method's messages in datagrams: a lost message is not sent again, and messages
// may overtake each other. On a full link the server drops the oldest ones of a client beyond half
// of the link's byte rate.
func Unreliable() RPCOption { return RPCOption{func(m *schema.Method) { m.Queue.Reliable = false }} }

// ForSpectators lets spectators send the message too, see [Client.Spectator]: to chat, for
// instance.
func ForSpectators() RPCOption { return RPCOption{func(m *schema.Method) { m.Spectators = true }} }

// Secret keeps a method's payloads out of the inspector, which shows messages of rooms and
// recordings to operators: for passwords, tokens, tickets and private talk. The file of a recording
// contains them.
func Secret() RPCOption { return RPCOption{func(m *schema.Method) { m.Secret = true }} }

// LateDrop drops a message that arrives after its stage has run in this tick; without it the
// message waits for the next tick. Messages arrive in EarlyUpdate. So a message for a later stage
// is never late, and a message for [Initialization] is always late: with LateDrop it runs only if
// the sender selects another stage with [RunAt].
func LateDrop() RPCOption { return RPCOption{func(m *schema.Method) { m.Queue.LateDrop = true }} }

// Limit bounds the messages of this kind that each client may send: burst messages at once (1 to 65
// 536), and perSecond messages a second on average (one an hour to a million), in game time. A
// further message is dropped; a call is refused with [CodeFlood].
func Limit(perSecond float64, burst int) RPCOption {
	return RPCOption{func(m *schema.Method) { m.Queue.Limit = rpcqueue.Bucket{PerSecond: perSecond, Burst: burst} }}
}

// LimitPerTick bounds the messages of this kind that one tick accepts from each client: n is from 1
// to 65 536. A further message is dropped; a call is refused with [CodeFlood]. Messages that were
// sent evenly may arrive together, so choose a higher number, or use [Limit]. If both are set, both
// apply.
func LimitPerTick(n int) RPCOption {
	return RPCOption{func(m *schema.Method) {
		if n < 1 || n > rpcqueue.MaxBurst {
			panic(fmt.Sprintf("netloop: method %q: LimitPerTick(%d): use 1 to %d", m.Queue.Name, n, rpcqueue.MaxBurst))
		}
		m.Queue.PerTick = n
	}}
}

// Timeout sets the time for which the client waits for the answer to a call, and for which the
// server accepts a [Reply] of [Call.HandleLater]. The default is 10 s; from 1 ms to an hour.
func Timeout(d time.Duration) RPCOption {
	return RPCOption{func(m *schema.Method) {
		if d < time.Millisecond || d > schema.MaxTimeout {
			panic(fmt.Sprintf("netloop: method %q: Timeout(%v): use %v to %v", m.Queue.Name, d, time.Millisecond, schema.MaxTimeout))
		}
		m.Timeout = d
	}}
}

// ServerOnly is for an RPC that only the server sends: to clients, from room to room, or to itself.
// If a client sends such a message, it does not run, even if there is a handler. A client of this
// build panics if it sends one.
func ServerOnly() RPCOption {
	return RPCOption{func(m *schema.Method) {
		m.ServerOnly = true
		withCheck("ServerOnly", nil, func(*Tick, *Client, any) error {
			return &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: Refuse(CodeRefused, "only the server may send it")}
		}).apply(m)
	}}
}

// MinRole rejects the message from clients whose [Join.Role] is less than role.
func MinRole(role int) RPCOption {
	return withCheck("MinRole", nil, func(_ *Tick, from *Client, _ any) error {
		if from.join.Role() >= role {
			return nil
		}
		return &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: Refuse(CodeRefused, "role is too low")}
	})
}

// Validate checks each message of a client before its handler runs. For an invalid call, the client
// gets the text of a [Refuse] error, or [CodeInvalid] for any other error. fn must depend only on
// the message, because all rooms share it.
func Validate[M any](fn func(m M) error) RPCOption {
	return withCheck("Validate", reflect.TypeFor[M](), func(_ *Tick, _ *Client, msg any) error {
		err := fn(schema.Open[M](msg))
		if err == nil {
			return nil
		}
		if refusal := (*Refusal)(nil); !errors.As(err, &refusal) {
			err = fmt.Errorf("%w: %w", Refuse(CodeInvalid, "message is invalid"), err)
		}
		return &rpcqueue.Rejection{Why: rpcqueue.Invalid, Err: err}
	})
}

// OwnerOnly lets only the owner of an object send a message about it: ref returns the object that
// the message names. Ownership is checked when the message runs; if the object no longer exists,
// the message is rejected.
func OwnerOnly[M, S any](ref func(m M) Ref[S]) RPCOption {
	return withCheck("OwnerOnly", reflect.TypeFor[M](), func(t *Tick, from *Client, msg any) error {
		if o, ok := ref(schema.Open[M](msg)).Get(t); ok && o.Owner() == from.ID() {
			return nil
		}
		return &rpcqueue.Rejection{Why: rpcqueue.NotOwner, Err: Refuse(CodeRefused, "not the owner of the object")}
	})
}

// withCheck returns an option that adds a check. Checks run in the order of RPCOption's table, not
// in the order of the options.
func withCheck(option string, message reflect.Type, fn func(*Tick, *Client, any) error) RPCOption {
	return RPCOption{func(m *schema.Method) {
		c := schema.Check{Option: option, Message: message, Ask: func(tick, from, msg any) error {
			return fn(tick.(*Tick), from.(*Client), msg)
		}}
		at := 0
		for at < len(m.Checks) && checkOrder[m.Checks[at].Option] <= checkOrder[option] {
			at++
		}
		m.Checks = slices.Insert(slices.Clip(m.Checks), at, c)
	}}
}

var checkOrder = map[string]int{"ServerOnly": 0, "MinRole": 1, "Validate": 2, "OwnerOnly": 3}
