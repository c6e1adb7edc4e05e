package netloop

import (
	"log/slog"
	"time"

	"github.com/netloop/netloop/internal/guard"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// What a game's code does wrong, besides systems (fault.go), costs the call in which it happens.
// The functions that a game hands over are called below a guard, which counts panics under the
// name of the hook and tells the log of the first and of some of the others.

// guarded makes the guards of the room's own goroutine and of all others.
func (r *Room) guarded() {
	s := r.server
	r.guard.Log, r.guard.Count = r.log, s.metrics.AddPanic
	r.guard.Now = func() time.Duration { return r.now.GameTime }
	r.aside.Log, r.aside.Count = s.log, s.metrics.AddPanic
	r.aside.Now = func() time.Duration { return s.clock.Now() }
}

// call runs a hook of the game on the room's goroutine, and turns its panic into an error: one
// client that upsets a hook costs nobody else the tick.
func (r *Room) call(hook string, fn func() error) error { return called(&r.guard, hook, fn) }

func called(g *guard.Guard, hook string, fn func() error) (err error) {
	defer g.Recover(&guard.Place{Name: hook}, func(panicked error) { err = &hookPanic{panicked} })
	return fn()
}

// hookPanic is the error of a hook that has panicked. The log has been told of it.
type hookPanic struct{ err error }

func (p *hookPanic) Error() string { return "netloop: " + p.err.Error() }

// handlerPanicked accounts for a handler's panic, and tells who asked.
func (r *Room) handlerPanicked(it *rpcqueue.Item, v any, stack []byte) {
	r.guard.Panicked(handlerOf(it.Method), v, stack, "from", it.From)
	r.panicked(it)
}

// handlerFailed logs a handler's error. A refusal is the game's ordinary answer.
func (r *Room) handlerFailed(it *rpcqueue.Item, err error) {
	if _, _, refused := public(err); refused {
		r.log.Log(r.ctx, slog.LevelDebug, "a handler refused", "method", it.Method.Name, "from", it.From, "error", err)
		return
	}
	r.guard.Failed(handlerOf(it.Method), err, "from", it.From)
}

func handlerOf(m *rpcqueue.Method) *guard.Place {
	return &guard.Place{Kind: guard.Handler, Name: m.Name}
}
