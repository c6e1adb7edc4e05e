package netvar

// lately knows what has changed since each of the last captures, so that an acknowledgement of a packet with
// hundreds of objects need not look at each of them.
type lately struct {
	ring [maxLately]struct {
		tick  uint64
		slots bitset // with a version later than tick
	}
	last uint64 // capture, counted from 1
	some []int  // scratch: words of moved that are not 0
}

// maxLately is how many captures: a second of them, more than most acknowledgements take.
const maxLately = 64

// add takes what a capture has found changed.
func (l *lately) add(tick uint64, moved bitset) {
	l.some = l.some[:0]
	for k, word := range moved {
		if word != 0 {
			l.some = append(l.some, k)
		}
	}
	for i := range l.ring {
		for _, k := range l.some {
			l.ring[i].slots.add(k, moved[k])
		}
	}
	l.last++
	now := &l.ring[l.last%maxLately]
	now.tick = tick
	clear(now.slots)
}

// changedSince returns the slots of objects that have a version later than a tick, besides those that were
// spawned since; not if that is too long ago.
func (w *World) changedSince(tick uint64) (slots bitset, known bool) {
	l := &w.since
	if tick >= w.tick {
		return nil, true
	}
	i := l.last - min(w.tick-tick, maxLately-1, l.last-1) // no more captures than ticks since
	for i < l.last && l.ring[(i+1)%maxLately].tick <= tick {
		i++
	}
	r := &l.ring[i%maxLately]
	return r.slots, r.tick <= tick
}
