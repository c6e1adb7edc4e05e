package netvar

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/codec"
)

// plainMarks is the equivalent of marks: a list of ticks with the slots missing as of each.
type plainMarks struct {
	ticks []uint64 // the oldest first
	holes map[uint64]bitset
}

func (l *plainMarks) before(tick uint64) {
	for len(l.ticks) > 0 && l.ticks[0] < tick {
		delete(l.holes, l.ticks[0])
		l.ticks = l.ticks[1:]
	}
}

func (l *plainMarks) of(slot int) uint64 {
	for _, tick := range slices.Backward(l.ticks) {
		if !l.holes[tick].has(slot) {
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

func (l *plainMarks) from(at, tick uint64) origin {
	from := origin{asOf: at, trendFrom: l.trend(at, tick)}
	from.bent = from.trendFrom < at && slices.Contains(l.ticks, 2*from.trendFrom-at)
	return from
}

func (l *plainMarks) origin(tick uint64, due bitset) (best origin) {
	least := 1 << 30
	for i, at := range slices.Backward(l.ticks) {
		if i+maxOrigins < len(l.ticks) {
			break
		}
		next := l.from(at, tick)
		n := l.lacking(next, due)
		if n <= fewHoles {
			return next
		}
		if n < least {
			best, least = next, n
		}
	}
	return best
}

func (l *plainMarks) lacking(two origin, due bitset) (n int) {
	for slot := due.next(0); slot >= 0; slot = due.next(slot + 1) {
		if l.holes[two.asOf].has(slot) || l.holes[two.trendFrom].has(slot) || two.bent && l.holes[2*two.trendFrom-two.asOf].has(slot) {
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
		var m marks
		plain := plainMarks{holes: map[uint64]bitset{}}
		at := uint64(0)
		for range 200 {
			at += 1 + uint64(rng.IntN(3))
			if rng.IntN(15) == 0 {
				at += rng.Uint64N(70)
			}
			m.add(at)
			plain.before(max(at, maxMarks-1) - (maxMarks - 1))
			plain.ticks = append(plain.ticks, at)
			// The set may shrink when more of the snapshot arrives.
			for range 1 + rng.IntN(2) {
				var lacks bitset
				if share := rng.Float64(); rng.IntN(3) > 0 {
					for slot := range slots {
						if rng.Float64() < share {
							lacks.set(slot)
						}
					}
				}
				m.setMissing(lacks)
				plain.holes[at] = lacks
			}
			if len(m.holes) > len(plain.ticks) || m.oldest != plain.ticks[0] {
				t.Fatalf("seed %d: %d holes of %d marks, the oldest %d, want %d", seed, len(m.holes), len(plain.ticks), m.oldest, plain.ticks[0])
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
			var due bitset
			for range rng.IntN(60) {
				due.set(rng.IntN(slots))
			}
			tick := at + 1 + uint64(rng.IntN(14))
			if rng.IntN(10) == 0 {
				tick = at + 60 + uint64(rng.IntN(8))
			}
			want := plain.origin(tick, due)
			got := m.chooseOrigin(tick, func(two origin) (n int) {
				for k, word := range due {
					n += bitset{m.missingIn(two, k) & word}.count()
				}
				return n
			})
			if got != want {
				t.Fatalf("seed %d: a snapshot of %d leads from %v, want %v, marks %v", seed, tick, got, want, plain.ticks)
			}
			if got.asOf != at {
				earlier++
			}
			kept := max(2*got.trendFrom, got.asOf) - got.asOf
			m.setOldest(got.kept())
			plain.before(kept)
			if len(m.holes) > 0 && m.holes[0].tick < kept {
				t.Fatalf("seed %d: the hole of %d is kept, though all leads from %d", seed, m.holes[0].tick, kept)
			}
		}
	}
	if earlier == 0 {
		t.Error("none led from an earlier mark")
	}
}

// Without marks there is no origin.
func TestNoMarksNoOrigin(t *testing.T) {
	var m marks
	if got := m.chooseOrigin(5, nil); got != (origin{}) {
		t.Errorf("origin %v", got)
	}
	if m.setOldest(0); m.newestWith(3) != 0 || m.oldest != 0 {
		t.Errorf("%+v", m)
	}
}

// Holes reuse their memory: there are never more of them than marks, and new ones replace old ones.
func TestHolesKeepTheirMemory(t *testing.T) {
	var m marks
	lacks, tick := make(bitset, 8), uint64(0)
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
	if n := testing.AllocsPerRun(20, play); n != 0 || cap(m.holes) > 2*maxMarks {
		t.Errorf("%v allocations, room for %d holes", n, cap(m.holes))
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
		if got := q.p.marks.has(tick); got != (tick != 3 && tick != 6) {
			t.Errorf("tick %d is a mark: %v", tick, got)
		}
	}
}

// Records lost after a mark are not missing as of it, although both become known at once.
func TestWhatIsLostLaterIsNotMissingAsOfAMark(t *testing.T) {
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
	if slot := o.id.slot(); q.p.marks.missing(mark).has(slot) || !q.p.marks.missing(q.tick).has(slot) {
		t.Errorf("missing as of tick %d: %v, and of %d: %v", mark, q.p.marks.missing(mark), q.tick, q.p.marks.missing(q.tick))
	}
}
