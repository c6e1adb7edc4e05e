package room

import (
	"fmt"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
)

// reportFaults logs the faults of systems: new panics, and the begin and the end of a quarantine.
func (r *Room) reportFaults(rec *loop.Record) {
	for i := range rec.Panics {
		p := &rec.Panics[i]
		if p.First {
			r.log.Error("a system panicked", "system", p.System, "stage", p.Stage.String(), "tick", rec.Tick, "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
		}
		if p.Quarantine != 0 {
			r.log.Error("a system is quarantined: it panicked again and again", "system", p.System, "stage", p.Stage.String(),
				"tick", rec.Tick, "panic", fmt.Sprint(p.Value), "ticks", p.Quarantine)
		}
	}
	for _, name := range rec.Released {
		r.log.Warn("a system runs again after its quarantine", "system", name, "tick", rec.Tick)
	}
	r.quarantined.Store(int64(r.loop.Quarantined()))
}

// Quarantined returns how many systems are suspended at present because they panicked repeatedly.
// Any goroutine may call it.
func (r *Room) Quarantined() int { return int(r.quarantined.Load()) }

// misuses reports the findings of the checks of Config.
type misuses struct {
	tell func(text string) // nil: the log
	said panicguard.Throttle[misuse]
}

// misuse is a kind of misuse of one field. There are at most two per field of the schema.
type misuse struct {
	class *netvar.Class
	field string
	what  netvar.Misuse
}

// check enables the checks of the configuration in the world.
func (r *Room) check() {
	if cfg := &r.cfg; cfg.CheckEdits || cfg.CheckValues {
		r.world.Check(cfg.CheckEdits, cfg.CheckValues, r.misused)
	}
}

// OnMisuse sets the function that is told of misuses, instead of the log.
func (r *Room) OnMisuse(tell func(text string)) { r.misuses.tell = tell }

// misused counts a misuse, and reports the same one at most every ten seconds of game time.
func (r *Room) misused(o *netvar.Object, field string, what netvar.Misuse) {
	r.metrics.Misuses.Add(1, what.String())
	kept, ok := r.misuses.said.News(misuse{o.Class(), field, what}, r.now.GameTime)
	if !ok {
		return
	}
	text := "was changed without Edit: change state only through the pointer that Edit returns, in the call that asked for it, and copy a slice or map before you keep it"
	if what == netvar.Misfit {
		text = fmt.Sprintf("has a value that does not fit %s, and is refused: clients keep the last one that did", o.Class().TypeOf(field))
	}
	text = fmt.Sprintf("field %s of %s %v %s", field, o.Class().Name(), o.ID(), text)
	if r.misuses.tell != nil {
		r.misuses.tell(text)
		return
	}
	r.log.Error("state misused: "+text, "class", o.Class().Name(), "object", o.ID().String(), "field", field, "unlogged_before", kept)
}
