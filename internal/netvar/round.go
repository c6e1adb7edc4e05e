package netvar

import (
	"slices"

	"github.com/netloop/netloop/internal/netvar/state"
)

// The server also rounds the live values of a predicted class to wire precision, at the end of each
// fixed step and when they are captured. A client predicts an object from the rounded values that
// it was sent, so both sides continue from the same value.

// SetRounded makes captures round the live values of a class to wire precision. A value that does
// not fit its field is kept until its capture, which counts the value and then cuts or clamps it.
func (w *World) SetRounded(c *state.Class) { w.kinds[c.Index()].rounds = true }

// Rounds reports whether any class is rounded.
func (w *World) Rounds() bool {
	return slices.ContainsFunc(w.kinds, func(k kind) bool { return k.rounds })
}

// Round rounds the objects of rounded classes that were edited since the last capture.
func (w *World) Round() {
	for _, o := range w.dirty {
		if o.Alive() && w.kinds[o.WireClass().Index()].rounds {
			o.Plan().Round(o.Live())
		}
	}
}
