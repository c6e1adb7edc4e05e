package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

const (
	// maxQuestions bounds the questions that wait at once. People ask questions, one at a time.
	maxQuestions = 16
	// questionTime bounds the time for questions in a tick. After a question that takes longer, the
	// next question waits until the average time per tick is within this bound again.
	questionTime = time.Millisecond
)

// Questions let other goroutines inspect the room's state: the room runs each inspection after its
// next tick. A tick without a question only locks one mutex.
type Questions struct {
	*core
	mu      sync.Mutex
	waiting []question // under mu
	// time by which earlier questions exceeded their budget; belongs to the room's goroutine
	overrun time.Duration
}

// question is an inspection. It must not change the state.
type question struct {
	// look runs on the room's goroutine and returns the answer, or returns done = false to continue
	// after the next tick. left reports whether this tick has time left.
	look   func(tick uint64, left func() bool) (v any, done bool)
	answer chan<- any
}

// Ask calls look after the next tick, or after a later tick if many questions wait, and returns its
// result. It returns an error if maxQuestions wait already, or if ctx ends first. Any goroutine may
// call it.
func (q *Questions) Ask(ctx context.Context, look func(tick uint64) any) (any, error) {
	return q.AskParts(ctx, func(tick uint64, _ func() bool) (any, bool) { return look(tick), true })
}

// AskParts is Ask for a question that takes long: if look returns done = false, it is called again
// after the next tick. left reports whether this tick has time left; once it returns false, look
// should return.
func (q *Questions) AskParts(ctx context.Context, look func(uint64, func() bool) (any, bool)) (any, error) {
	answer := make(chan any, 1) // Size 1: a caller that no longer waits does not block the tick.
	q.mu.Lock()
	if len(q.waiting) >= maxQuestions {
		q.mu.Unlock()
		return nil, errors.New("too many ask at once: try again")
	}
	q.waiting = append(q.waiting, question{look, answer})
	q.mu.Unlock()
	q.Sleep.rouse()
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return nil, errors.New("no tick ended meanwhile")
	}
}

// some reports whether a question waits. Any goroutine may call it.
func (q *Questions) some() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0
}

// answer answers the waiting questions in the order of their arrival, within the time budget.
func (q *Questions) answer(tick uint64) {
	budget := questionTime - q.overrun
	if q.overrun = max(0, -budget); budget <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return
	}
	began := q.clock.Now()
	left := func() bool { return q.clock.Now()-began < budget }
	for len(q.waiting) > 0 && left() {
		w := q.waiting[0]
		v, done := w.look(tick, left)
		if !done {
			break
		}
		w.answer <- v
		q.waiting[0] = question{}
		q.waiting = q.waiting[1:]
	}
	took := q.clock.Now() - began
	q.metrics.Inspect.Add(uint64(took))
	q.overrun = max(0, took-budget)
}

// View returns a description of the loop between two ticks.
func (q *Questions) View() loop.View { return q.viewAt(q.in.Tick, q.loop.Dump()) }

// lookAtOnce is the number of systems that are described between two reads of the clock, in some 50
// µs.
const lookAtOnce = 32

// AskView returns a description of the loop after the next tick. It takes several ticks to describe
// a loop with many systems. Any goroutine may call it.
func (q *Questions) AskView(ctx context.Context) (any, error) {
	var d loop.Dumper
	v, err := q.AskParts(ctx, func(tick uint64, left func() bool) (any, bool) {
		if d == nil {
			d = q.loop.Dumper()
		}
		for more := true; more; {
			if more = d.Take(lookAtOnce); more && !left() {
				return nil, false
			}
		}
		return q.viewAt(tick, nil), true
	})
	if err != nil {
		return nil, err
	}
	view := v.(loop.View)
	view.Stages = d.Stages()
	return view, nil
}

func (q *Questions) viewAt(tick uint64, stages []loop.DumpStage) loop.View {
	return loop.View{
		Tick: tick, Rate: q.spec.Rate.String(), FixedRate: q.spec.Fixed.String(),
		Scale: q.loop.Scale().Speed(), Quarantined: q.loop.Quarantined(), Stages: stages,
	}
}
