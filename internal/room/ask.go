package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

const (
	// maxQuestions limits the questions that wait at once: people ask them, one at a time.
	maxQuestions = 16
	// questionTime limits the time for questions in a tick. A question that takes longer delays
	// the next by so many ticks that the limit holds on average.
	questionTime = time.Millisecond
)

// questions let other goroutines inspect the room's state: the room runs each inspection after its
// next tick. Without a question it costs one lock.
type questions struct {
	mu      sync.Mutex
	waiting []question // under mu
	// time by which earlier questions exceeded their budget; belongs to the room's goroutine
	overrun time.Duration
}

// question is an inspection. It must not change the state.
type question struct {
	// look runs on the room's goroutine and returns the answer, or done = false to continue after
	// the next tick. left reports whether time remains in this tick.
	look   func(tick uint64, left func() bool) (v any, done bool)
	answer chan<- any
}

// Ask returns the result of look after the next tick, or after a later one if many ask. Any
// goroutine may call it.
func (r *Room) Ask(ctx context.Context, look func(tick uint64) any) (any, error) {
	return r.ask(ctx, func(tick uint64, _ func() bool) (any, bool) { return look(tick), true })
}

func (r *Room) ask(ctx context.Context, look func(uint64, func() bool) (any, bool)) (any, error) {
	answer := make(chan any, 1) // Size 1: a caller that no longer waits does not block the tick.
	q := &r.questions
	q.mu.Lock()
	if len(q.waiting) >= maxQuestions {
		q.mu.Unlock()
		return nil, errors.New("too many ask at once: try again")
	}
	q.waiting = append(q.waiting, question{look, answer})
	q.mu.Unlock()
	r.rouse()
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return nil, errors.New("no tick ended meanwhile")
	}
}

// some reports whether a question waits. Any goroutine may call it.
func (q *questions) some() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0
}

// answer answers the waiting questions in their order, within the time budget.
func (r *Room) answer(tick uint64) {
	q := &r.questions
	budget := questionTime - q.overrun
	if q.overrun = max(0, -budget); budget <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return
	}
	began := r.clock.Now()
	left := func() bool { return r.clock.Now()-began < budget }
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
	q.overrun = max(0, r.clock.Now()-began-budget)
}

// View returns a description of the loop between two ticks.
func (r *Room) View() loop.View { return r.viewAt(r.in.Tick, r.loop.Dump()) }

// lookAtOnce is the number of systems described between two reads of the clock: some 50 µs.
const lookAtOnce = 32

// AskView returns a description of the loop after the next tick, or gathered over several ticks if
// it has many systems. Any goroutine may call it.
func (r *Room) AskView(ctx context.Context) (any, error) {
	var d loop.Dumper
	v, err := r.ask(ctx, func(tick uint64, left func() bool) (any, bool) {
		if d == nil {
			d = r.loop.Dumper()
		}
		for more := true; more; {
			if more = d.Take(lookAtOnce); more && !left() {
				return nil, false
			}
		}
		return r.viewAt(tick, nil), true
	})
	if err != nil {
		return nil, err
	}
	view := v.(loop.View)
	view.Stages = d.Stages()
	return view, nil
}

func (r *Room) viewAt(tick uint64, stages []loop.DumpStage) loop.View {
	return loop.View{
		Tick: tick, Rate: r.spec.Rate.String(), FixedRate: r.spec.Fixed.String(),
		Scale: r.loop.Scale().Speed(), Quarantined: r.loop.Quarantined(), Stages: stages,
	}
}
