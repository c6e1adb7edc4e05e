package netvar

// lately knows what has changed since each of the last captures, so that an acknowledgement of a packet with
// hundreds of objects need not look at each of them.
type lately struct {
	ring [maxLately]changes
	none changes
	last uint64 // capture, counted from 1
	some []int  // scratch: words of moved that are not 0
}

// changes are the slots of objects that have a version later than a tick.
type changes struct {
	tick  uint64
	slots bitset
	news  []bitset // of these with rules, by the rule of what has changed
}

// maxLately is how many captures: a second of them, more than most acknowledgements take.
const maxLately = 64

// add takes what a capture has found changed.
func (l *lately) add(tick uint64, moved bitset, news []bitset) {
	l.some = l.some[:0]
	for k, word := range moved {
		if word != 0 {
			l.some = append(l.some, k)
		}
	}
	for i := range l.ring {
		c := &l.ring[i]
		for len(c.news) < len(news) {
			c.news = append(c.news, nil)
		}
		for _, k := range l.some {
			c.slots.add(k, moved[k])
		}
		for rule := range news {
			for _, k := range l.some {
				if word := news[rule].word(k); word != 0 {
					c.news[rule].add(k, word)
				}
			}
		}
	}
	l.last++
	now := &l.ring[l.last%maxLately]
	now.tick = tick
	clear(now.slots)
	for _, b := range now.news {
		clear(b)
	}
}

// changedSince returns what has changed since a tick, besides what was spawned since; not if that is too long ago.
func (w *World) changedSince(tick uint64) (*changes, bool) {
	l := &w.since
	if tick >= w.tick {
		return &l.none, true
	}
	i := l.last - min(w.tick-tick, maxLately-1, l.last-1) // no more captures than ticks since
	for i < l.last && l.ring[(i+1)%maxLately].tick <= tick {
		i++
	}
	c := &l.ring[i%maxLately]
	return c, c.tick <= tick
}
