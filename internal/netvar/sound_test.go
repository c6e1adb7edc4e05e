package netvar

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// unsound checks the consistency of a peer's state after a snapshot, slot by slot, and returns the
// first error: the last change of a pending slot is later than the acknowledged version, and copies
// recorded as in flight are in a packet in flight.
func (p *Peer) unsound() string {
	out := make([]int, len(p.entries))
	for id := p.flight.oldest; id < p.flight.next; id++ {
		s := p.flight.packet(id)
		if !s.inFlight {
			continue
		}
		for _, r := range s.records {
			for m := r.mask; m != 0; m &= m - 1 {
				slot := int(r.block)<<6 + bits.TrailingZeros64(m)
				if e := p.peek(slot); s.tick >= e.life && e.phase != absent && p.carried(s, &r, slot) == p.version(slot, &e) {
					out[slot]++
				}
			}
		}
	}
	for slot := range p.entries {
		e := p.peek(slot)
		once, waiting := p.sentOnce.Has(slot), p.sentTwice.Has(slot)
		if e.phase == absent || !p.pending.Has(slot) {
			if once || waiting {
				return fmt.Sprintf("slot %d: once %v, waiting %v, and nothing is owed", slot, once, waiting)
			}
		}
		if e.phase == absent {
			continue
		}
		version := p.version(slot, &e)
		if owed := e.phase == ended || version > e.base; owed != p.pending.Has(slot) {
			return fmt.Sprintf("slot %d: version %d, acknowledged %d, owed %v", slot, version, e.base, !owed)
		}
		if p.large.slots.Has(slot) {
			continue
		}
		if p.pending.Has(slot) && (once != (out[slot] > 0) || waiting && !once) {
			return fmt.Sprintf("slot %d: %d packets in flight carry version %d, and once %v, waiting %v", slot, out[slot], version, once, waiting)
		}
		if p.derived.Has(slot) && (e.phase != shown || p.w.objects.Slots[slot].WireClass().Large) {
			return fmt.Sprintf("slot %d is steady, in phase %d", slot, e.phase)
		}
	}
	return ""
}

// unlike compares the client's state with the peer's assumptions, and returns the first difference.
func (p *Peer) unlike(r *replica.Replica) string {
	for slot := p.derived.Next(0); slot >= 0; slot = p.derived.Next(slot + 1) {
		o := p.w.objects.Slots[slot]
		for age := range uint64(maxAckedTicks) {
			mark := p.ackedTicks.newest - age
			if p.ackedTicks.set>>age&1 == 0 || p.ackedTicks.missing(mark).Has(slot) {
				continue
			}
			i := o.Hist.Floor(mark, o.Changed())
			if i < 0 {
				continue
			}
			own, ok := r.Get(o.ID())
			if !ok {
				return fmt.Sprintf("slot %d is steady, and the client does not have it", slot)
			}
			v := p.View(slot)
			j := own.Hist.Floor(mark, own.Changed())
			if want := v.AsOf(o, mark); j < 0 || want > 0 && own.Hist.Tick(j) != want {
				return fmt.Sprintf("slot %d is steady, the client should have version %d as of %d, and has not (%d)", slot, want, mark, j)
			}
			if age > 0 && mark != p.ackedTicks.oldest {
				continue
			}
			var should codec.Values
			p.w.permit(&should, o, i, v.Withheld, 0)
			if has := own.Hist.Values(j); !o.WireClass().Equal(&has, &should) {
				return fmt.Sprintf("slot %d is steady, and the client has other values than the server as of %d", slot, mark)
			}
		}
	}
	return ""
}

// acknowledged returns by slot the newest version that packets in flight have of the current
// lifetime, or the baseline if that is newer: the baseline after an acknowledgement of these
// packets, in any order.
func (p *Peer) acknowledged(ranges []Range) []uint64 {
	least := make([]uint64, len(p.entries))
	for slot := range least {
		least[slot] = p.peek(slot).base
	}
	for _, g := range ranges {
		for id := max(g.First, p.flight.oldest); id <= g.Last; id++ {
			s := p.flight.packet(id)
			for i := range s.records {
				for m := s.records[i].mask; m != 0 && s.inFlight; m &= m - 1 {
					slot := int(s.records[i].block)<<6 + bits.TrailingZeros64(m)
					if s.tick >= max(p.entries[slot].life, p.View(slot).Since) {
						least[slot] = max(least[slot], s.records[i].version)
					}
				}
			}
		}
	}
	return least
}

// Explain has no side effects: packets and costs are the same, otherwise a recording would not
// replay.
func TestExplainUnsettlesNothing(t *testing.T) {
	play := func(ask bool) (packets []byte, inRuns uint64) {
		f := newFleet(t, 128, 2, twoBaselines, 0.05)
		for range 40 {
			f.step(128)
			for i := range f.clients {
				c := &f.clients[i]
				for _, b := range c.packets {
					packets = append(packets, b...)
				}
				if !ask {
					continue
				}
				x := f.w.Explain(c.peer, f.crates[f.tick%128], 1)
				if x.Why != WhySent || x.Sent != f.tick || x.Version != f.tick || x.Copies != 1 || len(x.Packets) != 1 {
					t.Fatalf("tick %d: %+v", f.tick, x)
				}
			}
		}
		return packets, f.w.Stats().InRuns - f.counts.InRuns
	}
	quiet, inRuns := play(false)
	asked, n := play(true)
	if !bytes.Equal(quiet, asked) {
		t.Error("other packets leave when somebody asks")
	}
	if n != inRuns || n == 0 {
		t.Errorf("%d records go in runs when somebody asks, else %d", n, inRuns)
	}
}

