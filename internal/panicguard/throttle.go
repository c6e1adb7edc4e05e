package panicguard

import "time"

// Throttle selects the events to log: the first of each kind, and then one per Every. The zero
// Throttle is ready. It belongs to one goroutine.
type Throttle[K comparable] struct{ told map[K]*told }

type told struct {
	until time.Duration // no event is logged before
	kept  uint64        // events not logged since the last one
}

// News reports whether to log an event, and how many of its kind were not logged since the last
// one.
func (t *Throttle[K]) News(kind K, now time.Duration) (kept uint64, ok bool) {
	s := t.told[kind]
	switch {
	case s == nil:
		if t.told == nil {
			t.told = map[K]*told{}
		}
		s = new(told)
		t.told[kind] = s
	case now < s.until:
		s.kept++
		return kept, false
	}
	kept = s.kept
	*s = told{until: now + Every}
	return kept, true
}
