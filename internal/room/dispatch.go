package room

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// The path of a message, from the poll that finds it decoded to the end of its handler:
//
//	receive    puts the message into the queue of its stage, which may refuse it
//	drain      runs the waiting messages of a stage
//	Handle     wraps the game's function: finds the sender, and first runs the declared checks
//	failed     logs an error of the function; panicked, its panic
//	refuse     answers with an error, if the message was a call

// Messages is a room's queue of messages, with their handlers.
type Messages struct {
	*core
	queue *rpcqueue.Queue[struct{}]
	// measures the cost of messages; the queue gets the resulting prices through source.prices
	tariff     *rpcqueue.Tariff
	prices     []rpcqueue.Price                   // scratch of priceChanges
	handled    atomic.Pointer[[]byte]             // bit set of methods with a handler, for welcomes
	deferred   *Answer                            // the answer that the running handler sends later
	unanswered uint64                             // calls that got neither a handler nor an answer
	payload    []byte                             // scratch of Encode
	limits     panicguard.Throttle[rpcqueue.Rung] // throttles the log of exceeded limits
	penalise   func(*Client)
	watched    map[uint32]*payloadWatch // by method id; empty: nobody looks at payloads
	unhandled  []*schema.Method         // of which a message without a handler is logged
	waits      waits
}

// open creates the queue.
func (q *Messages) open() error {
	q.queue = rpcqueue.New[struct{}](q.schema.RPCs())
	q.handled.Store(&[]byte{0})
	q.queue.OnPanic, q.queue.OnError, q.queue.OnLimit = q.panicked, q.failed, q.limited
	q.tariff = rpcqueue.NewTariff(q.schema.RPCs(), func() time.Duration { return q.clock.Now() })
	q.queue.Tariff = q.tariff
	return q.queue.SetLimits(q.cfg.Limits)
}

// begin starts a tick.
func (q *Messages) begin(in *loop.Input) {
	if len(q.watched) > 0 {
		q.expireWatches()
	}
	q.expireWaits()
	q.queue.Begin(in.Tick, in.GameTime)
	q.queue.SetPrices(q.source.prices())
}

// priceChanges returns the changed costs of messages. The slice is valid until the next call.
func (q *Messages) priceChanges() []rpcqueue.Price {
	q.prices = q.tariff.Changes(q.prices[:0])
	return q.prices
}

// receive queues a message for its stage. The queue counts a message that it rejects; for a
// rejected call the client is sent the reason. Messages of a client that was kicked, or refused by
// OnJoin, are dropped.
func (q *Messages) receive(c *Client, a *transport.Arrival) {
	if c.kicked != nil {
		q.metrics.Drops.Add(1, "rpc", "kicked")
		return
	}
	it := rpcqueue.Item{
		From: c.id, Stage: loop.Stage(a.Message.Stage), Call: a.Message.Call, Msg: a.Decoded, NoRoom: a.Kind == transport.NoRoom,
		Held: uint32(a.Held), Holds: a.Session, At: a.At,
	}
	name := rpcqueue.UnknownName
	m, ok := a.Method.(*schema.Method)
	if it.NoRoom { // The method of such a message was not looked up before.
		m, ok = q.schema.Method(a.Message.Method)
	}
	if ok {
		it.Method, name = &m.Queue, m.Queue.Name
	}
	out := q.queue.Push(it)
	if ok && len(q.watched) > 0 {
		q.arrivedPayload(c, m, a, out)
	}
	if out.Queued() {
		a.Held = 0 // The message is held until its handler has ended.
		return
	}
	if out == rpcqueue.NoHandler && !slices.Contains(q.unhandled, m) {
		q.unhandled = append(q.unhandled, m) // At most the methods of the schema.
		q.log.Info("a client has sent a message that this room does not handle: call its Handle in the game's Open", "method", name, "from", c.id)
	}
	if it.Call != 0 && c.mayRefuse() {
		c.refuseCall(a.Message.Method, it.Call, transport.Refuse(outcomeCode(out), "%s: %s", name, out))
	}
}

