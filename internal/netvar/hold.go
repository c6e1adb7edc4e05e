package netvar

import (
	"math/bits"
	"time"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// holds is the world's state of fields with an interval or a threshold: see codec.Plan.Hold.
type holds struct {
	by   [][]uint64 // by class: intervals of its fields in ticks; nil: no interval and threshold
	late []late
}

// late is an object with a change that an interval holds back. It is captured once the interval is
// over, even if it is not edited.
type late struct {
	o   *state.Object
	due uint64
}

func newHolds(t *state.Table) holds {
	h := holds{by: make([][]uint64, len(t.Classes()))}
	h.pace(t, 60, 1)
	return h
}

// SetRate sets the world's tick rate to num/den Hz, for the intervals of fields; the default is 60
// Hz. Intervals are rounded up to whole ticks.
func (w *World) SetRate(num, den uint64) { w.holds.pace(w.table, num, den) }

func (h *holds) pace(t *state.Table, num, den uint64) {
	for i, c := range t.Classes() {
		if !c.Plan().Holds() {
			continue
		}
		h.by[i] = []uint64{}
		for _, d := range c.Plan().Intervals() {
			hi, lo := bits.Mul64(uint64(d), num)
			// This does not overflow: an interval is at most a minute, a rate at most 1 000 Hz.
			ticks, rest := bits.Div64(hi, lo, den*uint64(time.Second))
			if rest > 0 {
				ticks++
			}
			h.by[i] = append(h.by[i], ticks)
		}
	}
}

// wake marks late objects as edited once their interval is over.
func (w *World) wake() {
	kept := w.holds.late[:0]
	for _, l := range w.holds.late {
		switch {
		case !l.o.Alive() || l.o.Dirty: // captured now, and held back again if necessary
		case l.due <= w.tick:
			w.Edit(l.o)
		default:
			kept = append(kept, l)
		}
	}
	clear(w.holds.late[len(kept):])
	w.holds.late = kept
}

// hold restores, in a new capture, the last values of the fields that an interval or a threshold
// holds back.
func (w *World) hold(o *state.Object, now, last *codec.Values) {
	held := o.Plan().Hold(now, last, o.Fields[1:], w.tick, w.holds.by[o.WireClass().Index()])
	w.stats.BelowThreshold += uint64(held.Small)
	w.stats.WithinInterval += uint64(held.Early)
	if held.Due != 0 {
		w.holds.late = append(w.holds.late, late{o, held.Due})
	}
}

// HoldReason is the reason why a change is not in the newest version of an object.
type HoldReason uint8

// The reasons. A change below its threshold is captured once the sum of changes exceeds it. A
// change within an interval is captured when the interval is over.
const (
	NotHeld HoldReason = iota
	BelowThreshold
	WithinInterval
)

// Held returns the reason why the newest version of o lacks the current value of leaf i, as of the
// last capture; for WithinInterval also the tick of the capture that will have it. A change since
// that capture does not count as held if the next capture will have it.
func (w *World) Held(o *state.Object, i int) (why HoldReason, until uint64) {
	intervals := w.holds.by[o.WireClass().Index()]
	if intervals == nil || !o.Alive() || !o.Published() {
		return NotHeld, 0
	}
	now := w.draftOf(o) // draftOf may move the newest version in memory
	last := o.Hist.Newest()
	o.Plan().CaptureLeaf(i, o.Live(), now)
	switch small, due := o.Plan().HeldLeaf(i, now, &last, o.Fields[1:], w.tick, intervals); {
	case small:
		return BelowThreshold, 0
	case due > 0:
		return WithinInterval, due
	}
	return NotHeld, 0
}
