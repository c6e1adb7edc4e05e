package netvar

import (
	"math"
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/codec"
)

// marks is the set of ticks of which the client has acknowledged at least one packet. As of a mark,
// the client has every steady object in its version of then, except the objects in the mark's hole.
type marks struct {
	newest uint64 // 0 if the set is empty
	oldest uint64 // the client has dropped the versions before it
	made   uint64 // bit i is set if newest-i is a mark
	holes  []hole // sorted by tick; marks without missing objects have none
}

// hole is the set of objects that the client lacked as of a mark. They may have arrived since.
type hole struct {
	tick  uint64
	slots bitset
}

// maxMarks is the number of ticks that marks span: the longest trend and one more.
const maxMarks = codec.MaxTrend + 1

// add makes a tick the newest mark. It must be later than all marks, or equal to the newest.
func (m *marks) add(tick uint64) {
	m.made = m.made<<(tick-m.newest) | 1 // a shift by 64 or more yields 0
	m.newest = tick
	m.oldest = tick - uint64(bits.Len64(m.made)-1)
	m.dropHoles(m.oldest)
}

// setMissing stores the objects that are missing as of the newest mark.
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

// missing returns the objects that are missing as of a mark.
func (m *marks) missing(tick uint64) bitset {
	for i := len(m.holes) - 1; i >= 0 && m.holes[i].tick >= tick; i-- {
		if m.holes[i].tick == tick {
			return m.holes[i].slots
		}
	}
	return nil
}

// newestWith returns the newest mark as of which the slot is not missing, or 0.
func (m *marks) newestWith(slot int) uint64 {
	for rest := m.made; rest != 0; rest &= rest - 1 {
		if tick := m.newest - uint64(bits.TrailingZeros64(rest)); !m.missing(tick).has(slot) {
			return tick
		}
	}
	return 0
}

// origin is the set of marks that the records of a packet lead from: the client's state as of asOf,
// extrapolated by the trend from trendFrom to asOf. If bent is set, a third mark, as long before
// trendFrom, gives the change of that trend.
type origin struct {
	asOf, trendFrom uint64
	bent            bool
}

// oldest returns the oldest mark of the origin.
func (from origin) oldest() uint64 {
	if from.bent {
		return from.thirdBack()
	}
	return from.trendFrom
}

// kept returns the tick since which the client keeps versions after a record of this origin. It is
// the third mark, even if the origin has none: otherwise no later origin could have one.
func (from origin) kept() uint64 { return from.thirdBack() }

func (from origin) thirdBack() uint64 {
	return from.trendFrom - min(from.asOf-from.trendFrom, from.trendFrom)
}

// basis returns the basis of one object with this origin.
func (from origin) basis(withheld Rules) basis { return basis{origin: from, withheld: withheld} }

// A trend spans nearTrend ticks, or more if there is no mark at that distance. Shorter trends
// suffer from rounding, and longer ones miss turns. A trend that extrapolates by more than
// nearAhead ticks must be more stable and spans farTrend ticks. The spans are the same for all
// clients, so clients with the same newest mark mostly share the other mark as well.
const (
	nearTrend = 3
	nearAhead = 12
	farTrend  = 9
)

// trendFrom returns the mark at which the trend begins, for records that lead from the mark asOf to
// a tick. It returns asOf if there is no trend.
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
	// maxOrigins bounds the number of marks that are tried as the origin of a snapshot.
	maxOrigins = 4
	// fewHoles bounds the due objects that may be missing as of the origin. Each of them is encoded
	// individually, while all others lead from a newer state.
	fewHoles = 8
)

// chooseOrigin returns the origin of a snapshot's records: the newest mark as of which at most
// fewHoles due objects are missing. If there is none, it is the tried mark with the fewest. An
// older mark is the newest one of other clients, so its records are shared with them. The callback
// counts the due objects that are missing.
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

// originOf returns the origin for records to a tick with asOf as its newest mark.
func (m *marks) originOf(asOf, tick uint64) origin {
	from := origin{asOf: asOf, trendFrom: m.trendFrom(asOf, tick)}
	from.bent = from.trendFrom < asOf && m.has(from.thirdBack())
	return from
}

// has reports whether a tick is a mark. The tick must not be later than the newest mark.
func (m *marks) has(tick uint64) bool { return tick > 0 && m.made>>(m.newest-tick)&1 != 0 }

// missingIn returns the slots of block k that are missing as of any mark of an origin.
func (m *marks) missingIn(from origin, k int) uint64 {
	if len(m.holes) == 0 {
		return 0
	}
	return m.missing(from.asOf).word(k) | m.missing(from.trendFrom).word(k) | m.missing(from.oldest()).word(k)
}

// missingSince returns the slots of block k that are missing as of every mark since a tick.
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

// setOldest drops the marks before a tick.
func (m *marks) setOldest(tick uint64) {
	m.made &= 2<<(m.newest-tick) - 1
	m.oldest = m.newest - uint64(max(bits.Len64(m.made), 1)-1)
	m.dropHoles(m.oldest)
}

// dropHoles drops the holes of the marks before a tick. Their memory is moved to the end of the
// list, where setMissing reuses it.
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
