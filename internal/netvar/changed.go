package netvar

// changeLog knows which objects have changed since each of the last captures. An acknowledgement of
// a packet with hundreds of objects asks it, and need not look at each of them.
type changeLog struct {
	// sets is a ring: that of a capture is at its number modulo the length.
	sets     [maxChangeSets]changeSet
	none     changeSet // what has changed since the newest capture
	captures uint64    // the number of the newest capture, from 1
	words    []int     // scratch: the words of moved that are not 0
}

// changeSet is what has changed since a tick.
type changeSet struct {
	tick   uint64
	slots  bitset   // the objects that have a later version
	byRule []bitset // those with rules, by the rule of the fields that have changed
}

// maxChangeSets is for how many captures the log knows it. They are a second of them, more than
// most acknowledgements take.
const maxChangeSets = 64

// add notes which objects a capture has found changed.
func (l *changeLog) add(tick uint64, moved bitset, byRule []bitset) {
	l.words = l.words[:0]
	for k, word := range moved {
		if word != 0 {
			l.words = append(l.words, k)
		}
	}
	for i := range l.sets {
		l.sets[i].add(l.words, moved, byRule)
	}
	l.captures++
	l.sets[l.captures%maxChangeSets].reset(tick)
}

// add adds the objects of these words.
func (c *changeSet) add(words []int, moved bitset, byRule []bitset) {
	for len(c.byRule) < len(byRule) {
		c.byRule = append(c.byRule, nil)
	}
	for _, k := range words {
		c.slots.add(k, moved[k])
	}
	for rule := range byRule {
		for _, k := range words {
			if word := byRule[rule].word(k); word != 0 {
				c.byRule[rule].add(k, word)
			}
		}
	}
}

// reset empties the set, for what changes after a tick.
func (c *changeSet) reset(tick uint64) {
	c.tick = tick
	clear(c.slots)
	for _, slots := range c.byRule {
		clear(slots)
	}
}

// changedSince returns which objects have changed since a tick, without those that were spawned
// since. It reports false if the tick is longer ago than the log reaches back.
func (w *World) changedSince(tick uint64) (*changeSet, bool) {
	l := &w.changes
	if tick >= w.tick {
		return &l.none, true
	}
	// There were no more captures than ticks since then, so the search begins that many back.
	i := l.captures - min(w.tick-tick, maxChangeSets-1, l.captures-1)
	for i < l.captures && l.sets[(i+1)%maxChangeSets].tick <= tick {
		i++
	}
	c := &l.sets[i%maxChangeSets]
	return c, c.tick <= tick
}