// Waiting returns the number of waiting messages by sender. It visits each of them, and is for
// questions.
func (q *Messages) Waiting() map[uint64]int {
	n := map[uint64]int{}
	q.queue.Each(func(it *rpcqueue.Item) { n[it.From]++ })
	return n
}

// charge counts invalid data of a client as messages without a method, so that the limits of
// messages apply to it.
func (q *Messages) charge(c *Client, messages uint64) {
	if c.kicked != nil {
		q.metrics.Drops.Add(messages, "rpc", "kicked")
		return
	}
	for range messages { // The inbox limits their number.
		q.queue.Push(rpcqueue.Item{From: c.id})
	}
}

// outcomeCode returns the code of the answer to a call that was not queued.
func outcomeCode(o rpcqueue.Outcome) transport.Code {
	switch o {
	case rpcqueue.Full:
		return transport.CodeBusy
	case rpcqueue.UnknownStage, rpcqueue.StageNotAllowed:
		return transport.CodeStageNotAllowed
	case rpcqueue.UnknownMethod, rpcqueue.NoHandler:
		return transport.CodeUnknownMethod
	case rpcqueue.ClientLimited, rpcqueue.MethodLimited, rpcqueue.TickLimited:
		return transport.CodeFlood
	}
	return transport.CodeRefused
}

// drain is the system rpc.drain: it runs the messages of a stage.
func (q *Messages) drain(s loop.Stage) {
	q.watchdog.Stage(s)
	q.queue.Drain(s, struct{}{})
}

// Handler handles a message. from is nil for a message that the program posted to the room.
type Handler func(from *Client, it *rpcqueue.Item) error

// Handle registers the handler of a method.
func (q *Messages) Handle(m *schema.Method, fn Handler) error {
	if err := m.Belongs(q.schema); err != nil {
		return err
	}
	return q.handle(m, func(_ struct{}, it *rpcqueue.Item) error {
		if q.givenUp.Load() {
			return errSenderLeft
		}
		if it.From == 0 {
			return fn(nil, it)
		}
		from, ok := q.clients.get(it.From)
		if !ok {
			return errSenderLeft
		}
		q.from = from
		defer q.forget()
		if err := q.permits(m, from, it); err != nil {
			if it.Call != 0 {
				from.refuse(it, err)
			}
			return err
		}
		if q.givenUp.Load() { // The room was given up during a check.
			return errSenderLeft
		}
		return fn(from, it)
	})
}

// handle registers a handler, and records for welcomes that the method has one.
func (q *Messages) handle(m *schema.Method, fn rpcqueue.Handler[struct{}]) error {
	err := q.queue.Handle(&m.Queue, func(c struct{}, it *rpcqueue.Item) error {
		err := fn(c, it)
		if len(q.watched) > 0 {
			q.endPayload(it, rpcqueue.Ended(err))
		}
		return err
	})
	if err != nil {
		return err
	}
	id, old := m.Queue.ID-1, *q.handled.Load()
	now := make([]byte, max(len(old), int(id/8)+1))
	copy(now, old)
	now[id/8] |= 1 << (id % 8)
	q.handled.Store(&now)
	return nil
}

// Handles reports whether a method has a handler. Any goroutine may call it.
func (q *Messages) Handles(m *schema.Method) bool {
	id, bits := m.Queue.ID-1, *q.handled.Load()
	return int(id/8) < len(bits) && bits[id/8]>>(id%8)&1 != 0
}

// permits runs the checks of a client's message.
func (q *Messages) permits(m *schema.Method, from *Client, it *rpcqueue.Item) error {
	if err := from.maySend(m); err != nil {
		return err
	}
	for i := range m.Checks {
		if err := m.Checks[i].Ask(q.cfg.Tick, from.Game, it.Msg); err != nil {
			return err
		}
	}
	return nil
}

// errSenderLeft rejects a message of a client that has left in the same drain.
var errSenderLeft = &rpcqueue.Rejection{Why: rpcqueue.ClientGone, Err: transport.Refuse(transport.CodeLeft, "its client has left")}

