package netloop

import (
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

// SendOption is an option of one send.
type SendOption struct{ apply func(*schema.Send) }

// sendWith applies the options of one send.
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

// RunAt selects one of the stages that the method allows, instead of its default. The receiver
// rejects any other.
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
// runs early, which the client counts. Only the server sends with state.
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
var ErrBusy = room.ErrFull

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

// Call declares a client's question and the server's answer. Q and R are message types like that of
// an [RPC].
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
