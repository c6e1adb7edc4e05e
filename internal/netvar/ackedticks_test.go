package netvar

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
)

// plainMarks is the equivalent of marks: a list of ticks with the slots missing as of each.
type plainMarks struct {
	ticks []uint64 // the oldest first
	holes map[uint64]bitset.Set
}

func (l *plainMarks) before(tick uint64) {
	for len(l.ticks) > 0 && l.ticks[0] < tick {
		delete(l.holes, l.ticks[0])
		l.ticks = l.ticks[1:]
	}
}

func (l *plainMarks) of(slot int) uint64 {
	for _, tick := range slices.Backward(l.ticks) {
		if !l.holes[tick].Has(slot) {
			return tick
		}
	}
	return 0
}

func (l *plainMarks) trend(at, tick uint64) uint64 {
	if tick-at > codec.MaxTrend {
		return at
	}
	span := uint64(nearTrend)
	if tick-at > nearAhead {
		span = farTrend
	}
	for _, from := range slices.Backward(l.ticks) {
		if from+span <= at {
			return from
		}
	}
	return l.ticks[0]
}

func (l *plainMarks) from(at, tick uint64) packet.Origin {
	from := packet.Origin{AsOf: at, TrendFrom: l.trend(at, tick)}
	from.Bent = from.TrendFrom < at && slices.Contains(l.ticks, 2*from.TrendFrom-at)
	return from
}

func (l *plainMarks) origin(tick uint64, due bitset.Set) (best packet.Origin) {
	least := 1 << 30
	for i, at := range slices.Backward(l.ticks) {
		if i+maxOrigins < len(l.ticks) {
			break
		}
		next := l.from(at, tick)
		n := l.lacking(next, due)
		if n <= fewMissing {
			return next
		}
		if n < least {
			best, least = next, n
		}
	}
	return best
}

func (l *plainMarks) lacking(two packet.Origin, due bitset.Set) (n int) {
	for slot := due.Next(0); slot >= 0; slot = due.Next(slot + 1) {
		if l.holes[two.AsOf].Has(slot) || l.holes[two.TrendFrom].Has(slot) || two.Bent && l.holes[2*two.TrendFrom-two.AsOf].Has(slot) {
			n++
		}
	}
	return n
}

// Marks agree with a plain list, with gaps of all sizes, up to and beyond their span.
func TestMarksAgreeWithAPlainList(t *testing.T) {
	const slots = 130
	earlier := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 21))
		var m ackedTicks
		plain := plainMarks{holes: map[uint64]bitset.Set{}}
		at := uint64(0)
		for range 200 {
			at += 1 + uint64(rng.IntN(3))
			if rng.IntN(15) == 0 {
				at += rng.Uint64N(70)
			}
			m.add(at)
			plain.before(max(at, maxAckedTicks-1) - (maxAckedTicks - 1))
			plain.ticks = append(plain.ticks, at)
			// The set may shrink when more of the snapshot arrives.
			for range 1 + rng.IntN(2) {
				var lacks bitset.Set
				if share := rng.Float64(); rng.IntN(3) > 0 {
					for slot := range slots {
						if rng.Float64() < share {
							lacks.Add(slot)
						}
					}
				}
				m.setMissing(lacks)
				plain.holes[at] = lacks
			}
			if len(m.missingAt) > len(plain.ticks) || m.oldest != plain.ticks[0] {
				t.Fatalf("seed %d: %d holes of %d marks, the oldest %d, want %d", seed, len(m.missingAt), len(plain.ticks), m.oldest, plain.ticks[0])
			}
			since := plain.ticks[rng.IntN(len(plain.ticks))]
			for slot := range slots {
				if got, want := m.newestWith(slot), plain.of(slot); got != want {
					t.Fatalf("seed %d: slot %d is known as of %d, want %d", seed, slot, got, want)
				}
				if got, want := m.missingSince(slot>>6, since)>>(slot&63)&1 != 0, plain.of(slot) < since; got != want {
					t.Fatalf("seed %d: slot %d lacks as of all marks since %d: %v", seed, slot, since, got)
				}
			}
			if rng.IntN(3) > 0 {
				continue
			}
			var due bitset.Set
			for range rng.IntN(60) {
				due.Add(rng.IntN(slots))
			}
			tick := at + 1 + uint64(rng.IntN(14))
			if rng.IntN(10) == 0 {
				tick = at + 60 + uint64(rng.IntN(8))
			}
			want := plain.origin(tick, due)
			got := m.chooseOrigin(tick, func(two packet.Origin) (n int) {
				for k, word := range due {
					n += bitset.Set{m.missingIn(two, k) & word}.Count()
				}
				return n
			})
			if got != want {
				t.Fatalf("seed %d: a snapshot of %d leads from %v, want %v, marks %v", seed, tick, got, want, plain.ticks)
			}
			if got.AsOf != at {
				earlier++
			}
			kept := max(2*got.TrendFrom, got.AsOf) - got.AsOf
			m.setOldest(got.Kept())
			plain.before(kept)
			if len(m.missingAt) > 0 && m.missingAt[0].tick < kept {
				t.Fatalf("seed %d: the hole of %d is kept, though all leads from %d", seed, m.missingAt[0].tick, kept)
			}
		}
	}
	if earlier == 0 {
		t.Error("none led from an earlier mark")
	}
}

