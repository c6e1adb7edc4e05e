package netvar

import (
	"math"
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/codec"
)

// marks are the ticks of those snapshots of which at least one packet has arrived. As of a mark the
// client is known to have every steady object as it was then, except for those in the mark's hole.
type marks struct {
	newest uint64 // 0 if there is no mark
	oldest uint64 // the client has dropped the versions from before it
	made   uint64 // bit i says whether newest-i is a mark
	holes  []hole // of those marks that have one, by tick
}

// hole is the set of the objects that were missing as of a mark. They may have arrived since.
type hole struct {
	tick  uint64
	slots bitset
}

// maxMarks is how many ticks the marks reach back: as many as a trend takes, and one.
const maxMarks = codec.MaxTrend + 1

// add makes a tick the newest mark, which no mark is later than.
func (m *marks) add(tick uint64) {
	m.made = m.made<<(tick-m.newest) | 1 // a shift by 64 or more leaves nothing
	m.newest = tick
	m.oldest = tick - uint64(bits.Len64(m.made)-1)
	m.dropHoles(m.oldest)
}

// setMissing sets which objects are missing as of the newest mark.
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

// missing returns which objects are missing as of a mark.
func (m *marks) missing(tick uint64) bitset {
	for i := len(m.holes) - 1; i >= 0 && m.holes[i].tick >= tick; i-- {
		if m.holes[i].tick == tick {
			return m.holes[i].slots
		}
	}
	return nil
}

// newestWith returns the newest mark as of which the client has the object in a slot, or 0.
func (m *marks) newestWith(slot int) uint64 {
	for rest := m.made; rest != 0; rest &= rest - 1 {
		if tick := m.newest - uint64(bits.TrailingZeros64(rest)); !m.missing(tick).has(slot) {
			return tick
		}
	}
	return 0
}

// origin is the marks that the records of a packet lead from: the state that the client has as of
// the one, drawn on by the trend that has led there from the other. If it is bent, a third mark,
// as far back again, tells how that trend has changed.
type origin struct {
	asOf, trendFrom uint64
	bent            bool
}

// oldest is the oldest of the marks.
func (from origin) oldest() uint64 {
	if from.bent {
		return from.thirdBack()
	}
	return from.trendFrom
}

// kept is since when the client keeps versions, once it has records of the origin: since a third
// mark, although there may be none, or there would never be one.
func (from origin) kept() uint64 { return from.thirdBack() }

func (from origin) thirdBack() uint64 {
	return from.trendFrom - min(from.asOf-from.trendFrom, from.trendFrom)
}

// basis is that of an object.
func (from origin) basis(withheld Rules) basis { return basis{origin: from, withheld: withheld} }

// A trend spans nearTrend ticks, or as few more as the marks allow. A shorter one is blurred by
// rounding, and a longer one misses turns. A trend that leads ahead by more than nearAhead ticks
// has to be steadier and spans farTrend ticks. The spans are the same for all clients, so that two
// clients with the same newest mark mostly have the other mark in common as well.
const (
	nearTrend = 3
	nearAhead = 12
	farTrend  = 9
)

// trendFrom returns from which mark the trend comes that leads to a tick, for records that lead
// from the mark asOf. It returns asOf itself if there is no trend.
func (m *marks) trendFrom(asOf, tick uint64) uint64 {
	ahead, upTo := tick-asOf, m.made>>(m.newest-asOf)
	if upTo == 0 || ahead > codec.MaxTrend {
		return asOf
	}
	span := nearTrend
	if ahead > nearAhead {
		span = farTrend
	}
	if old := upTo >> span; old != 0 {
		return asOf - uint64(span+bits.TrailingZeros64(old))
	}
	return asOf - uint64(bits.Len64(upTo)-1)
}

const (
	// maxOrigins is how many of the newest marks are tried as the origin of a snapshot.
	maxOrigins = 4
	// fewHoles is how many of the objects that are due may be missing as of the origin. Each of
	// them goes by itself, and all others lead from a newer state.
	fewHoles = 8
)

// chooseOrigin returns what the records of a snapshot lead from. That is the newest mark as of
// which few of the objects that are due are missing. An older mark is the newest one of other
// clients, so its records are shared with them. The function counts the objects that are due and
// missing.
func (m *marks) chooseOrigin(tick uint64, missing func(origin) int) (best origin) {
	rest, least := m.made, math.MaxInt
	for tries := 0; rest != 0 && tries < maxOrigins; tries++ {
		asOf := m.newest - uint64(bits.TrailingZeros64(rest))
		rest &= rest - 1
		next := m.originOf(asOf, tick)
		if len(m.holes) == 0 {
			return next
		}
		n := missing(next)
		if n <= fewHoles {
			return next
		}
		if n < least {
			best, least = next, n
		}
	}
	return best
}

// originOf returns the marks that records to a tick lead from if asOf is the newest of them.
func (m *marks) originOf(asOf, tick uint64) origin {
	from := origin{asOf: asOf, trendFrom: m.trendFrom(asOf, tick)}
	from.bent = from.trendFrom < asOf && m.has(from.thirdBack())
	return from
}

// has reports whether a tick up to the newest mark is a mark.
func (m *marks) has(tick uint64) bool { return tick > 0 && m.made>>(m.newest-tick)&1 != 0 }

// missingIn returns which of 64 slots are missing as of one of the marks of an origin.
func (m *marks) missingIn(from origin, k int) uint64 {
	if len(m.holes) == 0 {
		return 0
	}
	return m.missing(from.asOf).word(k) | m.missing(from.trendFrom).word(k) | m.missing(from.oldest()).word(k)
}

// missingSince returns which of 64 slots are missing as of every mark since a tick.
func (m *marks) missingSince(k int, tick uint64) uint64 {
	all, holes := ^uint64(0), 0
	for i := range m.holes {
		if m.holes[i].tick >= tick {
			holes++
			all &= m.holes[i].slots.word(k)
		}
	}
	if holes < bits.OnesCount64(m.made&(2<<(m.newest-tick)-1)) {
		return 0
	}
	return all
}

// setOldest forgets the marks before a tick.
func (m *marks) setOldest(tick uint64) {
	m.made &= 2<<(m.newest-tick) - 1
	m.oldest = m.newest - uint64(max(bits.Len64(m.made), 1)-1)
	m.dropHoles(m.oldest)
}

// dropHoles forgets the holes of the marks before a tick. Their memory goes to the end of the list,
// where setMissing uses it again.
func (m *marks) dropHoles(before uint64) {
	old := 0
	for old < len(m.holes) && m.holes[old].tick < before {
		old++
	}
	if old > 0 {
		slices.Reverse(m.holes[:old])
		slices.Reverse(m.holes[old:])
		slices.Reverse(m.holes)
		m.holes = m.holes[:len(m.holes)-old]
	}
}
