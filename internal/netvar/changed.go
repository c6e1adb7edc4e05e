package netvar

import "github.com/netloop/netloop/internal/netvar/bitset"

// changeLog stores which objects have changed since each of the last captures. With these sets, an
// acknowledgement of a packet with hundreds of objects is processed without a check of each object.
type changeLog struct {
	// sets is a ring, indexed by the number of the capture modulo the length.
	sets     [maxChangeSets]changeSet
	none     changeSet // empty: no object has changed since the newest capture
	captures uint64    // number of the newest capture, from 1
	words    []int     // scratch: indices of the words of moved that are not 0
}

// changeSet is the set of objects that have changed since a tick.
type changeSet struct {
	tick   uint64
	slots  bitset.Set   // objects with a later version
	byRule []bitset.Set // objects with rules, by the rule of the changed fields
}

// maxChangeSets bounds the captures that the log holds. At 64 Hz they span a second, longer than
// most acknowledgements take.
const maxChangeSets = 64

// add records the changed objects of a capture.
func (l *changeLog) add(tick uint64, moved bitset.Set, byRule []bitset.Set) {
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

// add adds the objects in the given words of moved.
func (c *changeSet) add(words []int, moved bitset.Set, byRule []bitset.Set) {
	for len(c.byRule) < len(byRule) {
		c.byRule = append(c.byRule, nil)
	}
	for _, k := range words {
		c.slots.AddWord(k, moved[k])
	}
	for rule := range byRule {
		for _, k := range words {
			if word := byRule[rule].Word(k); word != 0 {
				c.byRule[rule].AddWord(k, word)
			}
		}
	}
}

// reset empties the set, for changes after a tick.
func (c *changeSet) reset(tick uint64) {
	c.tick = tick
	clear(c.slots)
	for _, slots := range c.byRule {
		clear(slots)
	}
}

// changedSince returns the objects that have changed since a tick, without those spawned since. It
// reports false if the tick is older than the log.
func (w *World) changedSince(tick uint64) (*changeSet, bool) {
	l := &w.changes
	if tick >= w.tick {
		return &l.none, true
	}
	// There is at most one capture per tick, so the search can begin as many captures back as there
	// are ticks.
	i := l.captures - min(w.tick-tick, maxChangeSets-1, l.captures-1)
	for i < l.captures && l.sets[(i+1)%maxChangeSets].tick <= tick {
		i++
	}
	c := &l.sets[i%maxChangeSets]
	return c, c.tick <= tick
}
