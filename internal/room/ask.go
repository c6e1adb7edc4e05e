package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

const (
	// maxQuestions is how many may wait for the room to answer at once: people, who look
	// one at a time.
	maxQuestions = 16
	// questionTime is what questions may take of a tick. One that takes longer is paid back:
	// the next is answered so many ticks later that it is not more on average.
	questionTime = time.Millisecond
)

// questions let other goroutines look at what belongs to the room's: they ask, and
// the room answers when its next tick has run. Without a question it costs one lock.
type questions struct {
	mu      sync.Mutex
	waiting []question    // under mu
	owed    time.Duration // what earlier questions took too much; the room's
}

// question is what somebody wants to know. It changes nothing.
type question struct {
	// look, on the room's goroutine, has the answer, or would go on after the next tick. left says
	// whether there is time to look at more.
	look   func(tick uint64, left func() bool) (v any, done bool)
	answer chan<- any
}

// Ask returns what look sees after the next tick, or after a later one when many ask. Any
// goroutine may call it.
func (r *Room) Ask(ctx context.Context, look func(tick uint64) any) (any, error) {
	return r.ask(ctx, func(tick uint64, _ func() bool) (any, bool) { return look(tick), true })
}

func (r *Room) ask(ctx context.Context, look func(uint64, func() bool) (any, bool)) (any, error) {
	answer := make(chan any, 1) // Size 1: who has given up waiting keeps no tick.
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

// some reports whether anybody asks. Any goroutine may call it.
func (q *questions) some() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0
}

// answer answers those who have asked, in their order, while the time for it lasts.
func (r *Room) answer(tick uint64) {
	q := &r.questions
	budget := questionTime - q.owed
	if q.owed = max(0, -budget); budget <= 0 {
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
	q.owed = max(0, r.clock.Now()-began-budget)
}

// View describes the loop, between two ticks.
func (r *Room) View() loop.View { return r.viewAt(r.in.Tick, r.loop.Dump()) }

// lookAtOnce is how many systems are looked at between two looks at the clock: some 50 µs.
const lookAtOnce = 32

// AskView describes the loop after the next tick, or over several if it has many systems. Any
// goroutine may call it.
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