// Without marks there is no origin.
func TestNoMarksNoOrigin(t *testing.T) {
	var m ackedTicks
	if got := m.chooseOrigin(5, nil); got != (packet.Origin{}) {
		t.Errorf("origin %v", got)
	}
	if m.setOldest(0); m.newestWith(3) != 0 || m.oldest != 0 {
		t.Errorf("%+v", m)
	}
}

// Holes reuse their memory: there are never more of them than marks, and new ones replace old ones.
func TestHolesKeepTheirMemory(t *testing.T) {
	var m ackedTicks
	lacks, tick := make(bitset.Set, 8), uint64(0)
	play := func() {
		for i := range uint64(200) {
			tick += 1 + i%3
			m.add(tick)
			lacks[i%8] ^= i
			m.setMissing(lacks)
			if i%5 == 0 {
				m.setMissing(nil)
			}
			if i%70 == 69 {
				m.setOldest(m.newest)
			}
		}
	}
	play()
	if n := testing.AllocsPerRun(20, play); n != 0 || cap(m.missingAt) > 2*maxAckedTicks {
		t.Errorf("%v allocations, room for %d holes", n, cap(m.missingAt))
	}
}

// Each tick with an acknowledged packet is a mark, also if several are acknowledged at once.
func TestEachAcknowledgedTickIsAMark(t *testing.T) {
	q := newPair(t, 0)
	q.spawnRock(q.w, rock{}, 1)
	var ranges []Range
	for range 7 {
		packets, first := q.next()
		if q.tick != 3 && q.tick != 6 {
			ranges = append(ranges, Range{first, first + uint64(len(packets)) - 1})
		}
	}
	q.p.Ack(ranges)
	for tick := uint64(1); tick <= q.tick; tick++ {
		if got := q.p.ackedTicks.has(tick); got != (tick != 3 && tick != 6) {
			t.Errorf("tick %d is a mark: %v", tick, got)
		}
	}
}

// Records lost after a mark are not missing as of it, although both become known at once.
func TestLaterLossesAreNotMissingAsOfAMark(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	_, first := q.next()
	mark := q.tick
	q.edit(o).X++
	q.next()
	q.next()
	_, last := q.next() // two copies are in flight, so this packet has no record
	q.p.Ack([]Range{{first, first}, {last, last}})
	if slot := o.Slot(); q.p.ackedTicks.missing(mark).Has(slot) || !q.p.ackedTicks.missing(q.tick).Has(slot) {
		t.Errorf("missing as of tick %d: %v, and of %d: %v", mark, q.p.ackedTicks.missing(mark), q.tick, q.p.ackedTicks.missing(q.tick))
	}
}
