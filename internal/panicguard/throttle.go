package panicguard

import "time"

// Throttle selects the events to log: the first of each kind, and then one per Every. The zero
// Throttle is ready. It belongs to one goroutine.
type Throttle[K comparable] struct{ entries map[K]*entry }

type entry struct {
	until    time.Duration // no event is logged before
	unlogged uint64        // events not logged since the last one
}

// Allow reports whether to log an event. kept is the number of events of its kind that were not
// logged since the last one.
func (t *Throttle[K]) Allow(kind K, now time.Duration) (kept uint64, ok bool) {
	s := t.entries[kind]
	switch {
	case s == nil:
		if t.entries == nil {
			t.entries = map[K]*entry{}
		}
		s = new(entry)
		t.entries[kind] = s
	case now < s.until:
		s.unlogged++
		return kept, false
	}
	kept = s.unlogged
	*s = entry{until: now + Every}
	return kept, true
}
