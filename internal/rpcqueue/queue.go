package rpcqueue

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/netloop/netloop/internal/loop"
)

// Item is one message.
type Item struct {
	Method *Method
	// From is the sender; 0 is nobody: posted, or sent by the server.
	From uint64
	// Stage is the stage wished for; 0 is the default of the method. In a handler
	// it is the stage that runs.
	Stage loop.Stage
	// Call numbers a call that wants an answer; 0 is one-way.
	Call uint64
	// Msg holds a *M. It belongs to the handler.
	Msg any
}

// Handler runs a message. The item is valid during the call; its Msg belongs to
// the handler, which may keep it. The handler must not change the item. An error
// or a panic is counted, reported, and costs no other message.
type Handler[C any] func(c C, it *Item) error

// Queue holds messages until their stage runs. One goroutine owns it: the one
// that runs the stages.
type Queue[C any] struct {
	// OnPanic, if set, is told of a handler that panicked. The item is valid
	// during the call.
	OnPanic func(it *Item, v any, stack []byte)
	// OnError, if set, is told of a handler that returned an error. The item is
	// valid during the call.
	OnError func(it *Item, err error)

	table    *Table
	handlers []Handler[C] // by method id
	rings    [loop.NumStages + 1]ring
	counts   counts

	past loop.Stage // the last stage that has run in this tick

	// The drain that runs.
	draining bool
	cur      Item // what its handler sees
	err      error
	caught   any
	stack    []byte
}

// New returns an empty queue for the methods of the table.
func New[C any](t *Table) *Queue[C] {
	return &Queue[C]{table: t, handlers: make([]Handler[C], len(t.byID)), counts: newCounts(len(t.byID))}
}

// Handle registers the handler of a method. A method has one at most.
func (q *Queue[C]) Handle(m *Method, h Handler[C]) error {
	switch {
	case m == nil || h == nil:
		return errors.New("rpcqueue: Handle needs a method and a handler")
	case !q.table.holds(m):
		return fmt.Errorf("rpcqueue: method %q is not in the table", m.Name)
	case q.handlers[m.ID] != nil:
		return fmt.Errorf("rpcqueue: method %q has a handler already", m.Name)
	}
	q.handlers[m.ID] = h
	return nil
}

// Push queues a message, or counts and says why not. It copies the item and
// keeps Msg.
func (q *Queue[C]) Push(it Item) Outcome {
	if !q.table.holds(it.Method) {
		q.counts.add(nil, 0, UnknownMethod)
		return UnknownMethod
	}
	o := q.admit(&it)
	stage := it.Stage
	if o == UnknownStage {
		stage = 0
	}
	if o.Queued() && !q.rings[stage].push(&it) {
		o = Full
	}
	q.counts.add(it.Method, stage, o)
	return o
}

// admit resolves the stage of a message of a known method and judges it.
func (q *Queue[C]) admit(it *Item) Outcome {
	m := it.Method
	if it.Stage == 0 {
		it.Stage = m.Default()
	}
	switch {
	case !it.Stage.Valid():
		return UnknownStage
	case !m.Allows(it.Stage):
		return StageNotAllowed
	case q.handlers[m.ID] == nil:
		return NoHandler
	case it.Stage > q.past:
		return Accepted
	case m.LateDrop:
		return LateDropped
	}
	return Late
}

// Begin starts a tick: no stage has run in it. The number is for the reader of
// the call; queues persist across ticks.
func (q *Queue[C]) Begin(uint64) { q.past = 0 }

// Drain runs the messages that were queued for the stage when it began, and
// returns how many it ran. It is called once per tick and stage, in the order of
// the stages; a stage that does not run is left out. Call it from no handler.
func (q *Queue[C]) Drain(s loop.Stage, c C) int {
	if !s.Valid() {
		panic(fmt.Sprintf("rpcqueue: Drain of stage %d: there is no such stage", s))
	}
	if q.draining {
		panic("rpcqueue: Drain called from a handler: the stage that runs drains its own queue only")
	}
	// What is pushed for this stage from now until the drain ends is not late.
	q.past = s - 1
	n := q.drain(&q.rings[s], c)
	q.past = s
	return n
}

// drain runs the batch of a ring. What a handler makes of its message is counted
// before anybody is told. Should the one who is told panic, the rest of the batch
// stays queued.
func (q *Queue[C]) drain(r *ring, c C) int {
	start := r.head
	q.draining = true
	defer func() {
		q.draining = false
		q.cur = Item{}
		r.batch = 0
	}()
	for r.batch = uint64(r.len()); r.batch > 0; {
		q.caught, q.stack, q.err = nil, nil, nil
		q.walk(r, c)
		switch {
		case q.caught != nil:
			q.counts.add(q.cur.Method, q.cur.Stage, Panicked)
			if q.OnPanic != nil {
				q.OnPanic(&q.cur, q.caught, q.stack)
			}
		case q.err != nil:
			q.counts.add(q.cur.Method, q.cur.Stage, Failed)
			if q.OnError != nil {
				q.OnError(&q.cur, q.err)
			}
		}
	}
	return int(r.head - start)
}

// walk runs messages until the batch is empty or one fails, which q.err or
// q.caught then tells. One deferred call serves the whole batch.
func (q *Queue[C]) walk(r *ring, c C) {
	defer q.isolate()
	for r.batch > 0 {
		r.pop(&q.cur)
		r.batch--
		m, stage := q.cur.Method, q.cur.Stage
		if q.err = q.handlers[m.ID](c, &q.cur); q.err != nil {
			return
		}
		q.counts.add(m, stage, Ran)
	}
}

func (q *Queue[C]) isolate() {
	if v := recover(); v != nil {
		q.caught, q.stack = v, debug.Stack()
	}
}

// Forget drops what the sender has queued, counted as ClientGone, and returns
// how many messages that were. Nobody (0) cannot leave.
func (q *Queue[C]) Forget(from uint64) int {
	if from == 0 {
		return 0
	}
	n := 0
	for i := range q.rings {
		q.rings[i].remove(from, func(it *Item) {
			q.counts.add(it.Method, it.Stage, ClientGone)
			n++
		})
	}
	return n
}

// Counts visits every count that is not zero, in the order in which each was
// first used; counts only grow. The stage is the one resolved, or 0 where there
// is none. Methods that are not in the table count as one, named UnknownName:
// names from outside make no labels. It costs as much as it visits.
func (q *Queue[C]) Counts(fn func(m *Method, s loop.Stage, o Outcome, n uint64)) {
	for i := range q.counts.used {
		c := &q.counts.used[i]
		fn(c.method, c.stage, c.o, *c.n)
	}
}

// Depth is the number of messages queued for the stage.
func (q *Queue[C]) Depth(s loop.Stage) int {
	if !s.Valid() {
		return 0
	}
	return q.rings[s].len()
}
