package room

import (
	"fmt"
	"sync/atomic"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/panicguard"
)

// Faults reports faults of the game: panics of systems, and misuse of state, which CheckEdits and
// CheckValues of [Config] find.
type Faults struct {
	*core
	quarantined atomic.Int64      // number of suspended systems; see report
	tell        func(text string) // nil: the log
	said        panicguard.Throttle[misuse]
}

// report logs new panics of systems, and the start and the end of each quarantine. It also updates
// the number of quarantined systems.
func (f *Faults) report(rec *loop.Record) {
	for i := range rec.Panics {
		p := &rec.Panics[i]
		if p.First {
			f.log.Error("a system panicked", "system", p.System, "stage", p.Stage.String(), "tick", rec.Tick, "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
		}
		if p.Quarantine != 0 {
			f.log.Error("a system is quarantined: it panicked again and again", "system", p.System, "stage", p.Stage.String(),
				"tick", rec.Tick, "panic", fmt.Sprint(p.Value), "ticks", p.Quarantine)
		}
	}
	for _, name := range rec.Released {
		f.log.Warn("a system runs again after its quarantine", "system", name, "tick", rec.Tick)
	}
	f.quarantined.Store(int64(f.loop.Quarantined()))
}

// Quarantined returns the number of systems that are suspended at present because they panicked
// repeatedly. Any goroutine may call it.
func (f *Faults) Quarantined() int { return int(f.quarantined.Load()) }

// misuse is the key by which reports are throttled: one field, and one of the two kinds of misuse.
type misuse struct {
	class *state.Class
	field string
	what  netvar.Misuse
}

// checkWorld makes the world check edits and values, if CheckEdits or CheckValues is configured.
func (f *Faults) checkWorld() {
	if cfg := &f.cfg; cfg.CheckEdits || cfg.CheckValues {
		f.world.Check(cfg.CheckEdits, cfg.CheckValues, f.misused)
	}
}

// OnMisuse sets the function that gets reports of misuse, in place of the log.
func (f *Faults) OnMisuse(tell func(text string)) { f.tell = tell }

// misused counts a misuse, and reports it. The same misuse is reported at most every ten seconds of
// game time.
func (f *Faults) misused(o *state.Object, field string, what netvar.Misuse) {
	f.metrics.Misuses.Add(1, what.String())
	kept, ok := f.said.Allow(misuse{o.Class(), field, what}, f.now.GameTime)
	if !ok {
		return
	}
	text := "was changed without Edit: change state only through the pointer that Edit returns, in the call that asked for it, and copy a slice or map before you keep it"
	if what == netvar.Misfit {
		text = fmt.Sprintf("has a value that does not fit %s, and is refused: clients keep the last one that did", o.Class().TypeOf(field))
	}
	text = fmt.Sprintf("field %s of %s %v %s", field, o.Class().Name(), o.ID(), text)
	if f.tell != nil {
		f.tell(text)
		return
	}
	f.log.Error("state misused: "+text, "class", o.Class().Name(), "object", o.ID().String(), "field", field, "unlogged_before", kept)
}
