package room

import (
	"context"
	"errors"
	"sync"

	"github.com/netloop/netloop/internal/loop"
)

// maxQuestions is how many may wait for the room to answer at once: people, who look
// one at a time.
const maxQuestions = 16

// questions let other goroutines look at what belongs to the room's: they ask, and
// the room answers when its next tick has run. Without a question it costs one lock.
type questions struct {
	mu      sync.Mutex
	waiting []question // under mu
}

type question struct {
	look   func(tick uint64) any // on the room's goroutine; it changes nothing
	answer chan<- any
}

// Ask returns what look sees after the next tick. Any goroutine may call it.
func (r *Room) Ask(ctx context.Context, look func(tick uint64) any) (any, error) {
	answer := make(chan any, 1) // Size 1: who has given up waiting keeps no tick.
	q := &r.questions
	q.mu.Lock()
	if len(q.waiting) >= maxQuestions {
		q.mu.Unlock()
		return nil, errors.New("too many ask at once: try again")
	}
	q.waiting = append(q.waiting, question{look, answer})
	q.mu.Unlock()
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return nil, errors.New("no tick ended meanwhile")
	}
}

// answer answers those who have asked.
func (r *Room) answer(tick uint64) {
	q := &r.questions
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		w.answer <- w.look(tick)
	}
	q.waiting = nil
}

// View describes the loop, between two ticks.
func (r *Room) View() loop.View { return r.viewAt(r.in.Tick) }

// AskView describes the loop after the next tick. Any goroutine may call it.
func (r *Room) AskView(ctx context.Context) (any, error) {
	return r.Ask(ctx, func(tick uint64) any { return r.viewAt(tick) })
}

func (r *Room) viewAt(tick uint64) loop.View {
	return loop.View{
		Tick: tick, Rate: r.spec.Rate.String(), FixedRate: r.spec.Fixed.String(),
		Scale: r.loop.Scale().Speed(), Quarantined: r.loop.Quarantined(), Stages: r.loop.Dump(),
	}
}
