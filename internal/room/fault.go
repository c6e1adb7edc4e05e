package room

import (
	"fmt"

	"github.com/netloop/netloop/internal/loop"
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
	r.quarantined.Store(int64(r.loop.Quarantined()))
}

// Quarantined returns how many systems do not run at present because they
// panicked again and again. Any goroutine may call it.
func (r *Room) Quarantined() int { return int(r.quarantined.Load()) }