// Records sent before a full request do not count, and objects that the last snapshot left out
// without a reason are pending again.
func TestExplainAfterAFullRequest(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.p.RequestFull()
	if x := q.w.Explain(q.p, o, 1); x.Why != WhyNext || x.Baseline != 0 || x.Sent != 0 {
		t.Errorf("%+v, want reason %d", x, WhyNext)
	}
}

// Runs are charged to the client's budget, and one that exceeds it is split: of its records, as of
// others, those with room are sent, and one record overdraws the budget.
func TestRunsAreCutToTheBudget(t *testing.T) {
	for _, set := range []struct{ crates, budget int }{{64, 40}, {640, 700}} {
		f := newFleet(t, set.crates, 1, []uint64{3}, 0)
		c := &f.clients[0]
		c.peer.SetBudget(Budget{PerTick: set.budget})
		for range 30 {
			f.step(set.crates)
			sum := 0
			for _, b := range c.packets {
				n, err := packet.RecordBytes(b)
				if err != nil {
					t.Fatal(err)
				}
				sum += n
			}
			if sum > set.budget+20 || sum < set.budget*3/4 {
				t.Fatalf("tick %d: %d bytes of records in %d packets, with a budget of %d", f.tick, sum, len(c.packets), set.budget)
			}
		}
	}
}

// A run has no objects with fields that the client may not read: their changes differ from those of
// other clients.
func TestARunHasNoObjectsWithHiddenFields(t *testing.T) {
	q := newSquad(t, 0)
	var agents []*state.Object
	for range 16 {
		agents = append(agents, q.spawn(whole(), 1))
	}
	for range 4 {
		for _, o := range agents {
			q.edit(o).X++
		}
		q.deliver()
	}
	for _, o := range agents {
		q.edit(o).X++
	}
	packets := q.next()
	for _, o := range agents {
		q.edit(o).Ammo++
	}
	q.tick++
	q.w.Capture(q.tick)
	mustApply(t, q.r[2], q.p[2], packets[2])
	if n := q.p[2].pending.Count(); n != 0 {
		t.Errorf("%d changes of what may not be read are owed", n)
	}
	q.deliver()
	q.settled()
}

// A client that doubts its copies is sent no delta.
func TestAFullRequestUnsettlesAll(t *testing.T) {
	f := newFleet(t, 128, 1, []uint64{3}, 0)
	f.clients[0].peer.RequestFull()
	f.begin()
	f.step(128)
	if st := f.w.Stats(); st.FullRequested-f.counts.FullRequested != 128 || st.Deltas != f.counts.Deltas {
		t.Errorf("%d full records and %d deltas, want 128 and none", st.FullRequested-f.counts.FullRequested, st.Deltas-f.counts.Deltas)
	}
}

// Encodings of a tick are cached for a bounded number of bases per object and of runs. Further ones
// are encoded again with the same result, and take no more memory.
func TestEncodingsOfATickAreBounded(t *testing.T) {
	f := newFleet(t, 64, 1, []uint64{3}, 0)
	w, o := f.w, f.crates[5]
	w.Capture(f.tick + 1)
	f.move(64)
	w.Capture(f.tick + 2)
	const most = maxResiduals + maxReplaced
	one := most * (packet.MaxSize / 4)
	var full int
	for n := range uint64(2 * 100) {
		back, from := n/2, basis{Origin: packet.Origin{AsOf: f.tick - n/2}, exact: true}
		if n%2 > 0 { // another variant of the same bits
			from = basis{Origin: packet.Origin{AsOf: from.AsOf, TrendFrom: from.AsOf}}
		}
		r := w.residual(o, from)
		if n == most {
			full = len(w.arena)
		}
		got, n := w.bitsOf(r)
		var d delta
		d.find(w, o, from)
		var want wire.BitWriter
		o.Plan().PutDelta(&want, &d.now, &d.then, new(codec.Trend))
		size := want.Len()
		if want.Flush(); n != size || !bytes.Equal(got[:(n+7)/8], want.Bytes()) {
			t.Fatalf("from %d ticks before: %d bits %x, want %d bits %x", back, n, got[:(n+7)/8], size, want.Bytes())
		}
	}
	if len(w.arena) > one || len(w.arena) != full {
		t.Errorf("the encodings of one object take %d bytes, %d when the cache was full", len(w.arena), full)
	}
	runs := 0
	c := &f.clients[0].peer.cut
	c.header.Tick, c.room = w.tick, 8*packet.MaxSize
	for back := range uint64(100) {
		c.origin = packet.Origin{AsOf: f.tick - back, TrendFrom: f.tick - back}
		if r := c.findRun(0, ^uint64(0)>>(back%3), 64); r.size > 0 {
			if runs++; cap(r.bits) > packet.MaxSize/maxShare+64 {
				t.Errorf("a run takes %d bytes", cap(r.bits))
			}
		}
	}
	if runs < maxRuns || len(w.runs[0].by) != maxRuns {
		t.Errorf("%d runs, and %d are kept", runs, len(w.runs[0].by))
	}
	if c.begin(nil, f.tick+3, wide); w.unsharedUsed != 0 {
		t.Error("a run that has no place outlives its snapshot")
	}
}

