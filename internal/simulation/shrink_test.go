package simulation

import (
	"slices"
	"testing"
)

// shrink removes events from a story that breaks a promise, as long as the same check fails. It
// plays at most so many stories.
func shrink(t *testing.T, s *Story, check string, most int) (*Story, result) {
	t.Helper()
	best := *s
	last := result{}
	fails := func(events []Event) bool {
		if most == 0 {
			return false
		}
		most--
		next := best
		next.Events = events
		r := run(t, &next, false)
		if r.finding == nil || r.finding.Check != check {
			return false
		}
		best, last = next, r
		return true
	}
	for size := len(best.Events); size > 0; size /= 2 {
		for at := 0; at < len(best.Events); {
			if without := slices.Delete(slices.Clone(best.Events), at, min(at+size, len(best.Events))); !fails(without) {
				at += size
			}
		}
	}
	return &best, last
}
