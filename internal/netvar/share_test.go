package netvar

import (
	"fmt"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
)

// oddClients is the number of clients with unusual acknowledgements: as many as places for the runs
// of a block.
const oddClients = 48

// oddFleet is a fleet of clients near and far, preceded by odd clients with a different delay each.
func oddFleet(tb testing.TB, crates, odd, clients int) *fleet {
	var delays []uint64
	for i := range odd {
		delays = append(delays, 9+uint64(i))
	}
	for i := range clients {
		delays = append(delays, twoBaselines[i%2])
	}
	f := newFleet(tb, crates, odd+clients, delays, 0)
	f.odd = odd
	return f
}

// forOthers returns the number of records encoded since begin for clients that are not odd.
func (f *fleet) forOthers() (encoded uint64) {
	for i := range f.clients[f.odd:] {
		encoded += f.clients[f.odd+i].encoded
	}
	return encoded
}

// Clients with unusual acknowledgements do not keep the others from sharing, even if they joined
// first: neither runs, nor the variants of objects that are sent individually.
func TestOddClientsInFrontDoNotPreventSharing(t *testing.T) {
	const crates, clients = 64, 20
	for _, set := range []struct {
		name   string
		moving int
		alone  bool // objects are sent individually
	}{{"runs", crates, false}, {"variants", crates, true}} {
		t.Run(set.name, func(t *testing.T) {
			play := func(odd int) (f *fleet, inRuns int) {
				f = oddFleet(t, crates, odd, clients)
				for range 80 { // until the acknowledgements of the odd clients arrive
					f.step(set.moving)
				}
				f.begin()
				for range 8 {
					for i := range f.clients {
						if set.alone {
							f.clients[i].peer.alone()
						}
					}
					f.step(set.moving)
					for i := range f.clients[odd:] {
						list := f.clients[odd+i].peer.cut.list
						for j := range list {
							if list[j].run != nil {
								inRuns += list[j].run.records
							}
						}
					}
				}
				return f, inRuns
			}
			alike, inRuns := play(0)
			mixed, inRunsToo := play(oddClients)
			want, got := alike.forOthers(), mixed.forOthers()
			t.Logf("%d records were encoded for %d clients alike, %d with others in front; %d and %d go in runs", want, clients, got, inRuns, inRunsToo)
			if want == 0 || 2*got > 3*want {
				t.Errorf("%d records were encoded for them, and %d without the others", got, want)
			}
			if inRunsToo < inRuns || set.alone != (inRuns == 0) {
				t.Errorf("%d of their records go in runs, and %d without the others", inRunsToo, inRuns)
			}
		})
	}
}

// BenchmarkOddClients: 1 000 objects that all move, to 200 clients near and far, with and without
// 48 odd clients before them. The time for the 200 should be at most 1.5 times as long.
func BenchmarkOddClients(b *testing.B) {
	for _, odd := range []int{0, oddClients} {
		b.Run(fmt.Sprint("odd=", odd), func(b *testing.B) {
			f := oddFleet(b, 1000, odd, 200)
			f.begin()
			for b.Loop() {
				f.step(1000)
			}
			b.ReportMetric(f.spent.others.Seconds()*1000/float64(f.spent.ticks), "others-ms/tick")
			b.ReportMetric(f.spent.encode.Seconds()*1000/float64(f.spent.ticks), "encode-ms/tick")
			b.ReportMetric(float64(f.forOthers())/float64(f.spent.ticks), "others-encoded/tick")
		})
	}
}

// With any number of odd clients a block caches at most 48 runs.
func TestRunsHaveSoManyPlaces(t *testing.T) {
	f := oddFleet(t, 8, oddClients+4, 0)
	for range 80 { // until the acknowledgements of the last client arrive
		f.step(8)
	}
	if n := len(f.w.runs[0].by); n != maxRuns {
		t.Errorf("%d runs are kept of as many clients, want %d", n, oddClients)
	}
}

// The bits of replaced variants remain in the arena, but their number is bounded.
func TestVariantsGoForOthersOnlySoOften(t *testing.T) {
	f := oddFleet(t, 4, 0, 1)
	w, o := f.w, f.crates[0]
	full := 0
	const kept = maxResiduals + maxReplaced
	for back := range uint64(2 * kept) {
		at := f.tick - 1 - back%32
		w.residual(o, basis{Origin: packet.Origin{AsOf: at, TrendFrom: at - back/32}})
		if back == kept-1 {
			full = len(w.arena)
		}
		if back >= kept && len(w.arena) != full {
			t.Fatalf("variant %d: %d bytes, and %d before", back, len(w.arena), full)
		}
	}
	if c := w.encoded[o.Slot()]; c.n != maxResiduals || c.replaced != maxReplaced {
		t.Errorf("%d are kept, %d have gone", c.n, c.replaced)
	}
}

// If all places are taken, a new entry evicts a random one, except those that its snapshot uses.
func TestAnyPlaceGoes(t *testing.T) {
	const most = 6
	var s places
	for i := range most {
		if got := s.add(most, uint64(i)); got != i {
			t.Fatalf("the first of them get the places in turn: %d gets %d", i, got)
		}
	}
	var gone [most]int
	refused := 0
	const rounds = 6000
	for range rounds {
		s.ask(2, 100)
		switch i := s.add(most, 100); i {
		case -1:
			refused++
		default:
			gone[i]++
			s.by[i] = 0
		}
	}
	for i, n := range gone {
		if i != 2 && (n < rounds/most*9/10 || n > rounds/most*11/10) {
			t.Errorf("place %d goes %d times of %d", i, n, rounds)
		}
	}
	if gone[2] != 0 || refused == 0 {
		t.Errorf("the place that the snapshot needs goes %d times; %d have none", gone[2], refused)
	}
	if s.reset(); s.add(most, 1) != 0 {
		t.Error("after a reset places are taken")
	}
}

// With slightly more origins than places most clients still find cached entries.
func TestAFewMoreOriginsThanPlacesShareStill(t *testing.T) {
	const origins, each = maxRuns + 8, 4
	var s places
	var holds [maxRuns]int
	found := 0
	for range each {
		for from := range origins {
			i := slices.Index(holds[:len(s.by)], from)
			if i >= 0 {
				found++
				continue
			}
			if i = s.add(maxRuns, uint64(from)); i >= 0 {
				holds[i] = from
			}
		}
	}
	if most := origins * (each - 1); found < most/2 {
		t.Errorf("%d of %d clients find what others have asked for", found, most)
	}
}

// For a client with short limits, about as much is encoded as fits, even without sharing.
func TestShortLimitsEncodeOnlyFittingRecords(t *testing.T) {
	f := newFleet(t, 1280, 1, []uint64{3}, 0)
	c := &f.clients[0]
	for _, budget := range []int{0, 300} {
		c.peer.SetBudget(Budget{PerTick: budget})
		for range 8 {
			f.tick++
			f.move(1280)
			f.w.Capture(f.tick)
			before := *f.w.Stats()
			packets, first := c.peer.AppendSnapshot(nil, f.tick, Limit{Packets: 1, PacketSize: 600})
			c.peer.Ack([]Range{{first, first + uint64(len(packets)) - 1}})
			records, encoded := f.w.stats.Records-before.Records, f.w.stats.Encoded-before.Encoded
			if most := uint64(7 * 64); records == 0 || encoded > most {
				t.Errorf("budget %d: %d records are encoded to send %d, want at most %d", budget, encoded, records, most)
			}
		}
	}
}
