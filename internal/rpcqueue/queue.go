package rpcqueue

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/netloop/netloop/internal/fifo"
	"github.com/netloop/netloop/internal/loop"
)

// Item is one message.
type Item struct {
	Method *Method
	// From is the sender; 0: the message was posted, or sent by the server.
	From uint64
	// Stage is the requested stage; 0: the default stage of the method. In a handler it is the
	// running stage.
	Stage loop.Stage
	// NoRoom means that the sender has too much in flight: Push checks the message like any other,
	// but returns Full where it would queue it.
	NoRoom bool
	// Held is the amount in flight that Holds counts for the message. It is subtracted again when a
	// queued message has ended: its handler has returned, or Forget has dropped it.
	Held  uint32
	Holds Holds
	// Call identifies a call that expects an answer; 0: a one-way message.
	Call uint64
	// At is the time of arrival on the clock of Tariff, for Waits; 0: it is not known.
	At time.Duration
	// Msg holds a *M. It belongs to the handler.
	Msg any

	sender *sender // sender From, set by Push
}

// Holds counts an amount in flight: Held(n) adds n to it. A queue calls it with -Item.Held at the
// end of a message.
type Holds interface{ Held(n int) }

// end subtracts the amount in flight of the message from Holds.
func (it *Item) end() {
	if it.Holds != nil {
		it.Holds.Held(-int(it.Held))
	}
}

// Handler runs a message. The item is valid during the call; its Msg belongs to the handler, which
// may keep it. The handler must not change the item. An error or a panic is counted and reported,
// and does not affect other messages.
type Handler[C any] func(c C, it *Item) error

// Queue holds messages until their stage runs. Only the goroutine that runs the stages may use it.
type Queue[C any] struct {
	// OnPanic, if set, is called after a handler panicked. The item is valid during the call.
	OnPanic func(it *Item, v any, stack []byte)
	// OnError, if set, is called after a handler returned an error. The item is valid during the
	// call.
	OnError func(it *Item, err error)
	// OnLimit, if set, is called once per episode when a sender has reached a rung. m is the method
	// of the message that caused it, or nil if it is unknown.
	OnLimit func(from uint64, m *Method, r Rung)
	// Tariff, if set, measures the times of messages.
	Tariff *Tariff
	// Waits, if set, counts the waits of messages. It needs a Tariff.
	Waits *Waits

	table    *Table
	handlers []Handler[C] // by method id
	rings    [loop.NumStages + 1]ring
	pool     fifo.Pool[Item]
	prices   []time.Duration // by method id
	counts   counts
	senders  senders
	accounts accounts
	limits   limiter

	past   loop.Stage // the last stage that has run in this tick
	waited uint64     // messages that drains left waiting

	// The running drain.
	draining bool
	cur      Item // passed to its handler
	err      error
	caught   any
	stack    []byte
}

// New returns an empty queue for the methods of the table.
func New[C any](t *Table) *Queue[C] {
	q := &Queue[C]{
		table: t, handlers: make([]Handler[C], len(t.byID)), counts: newCounts(len(t.byID)),
		senders: senders{byID: map[uint64]*sender{}}, accounts: newAccounts(), limits: newLimiter(t),
	}
	for i := range q.rings {
		q.rings[i].pool = &q.pool
	}
	for range t.byID {
		q.prices = append(q.prices, InitialPrice)
	}
	return q
}

// SetLimits limits the load by senders. Call it before the first Push; the limits of methods apply
// without it.
func (q *Queue[C]) SetLimits(l Limits) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	q.limits.set(l)
	return nil
}

// Handle registers the handler of a method. A method has at most one.
func (q *Queue[C]) Handle(m *Method, h Handler[C]) error {
	switch {
	case m == nil || h == nil:
		return errors.New("Handle needs a method and a handler")
	case !q.table.holds(m):
		return fmt.Errorf("method %q is not in the table", m.Name)
	case q.handlers[m.ID] != nil:
		return fmt.Errorf("method %q has a handler already", m.Name)
	}
	q.handlers[m.ID] = h
	return nil
}

// Push queues a message, or counts and returns the reason why it was dropped. It copies the item
// and keeps Msg. The checks are made in the order of the package comment.
func (q *Queue[C]) Push(it Item) Outcome {
	it.sender = q.senders.get(it.From)
	if !q.table.holds(it.Method) {
		it.Method = nil
	}
	o, climbed := q.admit(&it)
	stage := it.Stage
	if o == UnknownStage || it.Method == nil || o == ClientLimited {
		stage = 0
	}
	if o.Queued() && (it.NoRoom || !q.rings[stage].push(&it)) {
		o = Full
	}
	q.counts.add(it.Method, stage, o)
	if climbed != Calm && q.OnLimit != nil {
		q.OnLimit(it.From, it.Method, climbed)
	}
	return o
}

// admit resolves the stage of a message and checks it. it.Method is nil if the method is unknown.
func (q *Queue[C]) admit(it *Item) (o Outcome, climbed Rung) {
	ok := true
	if it.From != 0 {
		ok, climbed = q.limits.sender(it.sender)
	}
	switch {
	case !ok:
		return ClientLimited, climbed
	case it.Method == nil:
		return UnknownMethod, climbed
	}
	m := it.Method
	if it.Stage == 0 {
		it.Stage = m.Default()
	}
	switch {
	case !it.Stage.Valid():
		return UnknownStage, climbed
	case !m.Allows(it.Stage):
		return StageNotAllowed, climbed
	case q.handlers[m.ID] == nil:
		return NoHandler, climbed
	}
	if it.From != 0 {
		o, r := q.limits.method(it.sender, m)
		climbed = max(climbed, r)
		if o != Accepted {
			return o, climbed
		}
	}
	switch {
	case it.Stage > q.past:
		return Accepted, climbed
	case m.LateDrop:
		return LateDropped, climbed
	}
	return Late, climbed
}

