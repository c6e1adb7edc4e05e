package netloop

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// reportFaults says what went wrong in systems: a panic when it is news, and when a
// system stops running because of them, and when it runs again.
func (r *Room) reportFaults(rec *loop.Record) {
	for i := range rec.Panics {
		p := &rec.Panics[i]
		if p.First {
			r.log.Error("a system panicked", "system", p.System, "stage", p.Stage.String(), "tick", rec.Tick, "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
		}
		if p.Quarantine > 0 {
			r.log.Error("a system is quarantined: it panicked again and again", "system", p.System, "stage", p.Stage.String(),
				"tick", rec.Tick, "panic", fmt.Sprint(p.Value), "ticks", p.Quarantine)
		}
	}
	for _, name := range rec.Released {
		r.log.Warn("a system runs again after its quarantine", "system", name, "tick", rec.Tick)
	}
	if n := int64(r.loop.Quarantined()); n != r.quarantined.Load() {
		r.quarantined.Store(n)
		r.server.metrics.SetQuarantined(int(n))
	}
}

// Quarantined returns how many systems do not run at present because they
// panicked again and again. Any goroutine may call it.
func (r *Room) Quarantined() int { return int(r.quarantined.Load()) }

// faultEvery is the least game time between two log lines about the same method and kind of
// fault: a client that has found out what makes a handler fail must not fill the log, which
// is bounded, with stacks. The metrics count every one.
const faultEvery = 10 * time.Second

// fault is a kind of failure of one method.
type fault struct {
	method *rpcqueue.Method
	panics bool
}

// said is what the log was told of a fault.
type said struct {
	until time.Duration // game time
	kept  uint64        // from it since
}

// news reports whether the log shall be told of a fault, and how many it was not told of.
func (r *Room) news(f fault) (kept uint64, ok bool) {
	s := r.faults[f]
	if s != nil && r.now.GameTime < s.until {
		s.kept++
		return 0, false
	}
	if s == nil {
		s = new(said)
		r.faults[f] = s
	}
	kept = s.kept
	*s = said{until: r.now.GameTime + faultEvery}
	return kept, true
}

// handlerPanicked accounts for a handler's panic, and tells who asked.
func (r *Room) handlerPanicked(it *rpcqueue.Item, v any, stack []byte) {
	r.server.metrics.AddPanic(it.Method.Name)
	if kept, ok := r.news(fault{it.Method, true}); ok {
		r.log.Error("a handler panicked", "method", it.Method.Name, "from", it.From, "panic", fmt.Sprint(v), "unlogged_before", kept, "stack", string(stack))
	}
	r.panicked(it)
}

// handlerFailed logs a handler's error. A refusal is the game's ordinary answer.
func (r *Room) handlerFailed(it *rpcqueue.Item, err error) {
	if _, _, refused := public(err); refused {
		r.log.Log(r.ctx, slog.LevelDebug, "a handler refused", "method", it.Method.Name, "from", it.From, "error", err)
		return
	}
	if kept, ok := r.news(fault{it.Method, false}); ok {
		r.log.Error("a handler failed", "method", it.Method.Name, "from", it.From, "error", err, "unlogged_before", kept)
	}
}