// failed logs a handler's error. A refusal is an ordinary answer of the game.
func (q *Messages) failed(it *rpcqueue.Item, err error) {
	if _, refused := transport.Declined(err); refused {
		q.log.Debug("a handler refused a message", "method", it.Method.Name, "from", it.From, "error", err)
		return
	}
	q.guard.Failed(handlerOf(it.Method), err, "from", it.From)
}

// panicked counts a handler's panic, and answers a call with an internal error, unless the call was
// answered before.
func (q *Messages) panicked(it *rpcqueue.Item, v any, stack []byte) {
	q.guard.Panicked(handlerOf(it.Method), v, stack, "from", it.From)
	q.endPayload(it, rpcqueue.Panicked)
	o := q.deferred
	q.deferred = nil
	switch c, ok := q.clients.get(it.From); {
	case !ok || it.Call == 0, o != nil && o.sent:
	case o != nil:
		o.sent = true
		fallthrough
	default:
		c.refuse(it, errPanicked)
	}
}

var errPanicked = errors.New("netloop: the handler panicked")

func handlerOf(m *rpcqueue.Method) *panicguard.Func {
	return &panicguard.Func{Kind: panicguard.Handler, Name: m.Name}
}

// maxRefusals limits the calls of one client in a tick that are answered without a handler. Each
// answer costs a microsecond or two; further calls are not answered and time out.
const maxRefusals = 64

// mayRefuse counts a call of the client that no handler answers, and reports whether maxRefusals
// permits to answer it with an error.
func (c *Client) mayRefuse() bool {
	if tick := c.room.now.Tick; c.refusedIn != tick {
		c.refusedIn, c.refused = tick, 0
	}
	if c.refused++; c.refused <= maxRefusals {
		return true
	}
	c.room.Messages.unanswered++
	return false
}

// refuse answers a call with an error. The client is sent the code and text of a
// *transport.Refusal; for any other error it is only sent that the error is internal.
func (c *Client) refuse(it *rpcqueue.Item, err error) { c.refuseCall(it.Method.ID, it.Call, err) }

func (c *Client) refuseCall(method uint32, call uint64, err error) {
	declined, _ := transport.Declined(err)
	c.transmit(transport.Message{
		Method: method, Call: call, Reply: true, Reliable: true, Code: uint32(declined.Code), Text: declined.Text,
	})
}

// RoomHandler handles a message of another room; from is nil for a message posted by the program.
type RoomHandler func(from *Sender, it *rpcqueue.Item) error

// HandleRoom registers the handler of a method that clients do not send.
func (q *Messages) HandleRoom(m *schema.Method, fn RoomHandler) error {
	if err := m.Belongs(q.schema); err != nil {
		return err
	}
	return q.handle(m, func(_ struct{}, it *rpcqueue.Item) error {
		switch {
		case it.From != 0:
			return errForRooms
		case q.givenUp.Load():
			return errSenderLeft
		}
		return fn(SenderOf(it), it)
	})
}

// errForRooms rejects a client's message of a method that is for rooms only.
var errForRooms = &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: transport.Refuse(transport.CodeRefused, "only rooms may send it")}

// limited logs that a client exceeds its limits and, if it has reached the rung Kick, kicks all
// clients of its player. The queue calls it once per rung and episode. The log has one line per
// rung in ten seconds for all clients, with the number of suppressed lines, so that repeated
// connections cannot fill it.
func (q *Messages) limited(from uint64, m *rpcqueue.Method, rung rpcqueue.Rung) {
	name := rpcqueue.UnknownName
	if m != nil {
		name = m.Name
	}
	dry := q.cfg.Limits.Dry
	if kept, ok := q.limits.Allow(rung, q.now.GameTime); ok {
		q.log.Warn("a client exceeds the limits of messages", "from", from, "method", name, "reached", rung.String(), "dry", dry, "unlogged_before", kept)
	}
	c, ok := q.clients.get(from)
	if !ok || rung != rpcqueue.Kick || dry {
		return
	}
	for _, other := range q.clients.list { // A player may have several clients.
		same := c.join.Subject != "" && other.join.Subject == c.join.Subject
		if (other == c || same) && other.kicked == nil {
			other.kicked = &transport.Closed{Code: transport.CodeFlood, Text: "too many messages"}
			q.penalise(other)
		}
	}
}