// Begin starts a tick at a game time: no stage has run in it. Queues persist across ticks; the
// limits of senders refill with game time.
func (q *Queue[C]) Begin(tick uint64, now time.Duration) {
	q.past = 0
	q.limits.begin(tick, now)
	q.accounts.expire(now)
}

// Drain runs the messages that were queued for the stage when Drain began, or each sender's share
// within Limits. It returns the number of messages that it ran. Call it once per tick and stage, in
// the order of the stages; skip it for a stage that does not run. Do not call it from a handler.
func (q *Queue[C]) Drain(s loop.Stage, c C) int {
	if !s.Valid() {
		panic(fmt.Sprintf("rpcqueue: Drain of stage %d: there is no such stage", s))
	}
	if q.draining {
		panic("rpcqueue: Drain called from a handler: the stage that runs drains its own queue only")
	}
	// Messages pushed for this stage from now until the drain ends are not late.
	q.past = s - 1
	n := q.drain(&q.rings[s], s, c)
	q.past = s
	return n
}

// drain runs the batch of a ring. The outcome of a message is counted before OnError or OnPanic is
// called. If that callback panics, the remaining messages stay queued.
func (q *Queue[C]) drain(r *ring, stage loop.Stage, c C) int {
	start := r.ran
	batch, cost := q.senders.plan(r, q.prices, q.limits.round, q.allowance(stage))
	q.limits.spent += cost
	q.waited += uint64(r.len() - batch)
	if batch > 0 {
		q.Tariff.begin()
	}
	q.draining = true
	defer func() {
		q.draining = false
		q.cur = Item{}
	}()
	for r.batch = uint64(batch); r.batch > 0; {
		q.caught, q.stack, q.err = nil, nil, nil
		q.walk(r, c)
		switch {
		case q.caught != nil:
			q.counts.add(q.cur.Method, q.cur.Stage, Panicked)
			if q.OnPanic != nil {
				q.OnPanic(&q.cur, q.caught, q.stack)
			}
		case q.err != nil:
			q.counts.add(q.cur.Method, q.cur.Stage, Ended(q.err))
			if q.OnError != nil {
				q.OnError(&q.cur, q.err)
			}
		default:
			continue
		}
		q.Tariff.ran(q.cur.Method, q.cur.From)
	}
	return int(r.ran - start)
}

// allowance returns the limits of a drain: it leaves time to the stages after it.
func (q *Queue[C]) allowance(stage loop.Stage) allowance {
	a := q.limits.allowance()
	for i := int(stage) + 1; i < len(q.rings); i++ {
		if q.rings[i].len() > 0 {
			a.all /= 2
			break
		}
	}
	return a
}

// walk runs messages until the batch is empty or one fails, which sets q.err or q.caught. One
// deferred call serves the whole batch.
func (q *Queue[C]) walk(r *ring, c C) {
	defer q.isolate()
	for r.batch > 0 {
		r.pop(&q.cur)
		r.batch--
		m, stage := q.cur.Method, q.cur.Stage
		if q.Waits != nil {
			q.Waits.add(&q.cur, q.Tariff.last)
		}
		q.err = q.handlers[m.ID](c, &q.cur)
		q.cur.end()
		if q.err != nil {
			return
		}
		q.counts.add(m, stage, Ran)
		q.Tariff.ran(m, q.cur.From)
	}
}

func (q *Queue[C]) isolate() {
	if v := recover(); v != nil {
		q.caught, q.stack = v, debug.Stack()
		q.cur.end()
	}
}

// Forget drops the sender's queued messages, counted as ClientGone, and returns their number. The
// sender's debt remains with the Holder that it entered with, until it would expire anyway. Sender
// 0 cannot leave.
func (q *Queue[C]) Forget(from uint64) int {
	if from == 0 {
		return 0
	}
	n := 0
	for i := range q.rings {
		q.rings[i].remove(from, func(it *Item) {
			q.counts.add(it.Method, it.Stage, ClientGone)
			it.end()
			n++
		})
	}
	if a := q.senders.forget(from); a != nil {
		q.accounts.close(a, q.limits.now)
	}
	return n
}

// Each visits the queued messages, by stage and in order.
func (q *Queue[C]) Each(fn func(it *Item)) {
	for s := range q.rings {
		for i := range q.rings[s].len() {
			fn(q.rings[s].items.At(i))
		}
	}
}

// Counts visits every count that is not zero, in the order in which each was first used; counts
// only grow. The stage is the resolved one, or 0 without one. Methods that are not in the table
// count as one, named UnknownName: names from clients must not become labels. It costs as much as
// it visits.
func (q *Queue[C]) Counts(fn func(m *Method, s loop.Stage, o Outcome, n uint64)) {
	for i := range q.counts.used {
		c := &q.counts.used[i]
		fn(c.method, c.stage, c.o, *c.n)
	}
}

// Waited returns how many messages drains have left waiting, each counted once per drain.
func (q *Queue[C]) Waited() uint64 { return q.waited }

// Depth returns the number of messages queued for the stage.
func (q *Queue[C]) Depth(s loop.Stage) int {
	if !s.Valid() {
		return 0
	}
	return q.rings[s].len()
}
