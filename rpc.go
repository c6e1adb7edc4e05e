package netloop

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// newMethod checks and registers a declaration. It panics with what is wrong.
func newMethod[M any](sc *Schema, name string, call bool, o []RPCOption) *schema.Method {
	sc.s.Claim("method", name)
	in, err := schema.NewCodec[M]()
	if err != nil {
		panic(fmt.Sprintf("netloop: method %q: %v", name, err))
	}
	m := schema.NewMethod(sc.s, name, in, call)
	for _, apply := range o {
		apply(m)
	}
	if err := m.Settle(reflect.TypeFor[M]()); err != nil {
		panic(fmt.Sprintf("netloop: method %q: %v", name, err))
	}
	sc.s.AddMethod(m)
	return m
}

// RPC declares a one-way message: from a client to the server, or from the
// server to clients. M is a plain struct (its fields are tagged as those of a
// [Class]) or a pointer to a protobuf message. Its handler runs exactly once per
// accepted message, at the stage that the declaration or the sender names.
type RPC[M any] struct{ m *schema.Method }

// NewRPC declares an RPC: reliable and in order, at Update, unless options say
// otherwise. It panics if M cannot travel; [Class] lists what can, and the tags.
func NewRPC[M any](sc *Schema, name string, o ...RPCOption) *RPC[M] {
	return &RPC[M]{newMethod[M](sc, name, false, o)}
}

func (e *RPC[M]) method() *schema.Method { return e.m }

// Handle sets the function that runs for each message of this kind that a
// client sends. It belongs into [Game] Open; a second handler for the same RPC
// fails it. The message is the handler's own. An error is counted and logged, one
// made by [Refuse] at level debug; the client hears of neither: use a [Call] where
// it should. A panic is isolated, and costs nobody else a message. from is nil for
// what the server itself has posted ([RPC.Post]).
func (e *RPC[M]) Handle(r *Room, fn func(t *Tick, from *Client, m M) error) {
	r.handle(e.m, func(t *Tick, from *Client, it *rpcqueue.Item) error {
		return fn(t, from, schema.Open[M](it.Msg))
	})
}

// SendOption is an option of one send.
type SendOption func(*transport.Message)

// RunAt asks for one of the stages that the method allows, instead of its
// default. The receiver rejects any other.
func RunAt(s Stage) SendOption { return func(m *transport.Message) { m.Stage = uint8(s) } }

// WithState holds a message on the client until its replicated state has reached
// the tick of sending: until a whole snapshot of that tick, or a later one, has
// been applied, and with it everything up to that tick that did not fit into the
// ones before. So a handler finds the objects that the message refers to, unless
// the packet that told of one was lost and what makes up for it is still under
// way: [Ref.Get] says so.
//
// Messages that are held run in the order in which they came; others overtake
// them. A client holds at most 256 messages and 64 KiB, each for at most 120
// ticks; beyond that the oldest runs early, which the client counts. Only the
// server sends with state.
func WithState() SendOption { return func(m *transport.Message) { m.Tick = withState } }

// withState stands for the tick until Send knows it.
const withState = math.MaxUint64

// stateTick is the tick whose snapshot has the state as it is now.
func (r *Room) stateTick() uint64 {
	if r.captured == r.now.Tick {
		return r.now.Tick + 1 // What has been changed since leaves in the next.
	}
	return r.now.Tick
}

// Send sends a message to clients, with the flush of this tick. A message that
// cannot be sent (it exceeds a limit that its tags set, or [MaxMessage], or [MaxUnreliable] if
// the RPC is so) panics, which costs the running system its call: cut what was put together
// with [Clip]. It panics
// with an RPC of another schema, and on a client: use client.Send there.
func (e *RPC[M]) Send(t *Tick, to Target, m M, o ...SendOption) {
	r := t.server("RPC.Send")
	if err := e.m.Belongs(r.schema.s); err != nil {
		panic("netloop: RPC.Send: " + err.Error())
	}
	out := transport.Message{Method: e.m.Queue.ID, Reliable: e.m.Queue.Reliable, Payload: r.encode(e.m, schema.Erase(m))}
	for _, apply := range o {
		apply(&out)
	}
	if out.Tick == withState {
		out.Tick = r.stateTick()
	}
	if s := Stage(out.Stage); s != 0 && !slices.Contains(e.m.Queue.Stages, s) {
		panic(fmt.Sprintf("netloop: RPC.Send: method %q does not run at %s: its declaration allows %v", e.m.Queue.Name, s, e.m.Queue.Stages))
	}
	for _, c := range r.clients.list {
		if to.includes(c) {
			c.session.Send(out)
		}
	}
}

// Call declares a question that a client asks and the server answers. Q and R
// are message types like that of an [RPC].
type Call[Q, R any] struct{ m *schema.Method }

// NewCall declares a call. It panics if Q or R cannot travel.
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

// Handle sets the function that answers. Its answer leaves with the flush of
// the tick in which it ran. Only an error made by [Refuse] reaches the client in
// words; any other is logged and arrives as "internal error", and so does an
// answer that exceeds [MaxMessage] or a limit of its tags.
func (k *Call[Q, R]) Handle(r *Room, fn func(t *Tick, from *Client, q Q) (R, error)) {
	r.handle(k.m, func(t *Tick, from *Client, it *rpcqueue.Item) error {
		answer, err := fn(t, from, schema.Open[Q](it.Msg))
		if err != nil {
			from.refuse(it, err)
			return err
		}
		return (&owed{from: from, m: k.m, call: it.Call}).answer(schema.Erase(answer))
	})
}
