package netloop

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Reply is the answer that a [Call.HandleLater] function owes to the client that
// asked. It may be kept and used in any later tick of its room.
type Reply[R any] struct{ o *owed }

// owed is an answer that a client waits for. It belongs to the room's goroutine.
type owed struct {
	from  *Client
	m     *schema.Method
	call  uint64
	until time.Duration // game time at which the client no longer waits
	sent  bool
}

// HandleLater sets the function that takes the question; the answer is sent with
// [Reply.Send], at once or in any later tick: after work given to [Go], when a
// timer ends, or when another player has decided. An answer must come within the
// [Timeout] of the call, or the client stops waiting. A client to which too many
// answers are owed ([RPCLimits] Answers) is refused with [CodeBusy]. A panic
// answers as it does in [Call.Handle].
func (k *Call[Q, R]) HandleLater(r *Room, fn func(t *Tick, from *Client, q Q, reply Reply[R])) {
	r.handle(k.m, func(t *Tick, from *Client, it *rpcqueue.Item) error {
		o := from.owe(t, k.m, it)
		if o == nil {
			err := Refuse(CodeBusy, "%s: %d answers are owed already", k.m.Queue.Name, r.server.cfg.RPC.Answers)
			from.refuse(it, err)
			return err
		}
		r.owing = o
		fn(t, from, schema.Open[Q](it.Msg), Reply[R]{o})
		r.owing = nil
		return nil
	})
}

// owe notes that an answer is owed, or returns nil if too many are. What was
// answered, or is no longer waited for, is cleared away when the room for it is
// needed.
func (c *Client) owe(t *Tick, m *schema.Method, it *rpcqueue.Item) *owed {
	if limit := c.room.server.cfg.RPC.Answers; len(c.owes) >= limit {
		c.owes = slices.DeleteFunc(c.owes, func(o *owed) bool { return !o.waits(t) })
		if len(c.owes) >= limit {
			return nil
		}
	}
	o := &owed{from: c, m: m, call: it.Call, until: t.now.GameTime + m.Timeout}
	c.owes = append(c.owes, o)
	return o
}

func (o *owed) waits(t *Tick) bool {
	return !o.sent && o.from.joined && t.now.GameTime <= o.until
}

// Waiting reports whether the client still waits for the answer: it has not been
// sent, the client has not left, and the call has not timed out.
func (p Reply[R]) Waiting(t *Tick) bool {
	p.check(t, "Reply.Waiting")
	return p.o.waits(t)
}

var errAnsweredTwice = errors.New("it has answered a call twice")

// Send answers the call, with the flush of this tick: with v, or with err if it
// is not nil, of which the client reads what [Refuse] says and otherwise
// "internal error". There is exactly one answer: a second is counted and logged,
// and one that nobody waits for any more is counted; neither is sent.
func (p Reply[R]) Send(t *Tick, v R, err error) {
	r := p.check(t, "Reply.Send")
	o, m := p.o, p.o.m
	switch {
	case o.sent:
		r.server.metrics.AddDrop("reply", "second", 1)
		r.guard.Failed(handlerOf(&m.Queue), errAnsweredTwice, "from", uint64(o.from.id))
		return
	case !o.from.joined:
		r.server.metrics.AddDrop("reply", "client_gone", 1)
	case t.now.GameTime > o.until:
		r.server.metrics.AddDrop("reply", "timed_out", 1)
	default:
		if err == nil {
			err = o.answer(schema.Erase(v))
		} else {
			o.from.refuseCall(m.Queue.ID, o.call, err)
		}
		if _, _, said := public(err); err != nil && !said {
			r.guard.Failed(handlerOf(&m.Queue), err, "from", uint64(o.from.id))
		}
	}
	o.sent = true
}

func (p Reply[R]) check(t *Tick, what string) *Room {
	r := t.server(what)
	if p.o == nil {
		panic("netloop: " + what + ": the zero Reply answers nothing: use the one that HandleLater was given")
	}
	if p.o.from.room != r {
		panic(fmt.Sprintf("netloop: %s: the call %q was asked in another room", what, p.o.m.Queue.Name))
	}
	return r
}

// answer sends a result, or says that it cannot travel.
func (o *owed) answer(v any) error {
	r := o.from.room
	payload, err := o.m.Out.Append(r.payload[:0], v)
	if err == nil {
		err = transport.CheckPayload(len(payload), true)
	}
	if err != nil {
		o.from.refuseCall(o.m.Queue.ID, o.call, err)
		return err
	}
	r.payload = payload
	o.from.session.Send(transport.Message{Method: o.m.Queue.ID, Call: o.call, Reply: true, Reliable: true, Payload: payload})
	return nil
}

// panicked answers for a handler that panicked: internal error, unless it had
// answered before.
func (r *Room) panicked(it *rpcqueue.Item) {
	o := r.owing
	r.owing = nil
	switch c, ok := r.clients.get(ClientID(it.From)); {
	case !ok || it.Call == 0, o != nil && o.sent:
	case o != nil:
		o.sent = true
		fallthrough
	default:
		c.refuse(it, errPanicked)
	}
}

var errPanicked = errors.New("netloop: the handler panicked")
