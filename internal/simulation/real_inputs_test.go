package simulation

import (
	"maps"
	"slices"
)

// mostTries is the number of repetitions of a press in real time: on a loaded machine an input may
// be late, and then it does not run, or runs later than promised.
const mostTries = 5

// again repeats the presses that have not run, and waits for them. It reports false after too many
// repetitions.
func (x *inputs) again() bool {
	if x.tries >= mostTries {
		return false
	}
	pressed := false
	for _, n := range slices.Sorted(maps.Keys(x.presses)) {
		p := x.presses[n]
		if p.ran > 0 || !p.g.playing() {
			continue
		}
		x.p.note("press %d of bot %d has not run: %+v", n, p.g.n, p.g.c.Stats())
		delete(x.presses, n)
		x.press(p.g, p.why+" and again", 0)
		pressed = true
	}
	if pressed {
		x.tries++
		x.wait()
		x.tries--
	}
	return true
}
