package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// Send sends a message to the server with the next flush. It belongs to Step's
// goroutine. Before the connection and after its end it is dropped and counted.
// It panics if the message exceeds what its declaration or the wire allows.
func Send[M any](c *Client, e *netloop.RPC[M], m M, o ...netloop.SendOption) {
	c.send(inside.Netloop.Method(e), inside.Erase(m), 0, o)
}

func (c *Client) send(m inside.Method, msg any, call uint64, o []netloop.SendOption) bool {
	if own, _ := c.schema.RPCs.ByID(m.Queue.ID); own != m.Queue {
		panic("client: sending " + m.Queue.Name + ": it belongs to another schema than Config.Schema")
	}
	payload, err := m.Queue.Append(c.payload[:0], msg)
	if err == nil {
		err = transport.CheckPayload(len(payload), m.Queue.Reliable)
	}
	if err != nil {
		panic("client: sending " + m.Queue.Name + ": " + err.Error())
	}
	c.payload = payload
	out := transport.Message{Method: m.Queue.ID, Reliable: m.Queue.Reliable, Call: call, Payload: payload}
	for _, apply := range o {
		apply(&out)
	}
	if c.session == nil || c.Closed() != nil || !c.session.Send(out) {
		c.stats.Dropped++
		return false
	}
	return true
}

// Handle sets what happens when the server sends a message of this kind: fn runs
// inside Step, at the stage that the message names. It may be set once.
func Handle[M any](c *Client, e *netloop.RPC[M], fn func(*netloop.Tick, M)) {
	err := c.rpcs.Handle(inside.Netloop.Method(e).Queue, func(t *netloop.Tick, it *rpcqueue.Item) error {
		fn(t, inside.Open[M](it.Msg))
		return nil
	})
	if err != nil {
		panic("client: " + err.Error())
	}
}

// calls are the questions that wait for an answer. They belong to Step's
// goroutine.
type calls struct {
	last    uint64 // id of the newest
	oldest  uint64 // none with a smaller id waits
	pending map[uint64]pendingCall
}

type pendingCall struct {
	then     func(t *netloop.Tick, answer any, err error)
	deadline time.Duration
}

// callTimeout is how long an answer may take.
const callTimeout = 10 * time.Second

// ErrTimeout is the error of a call that was not answered within 10 s.
var ErrTimeout = errors.New("client: the call was not answered in time")

// Ask asks the server. then gets the answer inside a later Step, in EarlyUpdate,
// or an error: a *netloop.Refusal in the server's words, [ErrTimeout], or a
// *netloop.Closed when the connection ended first. It belongs to Step's
// goroutine.
func Ask[Q, R any](c *Client, k *netloop.Call[Q, R], q Q, then func(*netloop.Tick, R, error), o ...netloop.SendOption) {
	id := c.calls.last + 1
	c.calls.last = id
	c.calls.pending[id] = pendingCall{
		deadline: c.clock.Now() + callTimeout,
		then: func(t *netloop.Tick, answer any, err error) {
			var r R
			if err == nil {
				r = inside.Open[R](answer)
			}
			c.guard("Ask", func() { then(t, r, err) })
		},
	}
	if !c.send(inside.Netloop.Method(k), inside.Erase(q), id, o) {
		c.later(func(t *netloop.Tick) { c.calls.finish(t, id, nil, c.sendError()) })
	}
}

// sendError says why nothing can be sent.
func (c *Client) sendError() error {
	if closed := c.Closed(); closed != nil {
		return closed
	}
	return errors.New("client: not connected")
}

// Await asks the server and waits for the answer, while another goroutine runs
// Step or Run. In a callback it would wait for itself: use [Ask] there.
func Await[Q, R any](ctx context.Context, c *Client, k *netloop.Call[Q, R], q Q, o ...netloop.SendOption) (R, error) {
	type answer struct {
		r   R
		err error
	}
	done := make(chan answer, 1) // Size 1: the answer may come after ctx has ended.
	if closed := c.Closed(); closed != nil {
		return answer{}.r, closed
	}
	c.later(func(*netloop.Tick) {
		if ctx.Err() != nil {
			return // Nobody waits any more.
		}
		Ask(c, k, q, func(_ *netloop.Tick, r R, err error) { done <- answer{r, err} }, o...)
	})
	select {
	case a := <-done:
		return a.r, a.err
	case <-c.done:
		return answer{}.r, c.Closed()
	case <-ctx.Done():
		return answer{}.r, ctx.Err()
	}
}

// answer hands an answer to who asked. One that nobody waits for any more is
// ignored.
func (cs *calls) answer(t *netloop.Tick, m *transport.Message, decoded any) {
	if m.Code != 0 {
		cs.finish(t, m.Call, nil, inside.Netloop.Refusal(transport.Code(m.Code), m.Text))
		return
	}
	cs.finish(t, m.Call, decoded, nil)
}

func (cs *calls) finish(t *netloop.Tick, id uint64, answer any, err error) {
	call, ok := cs.pending[id]
	if !ok {
		return
	}
	delete(cs.pending, id)
	call.then(t, answer, err)
}

// expire fails what has waited too long, oldest first: all wait equally long.
func (cs *calls) expire(t *netloop.Tick, now time.Duration) {
	for ; cs.oldest <= cs.last; cs.oldest++ {
		call, waits := cs.pending[cs.oldest]
		if waits && now < call.deadline {
			return
		}
		cs.finish(t, cs.oldest, nil, ErrTimeout)
	}
}

// fail fails everything, oldest first.
func (cs *calls) fail(t *netloop.Tick, err error) {
	for _, id := range slices.Sorted(maps.Keys(cs.pending)) {
		cs.finish(t, id, nil, err)
	}
}
