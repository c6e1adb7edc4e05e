package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
)

// Send sends a message to the server with the next flush. Call it from Step's goroutine. If a
// message cannot be sent, it is counted ([Stats]), and Send returns an error, which a game may
// ignore if it does not report it to the player. The error wraps [ErrDoesNotFit] if the message
// exceeds a limit of its tags or [netloop.MaxMessage]. It is a *netloop.Closed after the end of the
// client, and a *netloop.Refusal if the server's build does not have the method, or has lower
// limits for it, or if the game of the room has no handler for it. While the client reconnects,
// unreliable messages are dropped and counted without an error, and reliable messages wait, up to
// 128 KiB, if the server keeps the client's seat. Reliable messages arrive exactly once and in
// order, unless the seat is gone: see [Reconnect].
//
// Send panics for programming errors: an RPC of another schema, [netloop.RunAt] with a stage that
// the declaration does not permit, [netloop.WithState], and an RPC that is [netloop.ServerOnly].
func Send[M any](c *Client, e *netloop.RPC[M], m M, o ...netloop.SendOption) error {
	return c.messages.send(bridge.Netloop.Method(e), schema.Erase(m), 0, o)
}

// Handle sets the handler of the server's messages of this kind: fn runs inside Step, at the stage
// of the message. Handle panics if the handler is set twice, and with an RPC of another schema.
func Handle[M any](c *Client, e *netloop.RPC[M], fn func(*netloop.Tick, M)) {
	m := bridge.Netloop.Method(e)
	c.messages.mustKnow(m, "handling")
	err := c.messages.queue.Handle(&m.Queue, func(t *netloop.Tick, it *rpcqueue.Item) error {
		fn(t, schema.Open[M](it.Msg))
		return nil
	})
	if err != nil {
		panic("client: Handle: " + err.Error())
	}
}

// Call calls a method of the server. The function then gets the answer inside a later Step, in
// EarlyUpdate, or an error. The error is a *netloop.Refusal from the server, or with
// CodeUnknownMethod if the server's build does not have the call; [ErrTimeout]; an error that wraps
// [ErrDoesNotFit] if the request exceeds a limit, as in [Send]; [ErrTooManyCalls]; or a
// *netloop.Closed if the client ended first, or its seat was gone when it reconnected
// ([Reconnect]). then must not be nil: its call would panic, which is logged and counted. Use Call
// on Step's goroutine. Call panics if 1 024 calls of one frame have been refused with
// ErrTooManyCalls, because then the game calls in a loop.
func Call[Q, R any](c *Client, k *netloop.Call[Q, R], q Q, then func(*netloop.Tick, R, error), o ...netloop.SendOption) {
	startCall(c, k, q, then, o)
}

// startCall starts a call and returns the id of the call, or 0 if it was refused.
func startCall[Q, R any](c *Client, k *netloop.Call[Q, R], q Q, then func(*netloop.Tick, R, error), o []netloop.SendOption) uint64 {
	answered := func(t *netloop.Tick, answer any, err error) {
		var r R
		if err == nil {
			r = schema.Open[R](answer)
		}
		c.call("Call", func() { then(t, r, err) })
	}
	m := bridge.Netloop.Method(k)
	if len(c.messages.calls.waiting) >= maxCalls {
		if c.messages.calls.refused++; c.messages.calls.refused > maxCalls {
			panic(fmt.Sprintf("client: Call of %q: too many calls wait for their answers: call again after one is answered", m.Queue.Name))
		}
		c.post(func(t *netloop.Tick) { answered(t, nil, ErrTooManyCalls) })
		return 0
	}
	// Send first, because send may panic, and then no call must be registered.
	err := c.messages.send(m, schema.Erase(q), c.messages.calls.last+1, o)
	id := c.messages.calls.add(m.Queue.ID, c.clock.Now(), m.Timeout, answered)
	if err != nil {
		c.post(func(t *netloop.Tick) { c.messages.calls.fail(t, id, err) })
	}
	return id
}

// Await calls a method of the server and waits for the answer, while another goroutine runs Step or
// Run. In a callback it would wait for ever: use [Call] there. When ctx ends, it returns the
// context's error; a later answer is dropped and counted. The server is not informed of this, and
// still answers, at the latest after the call's [netloop.Timeout]. At most 1 024 calls may wait for
// the next Step; a further call fails with [ErrTooManyCalls].
func Await[Q, R any](ctx context.Context, c *Client, k *netloop.Call[Q, R], q Q, o ...netloop.SendOption) (R, error) {
	type answer struct {
		r   R
		err error
	}
	done := make(chan answer, 1) // Size 1: the answer may arrive after ctx has ended.
	if closed := c.Closed(); closed != nil {
		return answer{}.r, closed
	}
	var id uint64 // Step's goroutine
	if !c.tryPost(func(*netloop.Tick) {
		if ctx.Err() != nil {
			return // The caller no longer waits.
		}
		defer func() {
			// Panic on the goroutine of the caller, because the caller made the mistake.
			if v := recover(); v != nil {
				done <- answer{err: fmt.Errorf("client: Await: %s", strings.TrimPrefix(fmt.Sprint(v), "client: "))}
			}
		}()
		id = startCall(c, k, q, func(_ *netloop.Tick, r R, err error) { done <- answer{r, err} }, o)
	}) {
		return answer{}.r, ErrTooManyCalls
	}
	select {
	case a := <-done:
		return a.r, a.err
	case <-c.conn.done:
		return answer{}.r, c.Closed()
	case <-ctx.Done():
		// If tryPost reports false, the call ends with its timeout.
		c.tryPost(func(*netloop.Tick) { c.messages.calls.take(id) })
		return answer{}.r, ctx.Err()
	}
}
