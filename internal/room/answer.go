package room

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Answer is the pending answer to a client's call. It belongs to the room's goroutine.
type Answer struct {
	from    *Client
	m       *schema.Method
	call    uint64
	program uint64        // the client's presence.program at the time of the call
	until   time.Duration // game time at which the client's call times out
	sent    bool
}

// Asker handles a call and answers it at once, with a result or an error.
type Asker func(from *Client, msg any) (result any, err error)

// HandleCall registers the handler of a call that is answered at once.
func (q *Messages) HandleCall(m *schema.Method, fn Asker) error {
	return q.Handle(m, func(from *Client, it *rpcqueue.Item) error {
		result, err := fn(from, it.Msg)
		if err != nil {
			from.refuse(it, err)
			return err
		}
		return from.send(m, it.Call, result)
	})
}

// HandleLater registers the handler of a call that is answered at once or in a later tick.
func (q *Messages) HandleLater(m *schema.Method, fn func(from *Client, msg any, o *Answer)) error {
	return q.Handle(m, func(from *Client, it *rpcqueue.Item) error {
		o := from.newAnswer(m, it)
		if o == nil {
			err := transport.Refuse(transport.CodeBusy, "%s: %d answers are pending already", m.Queue.Name, q.cfg.Answers)
			from.refuse(it, err)
			return err
		}
		q.deferred = o
		fn(from, it.Msg, o)
		q.deferred = nil
		return nil
	})
}

// newAnswer adds a pending answer, or returns nil if too many are pending. It removes sent and
// expired answers when it needs their slots.
func (c *Client) newAnswer(m *schema.Method, it *rpcqueue.Item) *Answer {
	if limit := c.room.cfg.Answers; len(c.answers) >= limit {
		c.answers = slices.DeleteFunc(c.answers, func(o *Answer) bool { return !o.Waiting() })
		if len(c.answers) >= limit {
			return nil
		}
	}
	o := &Answer{from: c, m: m, call: it.Call, program: c.program, until: c.room.now.GameTime + m.Timeout}
	c.answers = append(c.answers, o)
	return o
}

// Room returns the room in which the call was made.
func (o *Answer) Room() *Room { return o.from.room }

// Method returns the name of the called method.
func (o *Answer) Method() string { return o.m.Queue.Name }

// Waiting reports whether the client still waits for the answer.
func (o *Answer) Waiting() bool {
	return !o.sent && o.there() && o.from.room.now.GameTime <= o.until
}

// there reports whether the client is still in the room, connected or not, and still runs the
// program that made the call.
func (o *Answer) there() bool { return o.from.joined && o.program == o.from.program }

var errAnsweredTwice = errors.New("it has answered a call twice")

// Send answers the call with the flush of this tick: with result, or with err if it is not nil. A
// second answer is counted and logged, a late answer is counted; neither is sent.
func (o *Answer) Send(result any, err error) {
	r := o.from.room
	switch {
	case o.sent:
		r.metrics.Drops.Add(1, "reply", "second")
		r.guard.Failed(handlerOf(&o.m.Queue), errAnsweredTwice, "from", o.from.id)
		return
	case !o.there():
		r.metrics.Drops.Add(1, "reply", "client_gone")
	case r.now.GameTime > o.until:
		r.metrics.Drops.Add(1, "reply", "timed_out")
	default:
		if err == nil {
			err = o.from.send(o.m, o.call, result)
		} else {
			o.from.refuseCall(o.m.Queue.ID, o.call, err)
		}
		if _, said := transport.Declined(err); err != nil && !said {
			r.guard.Failed(handlerOf(&o.m.Queue), err, "from", o.from.id)
		}
	}
	o.sent = true
}

// send sends a result, or an error if the result cannot be encoded.
func (c *Client) send(m *schema.Method, call uint64, result any) error {
	payload, err := c.room.Messages.encode(&m.Out, true, result)
	if err != nil {
		c.refuseCall(m.Queue.ID, call, err)
		return err
	}
	c.transmit(transport.Message{Method: m.Queue.ID, Call: call, Reply: true, Reliable: true, Payload: payload})
	return nil
}

// Encode returns the payload of a message, valid until the next call: sessions copy it. It panics
// if the message exceeds the limits of its declaration or of the wire, because then the game has a
// fault.
func (q *Messages) Encode(m *schema.Method, msg any) []byte {
	payload, err := q.encode(&m.In, m.Queue.Reliable, msg)
	if err != nil {
		panic(fmt.Sprintf("netloop: sending %q: %v", m.Queue.Name, err))
	}
	if len(q.watched) > 0 {
		q.sentPayload(m, payload)
	}
	return payload
}

func (q *Messages) encode(c *schema.Codec, reliable bool, msg any) ([]byte, error) {
	payload, err := c.Append(q.payload[:0], msg)
	if err == nil {
		err = transport.CheckPayload(len(payload), reliable)
	}
	if err == nil {
		q.payload = payload
	}
	return payload, err
}

// Send sends a message to the client, with the flush of this tick.
func (c *Client) Send(m transport.Message) {
	if c.IsFeed() {
		c.room.feed.send(m)
	} else if c.session != nil { // A client without a session is the spectator feed after its end.
		c.transmit(m)
	}
}
