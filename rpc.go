package netloop

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// method is an RPC or a Call with its types erased.
type method struct {
	schema *Schema
	rq     rpcqueue.Method
	policy policy
	in     messageCodec
	out    messageCodec // of a Call's answer
}

func (m *method) kind() string {
	delivery := "unreliable"
	if m.rq.Reliable {
		delivery = "reliable"
	}
	if m.rq.Call {
		return "call " + delivery
	}
	return "rpc " + delivery
}

func (m *method) signature() string {
	if m.rq.Call {
		return m.in.signature() + " -> " + m.out.signature()
	}
	return m.in.signature()
}

// belongs reports a method of another schema than the room's: its id would name
// another method there.
func (m *method) belongs(room *Schema) error {
	if m.schema == room {
		return nil
	}
	return fmt.Errorf("method %q belongs to schema %q, but the room runs schema %q", m.rq.Name, m.schema.name, room.name)
}

// newMethod checks and registers a declaration.
func newMethod[M any](sc *Schema, name string, call bool, o []RPCOption) *method {
	sc.claim("method", name)
	in, err := newMessageCodec[M]()
	if err != nil {
		panic(fmt.Sprintf("netloop: method %q: %v", name, err))
	}
	m := &method{schema: sc, in: in, rq: rpcqueue.Method{
		Name: name, Call: call, Reliable: true, Decode: in.decode, Append: in.append,
	}}
	for _, apply := range o {
		apply(m)
	}
	if len(m.rq.Stages) == 0 {
		m.rq.Stages = []Stage{Update}
	}
	if err := m.settle(reflect.TypeFor[M]()); err != nil {
		panic(fmt.Sprintf("netloop: method %q: %v", name, err))
	}
	sc.methods = append(sc.methods, m)
	return m
}

// RPC declares a one-way message: from a client to the server, or from the
// server to clients. M is a plain struct (its fields are tagged as those of a
// [Class]) or a pointer to a protobuf message. Its handler runs exactly once per
// accepted message, at the stage that the declaration or the sender names.
type RPC[M any] struct{ m *method }

// NewRPC declares an RPC: reliable and in order, at Update, unless options say
// otherwise. It panics if M cannot travel; [Class] lists what can, and the tags.
func NewRPC[M any](sc *Schema, name string, o ...RPCOption) *RPC[M] {
	return &RPC[M]{newMethod[M](sc, name, false, o)}
}

func (e *RPC[M]) method() *method { return e.m }

// Handle sets the function that runs for each message of this kind that a
// client sends. It belongs into [Game] Open; a second handler for the same RPC
// fails it. The message is the handler's own. An error is counted and logged, one
// made by [Refuse] at level debug; the client hears of neither: use a [Call] where
// it should. A panic is isolated, and costs nobody else a message. from is nil for
// what the server itself has posted ([RPC.Post]).
func (e *RPC[M]) Handle(r *Room, fn func(t *Tick, from *Client, m M) error) {
	r.handle(e.m, func(t *Tick, from *Client, it *rpcqueue.Item) error {
		return fn(t, from, inside.Open[M](it.Msg))
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
	if err := e.m.belongs(r.schema); err != nil {
		panic("netloop: RPC.Send: " + err.Error())
	}
	out := transport.Message{Method: e.m.rq.ID, Reliable: e.m.rq.Reliable, Payload: r.encode(&e.m.rq, inside.Erase(m))}
	for _, apply := range o {
		apply(&out)
	}
	if out.Tick == withState {
		out.Tick = r.stateTick()
	}
	if s := Stage(out.Stage); s != 0 && !slices.Contains(e.m.rq.Stages, s) {
		panic(fmt.Sprintf("netloop: RPC.Send: method %q does not run at %s: its declaration allows %v", e.m.rq.Name, s, e.m.rq.Stages))
	}
	for _, c := range r.clients.list {
		if to.includes(c) {
			c.session.Send(out)
		}
	}
}

// Call declares a question that a client asks and the server answers. Q and R
// are message types like that of an [RPC].
type Call[Q, R any] struct{ m *method }

// NewCall declares a call. It panics if Q or R cannot travel.
func NewCall[Q, R any](sc *Schema, name string, o ...RPCOption) *Call[Q, R] {
	m := newMethod[Q](sc, name, true, o)
	out, err := newMessageCodec[R]()
	if err != nil {
		panic(fmt.Sprintf("netloop: method %q: %v", name, err))
	}
	m.out = out
	return &Call[Q, R]{m}
}

func (k *Call[Q, R]) method() *method { return k.m }

// Handle sets the function that answers. Its answer leaves with the flush of
// the tick in which it ran. Only an error made by [Refuse] reaches the client in
// words; any other is logged and arrives as "internal error", and so does an
// answer that exceeds [MaxMessage] or a limit of its tags.
func (k *Call[Q, R]) Handle(r *Room, fn func(t *Tick, from *Client, q Q) (R, error)) {
	r.handle(k.m, func(t *Tick, from *Client, it *rpcqueue.Item) error {
		answer, err := fn(t, from, inside.Open[Q](it.Msg))
		if err != nil {
			from.refuse(it, err)
			return err
		}
		return (&owed{from: from, m: k.m, call: it.Call}).answer(inside.Erase(answer))
	})
}