// The memory of a peer is bounded and small: for each slot an entry and some bits; for each record
// in flight less than 8 bytes in a busy world, and never more than MaxInFlight packets.
func TestTheMemoryOfAPeerIsBounded(t *testing.T) {
	if entry, record := unsafe.Sizeof(entry{}), unsafe.Sizeof(sentRecord{}); entry > 24 || record > 24 {
		t.Errorf("an entry takes %d bytes, a record in flight %d", entry, record)
	}
	f := newFleet(t, 256, 2, twoBaselines, 0)
	for range 2 * MaxInFlight { // no acknowledgements any more
		f.tick++
		f.move(256)
		f.w.Capture(f.tick)
		for i := range f.clients {
			c := &f.clients[i]
			c.packets, _ = c.peer.AppendSnapshot(c.packets[:0], f.tick, wide)
		}
	}
	for i := range f.clients {
		p := f.clients[i].peer
		records, room := 0, 0
		for id := p.flight.oldest; id < p.flight.next; id++ {
			for _, r := range p.flight.packet(id).records {
				records += bits.OnesCount64(r.mask)
			}
		}
		for _, s := range p.flight.ring {
			room += cap(s.records)
		}
		for _, s := range p.flight.spare {
			room += cap(s)
		}
		if n := p.flight.next - p.flight.oldest; n > MaxInFlight || len(p.flight.ring) > MaxInFlight || len(p.flight.spare) > MaxInFlight {
			t.Errorf("%d packets in flight, a ring of %d, and %d spare", n, len(p.flight.ring), len(p.flight.spare))
		}
		if bytes := room * int(unsafe.Sizeof(sentRecord{})); records == 0 || bytes > 8*records {
			t.Errorf("%d records in flight take %d bytes", records, bytes)
		}
		if len(p.entries) != f.w.Slots() || len(p.entries) > 256*5/4 || len(p.derived) > 5 {
			t.Errorf("%d entries and %d words for 256 objects", len(p.entries), len(p.derived))
		}
	}
}

// Steady objects have no detail, and the world's pool of details is bounded.
func TestSteadyObjectsHaveNoDetail(t *testing.T) {
	f := newFleet(t, 256, 40, twoBaselines, 0)
	held := func() (n int) {
		for i := range f.clients {
			p := f.clients[i].peer
			for slot := range p.entries {
				if d := p.entries[slot].detail; (d == nil) != p.derived.Has(slot) && p.entries[slot].phase != absent {
					t.Fatalf("client %d: slot %d is steady: %v, and its detail is %v", i, slot, p.derived.Has(slot), d)
				} else if d != nil {
					n++
				}
			}
		}
		return n
	}
	if n := held(); n != 0 {
		t.Errorf("%d objects have details though nothing was lost", n)
	}
	for i := range f.clients {
		f.clients[i].peer.RequestFull()
	}
	if n := held(); n != 256*40 {
		t.Errorf("%d objects have details once all are in doubt", n)
	}
	for range 30 {
		f.step(256)
	}
	if n := held(); n != 0 || len(f.w.details.spare) > f.w.Slots()+moreDetails {
		t.Errorf("%d objects have details again, and %d are kept for them", n, len(f.w.details.spare))
	}
}

// An entry stores exactly which versions up to its baseline were acknowledged, as far back as a
// trend may begin.
func TestAnEntryStoresVersionsForTrends(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		e := entry{detail: new(detail)}
		acked := map[uint64]bool{}
		version := uint64(0)
		for range 200 {
			if rng.IntN(20) == 0 {
				version += rng.Uint64N(150)
			}
			version += 1 + rng.Uint64N(1+seed%4)
			e.advance(version)
			acked[version] = true
			if old := version - min(version-1, rng.Uint64N(100)); rng.IntN(4) == 0 {
				e.noteAcked(old)
				acked[old] = true
			}
			for v := version - min(version-1, 200); v <= version; v++ {
				if want := acked[v] && version-v <= codec.MaxTrend; e.hasAcked(v) != want {
					t.Fatalf("seed %d: as of %d version %d is remembered: %v", seed, version, v, !want)
				}
				if version-v > codec.MaxTrend {
					delete(acked, v)
				}
			}
		}
		if e.forget(); e.hasAcked(version) || e.ackedSet != 0 {
			t.Fatalf("seed %d: a version is remembered that is forgotten: %+v", seed, e)
		}
	}
}
