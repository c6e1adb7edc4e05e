package netvar

import "slices"

// A client that predicts an object starts from what it was sent, which is rounded. So that both
// sides go on from the same value, the live values of a predicted class are rounded as well: at the
// end of each fixed step, and when they are captured.

// SetRounded lets the live values of a class be what a capture of them says. What does not fit its
// field is as it was until it is captured, which counts it, and then cut or clamped.
func (w *World) SetRounded(c *Class) { w.kinds[c.index].rounds = true }

// Rounds tells whether any class is rounded.
func (w *World) Rounds() bool {
	return slices.ContainsFunc(w.kinds, func(k kind) bool { return k.rounds })
}

// Round rounds what has been edited since the last capture, of the classes that are rounded.
func (w *World) Round() {
	for _, o := range w.dirty {
		if o.alive && w.kinds[o.class.index].rounds {
			o.class.plan.Round(o.live)
		}
	}
}
