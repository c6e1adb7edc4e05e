package netvar

import (
	"math/bits"
	"time"

	"github.com/netloop/netloop/internal/codec"
)

// holds is what the world knows of fields with an interval or a threshold: see codec.Plan.Hold.
type holds struct {
	by   [][]uint64 // by class: its intervals in ticks; nil if it holds nothing back
	late []late
}

// late is an object with a change that an interval holds back. It stays on the dirty list, so to
// speak: once the interval is over it is captured, edited or not.
type late struct {
	o   *Object
	due uint64
}

func newHolds(t *Table) holds {
	h := holds{by: make([][]uint64, len(t.classes))}
	h.pace(t, 60, 1)
	return h
}

// SetRate says how many ticks a second the world has, for the intervals of fields; without it they
// are 60. An interval that is no whole number of ticks is rounded up.
func (w *World) SetRate(num, den uint64) { w.holds.pace(w.table, num, den) }

func (h *holds) pace(t *Table, num, den uint64) {
	for i, c := range t.classes {
		if !c.plan.Holds() {
			continue
		}
		h.by[i] = []uint64{}
		for _, d := range c.plan.Intervals() {
			hi, lo := bits.Mul64(uint64(d), num)
			// An interval has at most a minute, a rate 1 000 Hz.
			ticks, rest := bits.Div64(hi, lo, den*uint64(time.Second))
			if rest > 0 {
				ticks++
			}
			h.by[i] = append(h.by[i], ticks)
		}
	}
}

// wake puts those on the dirty list whose interval is over.
func (w *World) wake() {
	kept := w.holds.late[:0]
	for _, l := range w.holds.late {
		switch {
		case !l.o.alive || l.o.dirty: // captured now, and late again if need be
		case l.due <= w.tick:
			w.Edit(l.o)
		default:
			kept = append(kept, l)
		}
	}
	clear(w.holds.late[len(kept):])
	w.holds.late = kept
}

// hold lets what was just captured keep the last value of the fields that are held back.
func (w *World) hold(o *Object, now, last *codec.Values) {
	held := o.class.plan.Hold(now, last, o.fields[1:], w.tick, w.holds.by[o.class.index])
	w.stats.BelowThreshold += uint64(held.Small)
	w.stats.WithinInterval += uint64(held.Early)
	if held.Due != 0 {
		w.holds.late = append(w.holds.late, late{o, held.Due})
	}
}

// HoldReason says why a change is not in the newest version of an object.
type HoldReason uint8

// The reasons. A change below its threshold is captured when it is joined by enough others, if
// ever; one within its interval when that is over.
const (
	NotHeld HoldReason = iota
	BelowThreshold
	WithinInterval
)

// Held tells why the newest version of o lacks what leaf i now is, as of the last capture, and for
// WithinInterval the tick whose capture will have it. What has changed since that capture and will
// be in the next one is not held.
func (w *World) Held(o *Object, i int) (why HoldReason, until uint64) {
	intervals := w.holds.by[o.class.index]
	if intervals == nil || !o.alive || !o.published() {
		return NotHeld, 0
	}
	now := w.draftOf(o) // which may move the newest
	last := o.hist.newest()
	o.class.plan.CaptureLeaf(i, o.live, now)
	switch small, due := o.class.plan.HeldLeaf(i, now, &last, o.fields[1:], w.tick, intervals); {
	case small:
		return BelowThreshold, 0
	case due > 0:
		return WithinInterval, due
	}
	return NotHeld, 0
}
