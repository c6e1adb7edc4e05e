package panicguard

import "time"

// Throttle says which of many like events the log is told of: the first of each kind, and then
// one each time that Every has passed. The zero Throttle is ready. It belongs to one goroutine.
type Throttle[K comparable] struct{ told map[K]*told }

type told struct {
	until time.Duration // nothing is told before
	kept  uint64        // not told since the last time
}

// News reports whether the log shall be told of an event, and how many of its kind it was not
// told of since the last time.
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
