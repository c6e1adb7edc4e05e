package netvar

import (
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/codec"
)

// marks are the ticks of snapshots of which something has arrived: as of these a client is known to have all
// that is steady, but for their holes.
type marks struct {
	newest uint64 // the newest, 0 = none
	oldest uint64 // the oldest: the one that trends come from, unless that is too long ago; the client has dropped what was before
	made   uint64 // bit i is the mark at - i, none before from
	holes  []hole // of some of them, by tick
}

// hole is what a client lacks as of a mark. It may have got it since.
type hole struct {
	tick  uint64
	slots bitset
}

// maxMarks is how far marks reach back: as many ticks as a trend takes.
const maxMarks = codec.MaxTrend + 1

// add makes a later tick the newest mark.
func (m *marks) add(tick uint64) {
	m.made = m.made<<(tick-m.newest) | 1 // a shift by 64 or more leaves nothing
	m.newest = tick
	m.oldest = tick - uint64(bits.Len64(m.made)-1)
	m.dropHoles(m.oldest)
}

// lack says what the client lacks as of the newest mark.
func (m *marks) setMissing(slots bitset) {
	n := len(m.holes)
	if n > 0 && m.holes[n-1].tick == m.newest {
		n--
		m.holes = m.holes[:n]
	}
	switch {
	case len(slots) == 0:
		return
	case n < cap(m.holes):
		m.holes = m.holes[:n+1]
	default:
		m.holes = append(m.holes, hole{})
	}
	h := &m.holes[n]
	h.tick, h.slots = m.newest, append(h.slots[:0], slots...)
}

// lacks returns what the client lacks as of a mark.
func (m *marks) missing(tick uint64) bitset {
	for i := len(m.holes) - 1; i >= 0 && m.holes[i].tick >= tick; i-- {
		if m.holes[i].tick == tick {
			return m.holes[i].slots
		}
	}
	return nil
}

// of returns the newest mark as of which the client has what is steady in a slot, or 0.
func (m *marks) newestWith(slot int) uint64 {
	for rest := m.made; rest != 0; rest &= rest - 1 {
		if tick := m.newest - uint64(bits.TrailingZeros64(rest)); !m.missing(tick).has(slot) {
			return tick
		}
	}
	return 0
}

// origin is two marks that the records of a packet lead from: the state as of the one, with the trend since the other.
type origin struct{ asOf, trendFrom uint64 }

// The ticks that trends take, where marks allow it: fewer, and rounding blurs them; more, and turns do. What leads ahead by more
// than nearAhead needs a steadier one. It is not cut to measure for each client, so that clients that lead from the same mark
// have the other in common as well.
const (
	nearTrend = 3
	nearAhead = 12
	farTrend  = 9
)

// trend returns the mark that trends to a tick come from, if they lead from a mark.
func (m *marks) trendFrom(at, tick uint64) uint64 {
	ahead, back := tick-at, m.made>>(m.newest-at)
	if back == 0 || ahead > codec.MaxTrend {
		return at
	}
	span := nearTrend
	if ahead > nearAhead {
		span = farTrend
	}
	if old := back >> span; old != 0 {
		return at - uint64(span+bits.TrailingZeros64(old))
	}
	return at - uint64(bits.Len64(back)-1)
}

const (
	// maxOrigins is how many marks are tried for one with few holes.
	maxOrigins = 4
	// fewHoles is how many of what is due may lack from an origin: they go one by one, and all others lead from a newer state.
	fewHoles = 8
)

// origin returns what the records of a snapshot lead from: the newest mark, or, where much of what is due was lost as of that, an earlier
// one, which other clients have as their newest. holes counts what is due and lacks.
func (m *marks) chooseOrigin(tick uint64, holes func(origin) int) (best origin) {
	least := 0
	for rest, tries := m.made, 0; rest != 0 && tries < maxOrigins; rest, tries = rest&(rest-1), tries+1 {
		at := m.newest - uint64(bits.TrailingZeros64(rest))
		next := origin{at, m.trendFrom(at, tick)}
		if len(m.holes) == 0 {
			return next
		}
		n := holes(next)
		if n <= fewHoles {
			return next
		}
		if tries == 0 || n < least {
			best, least = next, n
		}
	}
	return best
}

// lackedBy returns what the client lacks as of one of the marks of an origin, in 64 slots.
func (m *marks) missingIn(two origin, k int) uint64 {
	if len(m.holes) == 0 {
		return 0
	}
	return m.missing(two.asOf).word(k) | m.missing(two.trendFrom).word(k)
}

// never returns what the client lacks as of all marks since a tick, in 64 slots.
func (m *marks) missingSince(k int, since uint64) uint64 {
	all, holes := ^uint64(0), 0
	for i := range m.holes {
		if m.holes[i].tick >= since {
			holes++
			all &= m.holes[i].slots.word(k)
		}
	}
	if holes < bits.OnesCount64(m.made&(2<<(m.newest-since)-1)) {
		return 0
	}
	return all
}

// begin makes a mark the one where trends come from, and forgets those before.
func (m *marks) setOldest(from uint64) {
	m.oldest = from
	m.made &= 2<<(m.newest-from) - 1
	m.dropHoles(from)
}

// forget forgets the holes of ticks before.
func (m *marks) dropHoles(before uint64) {
	old := 0
	for old < len(m.holes) && m.holes[old].tick < before {
		old++
	}
	if old > 0 { // those that go keep their memory, at the end
		slices.Reverse(m.holes[:old])
		slices.Reverse(m.holes[old:])
		slices.Reverse(m.holes)
		m.holes = m.holes[:len(m.holes)-old]
	}
}
