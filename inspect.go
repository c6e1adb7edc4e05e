package netloop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/netloop/netloop/internal/loop"
)

// maxViews is how many may wait for a view of the loop at once: people, who look
// one at a time.
const maxViews = 16

// views hands the loop, which is the room's, to other goroutines: they ask, and
// the next tick answers when it has run. Without a question it costs one look.
type views struct {
	asked   atomic.Bool
	mu      sync.Mutex
	waiting []chan<- loop.View // under mu
}

// view returns the loop as it is after the next tick. Any goroutine may call it.
func (r *Room) view(ctx context.Context) (any, error) {
	answer := make(chan loop.View, 1) // Size 1: who has given up waiting keeps no tick.
	r.views.mu.Lock()
	if len(r.views.waiting) >= maxViews {
		r.views.mu.Unlock()
		return nil, errors.New("too many ask for the loop at once: try again")
	}
	r.views.waiting = append(r.views.waiting, answer)
	r.views.asked.Store(true)
	r.views.mu.Unlock()
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return nil, errors.New("no tick ended meanwhile")
	}
}

// showLoop answers those who have asked.
func (r *Room) showLoop(tick uint64) {
	if !r.views.asked.Load() {
		return
	}
	v := r.snapshotLoop(tick)
	r.views.mu.Lock()
	defer r.views.mu.Unlock()
	for _, answer := range r.views.waiting {
		answer <- v
	}
	clear(r.views.waiting)
	r.views.waiting = r.views.waiting[:0]
	r.views.asked.Store(false)
}

// snapshotLoop describes the loop.
func (r *Room) snapshotLoop(tick uint64) loop.View {
	return loop.View{
		Tick: tick, Rate: r.spec.Rate.String(), FixedRate: r.spec.FixedRate.String(),
		Quarantined: r.loop.Quarantined(), Stages: r.loop.Dump(),
	}
}
