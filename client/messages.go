package client

import (
	"errors"
	"fmt"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// messages sends the client's messages and calls, and queues the server's messages for their stage.
// Only Step's goroutine uses it.
type messages struct {
	*core
	conn    *connection
	queue   *rpcqueue.Queue[*netloop.Tick]
	held    held
	calls   calls
	handles []byte          // one bit for each method that the room handles; empty: unknown
	warned  map[uint32]bool // methods that the server lacks, by id
	payload []byte          // scratch of encode
}

// receive queues a message for its stage, or delivers an answer to its call.
func (ms *messages) receive(t *netloop.Tick, a *transport.Arrival, tick uint64) {
	m := &a.Message
	if m.Reply {
		ms.calls.answer(t, m, a.Decoded)
		return
	}
	method, ok := ms.schema.RPCs().ByID(m.Method)
	if !ok {
		ms.stats.Unknown++
		return
	}
	it := rpcqueue.Item{Method: method, Stage: netloop.Stage(m.Stage), Msg: a.Decoded}
	if !ms.held.hold(heldMessage{item: it, tick: m.Tick, arrived: tick, size: a.Size}, ms.push) {
		ms.push(it)
	}
}

// push queues a message for its stage.
func (ms *messages) push(it rpcqueue.Item) {
	if out := ms.queue.Push(it); !out.Queued() {
		ms.stats.Rejected++
	}
}

// reached runs the messages that waited for the state of a tick.
func (ms *messages) reached(tick uint64) { ms.held.reached(tick, ms.push) }

// send sends a message, or returns the reason why it cannot be sent.
func (ms *messages) send(m *schema.Method, msg any, call uint64, o []netloop.SendOption) error {
	ms.mustKnow(m, "sending")
	id, payload, err := ms.encode(m, msg)
	out := transport.Message{Method: id, Reliable: m.Queue.Reliable, Call: call, Payload: payload}
	var send schema.Send
	if len(o) > 0 {
		send = bridge.Netloop.Send(o)
	}
	switch {
	case send.WithState:
		panic(fmt.Sprintf("client: sending %q: WithState is for the server: a client sends no state", m.Queue.Name))
	case m.ServerOnly:
		panic(fmt.Sprintf("client: sending %q: it is declared as ServerOnly", m.Queue.Name))
	case !send.AllowedBy(m):
		panic(fmt.Sprintf("client: sending %q: it does not run at %s: its declaration allows %v", m.Queue.Name, send.Stage, m.Queue.Stages))
	}
	out.Stage = uint8(send.Stage)
	if err == nil && call == 0 && !ms.handled(id) { // The server answers calls in any case.
		ms.stats.Unsent++
		err = &netloop.Refusal{Code: netloop.CodeUnknownMethod, Text: fmt.Sprintf("room does not handle %q: call netloop.RPC.Handle in its Open", m.Queue.Name)}
		ms.warn(m, err)
	}
	if err != nil {
		return err
	}
	if ms.conn.rejoin != nil && !out.Reliable {
		ms.stats.Dropped++ // The message is lost like any message lost in transit.
		return nil
	}
	if ms.conn.session == nil || ms.conn.ended() != nil || !ms.conn.session.Send(out) {
		ms.stats.Dropped++
		return ms.sendError()
	}
	return nil
}

// sendError returns the reason why messages cannot be sent.
func (ms *messages) sendError() error {
	if closed := ms.conn.ended(); closed != nil {
		return closed
	}
	if ms.conn.rejoin != nil {
		return errors.New("client: connection is broken, and the message cannot be queued")
	}
	return errors.New("client: not connected")
}

// handled reports whether the room handles a method. It is true if the room has sent no list of
// methods.
func (ms *messages) handled(id uint32) bool {
	at := int(id-1) / 8
	return len(ms.handles) == 0 || at < len(ms.handles) && ms.handles[at]>>((id-1)%8)&1 != 0
}

// mustKnow panics for a method of another schema, because its id would select another method of
// this schema.
func (ms *messages) mustKnow(m *schema.Method, doing string) {
	if own, _ := ms.schema.RPCs().ByID(m.Queue.ID); own != &m.Queue {
		panic(fmt.Sprintf("client: %s %q: it belongs to another schema than Config.Schema", doing, m.Queue.Name))
	}
}

// encode makes the payload of a message and finds the server's id of its method. It counts and
// returns an error if the message exceeds the limits of its declaration or of the wire, or if the
// server, of another build, cannot accept it.
func (ms *messages) encode(m *schema.Method, msg any) (id uint32, payload []byte, err error) {
	id, layout, known := m.Queue.ID, m.In.Append, true
	if ms.conn.served != nil {
		var to schema.ForeignMethod
		to, known = ms.conn.served.Method(id)
		id, layout = to.ID, to.Append
	}
	if known {
		if payload, err = ms.payloadOf(m, layout, msg); err == nil {
			return id, payload, nil
		}
	}
	ms.stats.Unsent++
	if _, own := ms.payloadOf(m, m.In.Append, msg); own != nil { // Not a matter of builds.
		return id, nil, fmt.Errorf("client: sending %q: %w: %w", m.Queue.Name, ErrDoesNotFit, own)
	}
	if !known {
		err = &netloop.Refusal{Code: netloop.CodeUnknownMethod, Text: fmt.Sprintf("the server has no method %q", m.Queue.Name)}
	} else {
		err = &netloop.Refusal{Code: netloop.CodeInvalid, Text: fmt.Sprintf("the server's build cannot take this %q: %v", m.Queue.Name, err)}
	}
	ms.warn(m, err)
	return id, nil, err
}

// warn logs, once for each method and connection, that the server cannot accept its messages.
func (ms *messages) warn(m *schema.Method, err error) {
	if !ms.warned[m.Queue.ID] {
		ms.warned[m.Queue.ID] = true
		ms.log.Warn("a message cannot be sent to this server; further ones of this method are only counted", "method", m.Queue.Name, "error", err)
	}
}

// ErrDoesNotFit is wrapped by the error of a message that exceeds a limit of its declaration or of
// the wire: usually a text that a player typed. [netloop.Truncate] shortens a text.
var ErrDoesNotFit = errors.New("the message does not fit")

// payloadOf makes the payload in the given layout. It is valid until the next call.
func (ms *messages) payloadOf(m *schema.Method, layout func([]byte, any) ([]byte, error), msg any) ([]byte, error) {
	payload, err := layout(ms.payload[:0], msg)
	if err == nil {
		err = transport.CheckPayload(len(payload), m.Queue.Reliable)
	}
	if err != nil {
		return nil, err
	}
	ms.payload = payload
	return payload, nil
}

// held stores the messages of netloop.WithState that wait for their state. They run in the order of
// their arrival; messages without a state overtake them. Only Step's goroutine uses it.
type held struct {
	queue []heldMessage // oldest first
	bytes int
	state uint64 // the tick that the state has reached
	early uint64 // messages that ran before their state, because of a limit
}

type heldMessage struct {
	item    rpcqueue.Item
	tick    uint64 // tick of the state for which it waits
	arrived uint64 // estimate of the server's tick at its arrival
	size    int
}

// The limits of held messages. A message waits a few ticks for its state on a healthy link; if no
// snapshot arrives for two seconds (at 60 Hz), a message without its state is better than no
// message.
const (
	maxHeld      = 256
	maxHeldBytes = 64 << 10
	maxHeldTicks = 120
)

// hold stores a message, or reports false if its state has arrived, which is always the case for
// tick 0. run runs messages that are removed to make room.
func (h *held) hold(m heldMessage, run func(rpcqueue.Item)) bool {
	if m.tick <= h.state {
		return false
	}
	for len(h.queue) > 0 && (len(h.queue) >= maxHeld || h.bytes+m.size > maxHeldBytes) {
		h.early++
		run(h.pop())
	}
	h.queue = append(h.queue, m)
	h.bytes += m.size
	return true
}

// reached records the tick that the state has reached with a whole snapshot, and runs the messages
// that waited for it.
func (h *held) reached(tick uint64, run func(rpcqueue.Item)) {
	h.state = max(h.state, tick)
	for len(h.queue) > 0 && h.queue[0].tick <= h.state {
		run(h.pop())
	}
}

// expire runs the messages that at tick now have waited for maxHeldTicks or longer. With
// math.MaxUint64 it runs all messages.
func (h *held) expire(now uint64, run func(rpcqueue.Item)) {
	for len(h.queue) > 0 && now >= h.queue[0].arrived+maxHeldTicks {
		h.early++
		run(h.pop())
	}
}

func (h *held) pop() rpcqueue.Item {
	m := h.queue[0]
	h.queue[0] = heldMessage{} // The message belongs to its handler now.
	h.queue = h.queue[1:]
	h.bytes -= m.size
	return m.item
}
