package netvar

import (
	"math"
	"math/bits"
	"slices"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
)

// ackedTicks is the set of acked ticks of a client: the ticks of which it has acknowledged at least
// one packet. For every object with a derived baseline (derived.go), the client has the version
// that was the newest at an acked tick, unless the object's slot was missing then.
type ackedTicks struct {
	newest    uint64         // 0 if the set is empty
	oldest    uint64         // oldest acked tick; the client may have dropped versions before it
	set       uint64         // bit i is set if newest-i is an acked tick
	missingAt []missingSlots // sorted by tick; acked ticks without missing objects have none
}

// missingSlots is the set of objects that the client lacked as of an acked tick. They may have
// arrived since.
type missingSlots struct {
	tick  uint64
	slots bitset.Set
}

// maxAckedTicks is the number of ticks that the set spans: one more than the longest trend.
const maxAckedTicks = codec.MaxTrend + 1

// add makes a tick the newest acked tick. It must be later than all acked ticks, or equal to the
// newest.
func (m *ackedTicks) add(tick uint64) {
	m.set = m.set<<(tick-m.newest) | 1 // a shift by 64 or more yields 0
	m.newest = tick
	m.oldest = tick - uint64(bits.Len64(m.set)-1)
	m.dropMissing(m.oldest)
}

// setMissing stores the objects that are missing as of the newest acked tick.
func (m *ackedTicks) setMissing(slots bitset.Set) {
	n := len(m.missingAt)
	if n > 0 && m.missingAt[n-1].tick == m.newest {
		n--
		m.missingAt = m.missingAt[:n]
	}
	switch {
	case len(slots) == 0:
		return
	case n < cap(m.missingAt):
		m.missingAt = m.missingAt[:n+1]
	default:
		m.missingAt = append(m.missingAt, missingSlots{})
	}
	h := &m.missingAt[n]
	h.tick, h.slots = m.newest, append(h.slots[:0], slots...)
}

// missing returns the objects that are missing as of an acked tick.
func (m *ackedTicks) missing(tick uint64) bitset.Set {
	for i := len(m.missingAt) - 1; i >= 0 && m.missingAt[i].tick >= tick; i-- {
		if m.missingAt[i].tick == tick {
			return m.missingAt[i].slots
		}
	}
	return nil
}

// newestWith returns the newest acked tick as of which the slot is not missing, or 0.
func (m *ackedTicks) newestWith(slot int) uint64 {
	for rest := m.set; rest != 0; rest &= rest - 1 {
		if tick := m.newest - uint64(bits.TrailingZeros64(rest)); !m.missing(tick).Has(slot) {
			return tick
		}
	}
	return 0
}

// A trend is the past change from which values are extrapolated. It spans nearTrend ticks, or more
// if there is no acked tick at that distance. Shorter trends suffer from rounding, and longer
// trends miss changes of direction. A trend that extrapolates by more than nearAhead ticks must be
// more stable and spans farTrend ticks. The spans are the same for all clients, so clients with the
// same newest acked tick mostly share the other acked tick as well.
const (
	nearTrend = 3
	nearAhead = 12
	farTrend  = 9
)

// trendFrom returns the acked tick at which the trend begins, for records from the acked tick asOf
// to a tick. It returns asOf if there is no trend.
func (m *ackedTicks) trendFrom(asOf, tick uint64) uint64 {
	ahead, upTo := tick-asOf, m.set>>(m.newest-asOf)
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
	// maxOrigins bounds the number of acked ticks that are tried as the origin of a snapshot.
	maxOrigins = 4
	// fewMissing bounds the due objects that may be missing as of the origin. Each of these is
	// encoded individually; the records of all others benefit from the newer origin.
	fewMissing = 8
)

// chooseOrigin returns the origin of a snapshot's records. Among the maxOrigins newest acked ticks
// it selects the newest tick as of which at most fewMissing due objects are missing, or else the
// tick with the fewest missing objects. An older acked tick is often the newest acked tick of other
// clients, so its records are shared with them. The function missing counts the missing due objects
// of an origin.
func (m *ackedTicks) chooseOrigin(tick uint64, missing func(packet.Origin) int) (best packet.Origin) {
	rest, least := m.set, math.MaxInt
	for tries := 0; rest != 0 && tries < maxOrigins; tries++ {
		asOf := m.newest - uint64(bits.TrailingZeros64(rest))
		rest &= rest - 1
		next := m.originOf(asOf, tick)
		if len(m.missingAt) == 0 {
			return next
		}
		n := missing(next)
		if n <= fewMissing {
			return next
		}
		if n < least {
			best, least = next, n
		}
	}
	return best
}

// originOf returns the origin for records to a tick with asOf as its newest acked tick.
func (m *ackedTicks) originOf(asOf, tick uint64) packet.Origin {
	from := packet.Origin{AsOf: asOf, TrendFrom: m.trendFrom(asOf, tick)}
	from.Bent = from.TrendFrom < asOf && m.has(from.ThirdBack())
	return from
}

// has reports whether a tick is an acked tick. The tick must not be later than the newest acked
// tick.
func (m *ackedTicks) has(tick uint64) bool { return tick > 0 && m.set>>(m.newest-tick)&1 != 0 }

// missingIn returns the slots of block k that are missing as of any acked tick of an origin.
func (m *ackedTicks) missingIn(from packet.Origin, k int) uint64 {
	if len(m.missingAt) == 0 {
		return 0
	}
	return m.missing(from.AsOf).Word(k) | m.missing(from.TrendFrom).Word(k) | m.missing(from.Oldest()).Word(k)
}

// missingSince returns the slots of block k that are missing as of every acked tick since a tick.
func (m *ackedTicks) missingSince(k int, tick uint64) uint64 {
	all, holes := ^uint64(0), 0
	for i := range m.missingAt {
		if m.missingAt[i].tick >= tick {
			holes++
			all &= m.missingAt[i].slots.Word(k)
		}
	}
	if holes < bits.OnesCount64(m.set&(2<<(m.newest-tick)-1)) {
		return 0
	}
	return all
}

// setOldest drops the acked ticks before a tick.
func (m *ackedTicks) setOldest(tick uint64) {
	m.set &= 2<<(m.newest-tick) - 1
	m.oldest = m.newest - uint64(max(bits.Len64(m.set), 1)-1)
	m.dropMissing(m.oldest)
}

// dropMissing drops the missing slots of the acked ticks before a tick. Their memory is moved to
// the end of the list, where setMissing reuses it.
func (m *ackedTicks) dropMissing(before uint64) {
	old := 0
	for old < len(m.missingAt) && m.missingAt[old].tick < before {
		old++
	}
	if old > 0 {
		slices.Reverse(m.missingAt[:old])
		slices.Reverse(m.missingAt[old:])
		slices.Reverse(m.missingAt)
		m.missingAt = m.missingAt[:len(m.missingAt)-old]
	}
}
