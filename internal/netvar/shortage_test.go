package netvar

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

// queue is a world in which nearly all objects are pending for a client with a small budget.
type queue struct {
	*field
	p *Peer
}

func newQueue(tb testing.TB, rocks int) *queue {
	q := &queue{field: newField(tb, rocks, 1, 2).warm(false)}
	q.p = q.peers[0]
	q.p.SetBudget(Budget{PerTick: 200, Burst: 200})
	for range 20 {
		q.step(true)
	}
	return q
}

// Only the records that are sent, and a few that do not fit, are ordered.
func TestAShortageOrdersOnlySentRecords(t *testing.T) {
	q := newQueue(t, 2000)
	q.w.stats = Stats{}
	for range 20 {
		q.step(true)
	}
	if s := &q.w.stats; s.Ranked < s.Records || s.Ranked > s.Records+20 || s.Records < 20*20 || s.Waited < 20*1500 {
		t.Errorf("to send %d records %d were put in order, and %d waited", s.Records, s.Ranked, s.Waited)
	}
	q.p.SetBudget(Budget{})
	q.w.stats = Stats{}
	q.tick++
	q.move()
	q.w.Capture(q.tick)
	snap(q.p, q.tick, Limit{Packets: 2, PacketSize: 300})
	if s := &q.w.stats; s.Ranked != s.Records+maxMisfits || s.Records < 40 {
		t.Errorf("to send %d records in two packets %d were put in order", s.Records, s.Ranked)
	}
	for i := range q.p.cut.list {
		if n := &q.p.cut.list[i]; n.packet == unplaced && n.why != WhyPackets {
			t.Fatalf("slot %d is left out for %d, want %d", n.slot, n.why, WhyPackets)
		}
	}
}

// For any number of elements, pop yields them in the order of a plain sort.
func TestNeededComesInOrder(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 33))
		h := make(priorities, rng.IntN(70))
		for i := range h {
			h[i] = priority{amount: rng.Uint64N(6), index: uint32(i), rank: rank(rng.IntN(3))}
		}
		plain := slices.Clone(h)
		slices.SortFunc(plain, byPlainOrder)
		rng.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
		h.order()
		for i, want := range plain {
			if got := h.pop(); got != want {
				t.Fatalf("seed %d: %+v comes as number %d of %d, want %+v", seed, got, i, len(plain), want)
			}
		}
	}
}

func byPlainOrder(a, b priority) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.amount, a.amount), cmp.Compare(a.index, b.index))
}

// contest is a world in which all kinds of records compete under all kinds of limits.
type contest struct {
	schema
	t       *testing.T
	rng     *rand.Rand
	w       *World
	p       *Peer
	tick    uint64
	objects []*state.Object
	tried   [rankCopy + 1]int
	untried [rankCopy + 1]int
	late    int // large records tried after the packets were full
}

func newContest(t *testing.T, seed uint64) *contest {
	c := &contest{schema: newSchema(t), t: t, rng: rand.New(rand.NewPCG(seed, 34))}
	c.w = NewWorld(c.table)
	c.w.SetClassWeight(c.rock, 1, uint64(c.rng.IntN(8)))
	c.w.SetFactor(c.ship, func(_ *Peer, o *state.Object) float64 { return float64(o.ID().Slot() % 7) })
	c.p = c.w.NewPeer(1)
	return c
}

// step changes the world and cuts a snapshot, and checks the order in which candidates were tried.
func (c *contest) step() {
	c.tick++
	for range c.rng.IntN(60) {
		switch c.rng.IntN(8) {
		case 0:
			c.objects = append(c.objects, c.spawnHoard(c.w, hoard{Loot: list4k()[:c.rng.IntN(800)]}, c.tick))
		case 1, 2, 3:
			c.objects = append(c.objects, c.spawnRock(c.w, rock{X: c.rng.Int32()}, c.tick))
		default:
			c.objects = append(c.objects, c.spawnShip(c.w, ship{Name: "HMS"}, 0, c.tick))
		}
	}
	for i, o := range c.objects {
		switch c.rng.IntN(10) {
		case 0:
			c.w.Despawn(o)
		case 1, 2, 3:
			c.w.Edit(o)
			if i%3 == 0 && o.Class() == c.rock {
				live[rock](o).Y = c.rng.Int32()
			}
		}
	}
	c.objects = slices.DeleteFunc(c.objects, func(o *state.Object) bool { return !o.Alive() })
	c.w.Capture(c.tick)
	p, cut := c.p, &c.p.cut
	if n := p.flight.next - 1; n > 0 && c.rng.IntN(3) == 0 {
		p.Ack([]Range{{max(n, 3) - 2, n}})
		p.AckLarge(p.large.last)
	}
	p.SetBudget(Budget{PerTick: []int{0, 50, 1000}[c.rng.IntN(3)], Burst: 2000})
	p.tick, c.w.cut = c.tick, c.tick
	cut.begin(nil, c.tick, Limit{Packets: 1 + c.rng.IntN(3), PacketSize: 150 + c.rng.IntN(1000), Reliable: c.rng.IntN(4) > 0})
	cut.gather(true)
	if !cut.inOrder() {
		cut.gatherSingly()
		cut.weigh()
		plain := slices.Clone(cut.priorities)
		cut.byPriority()
		if cut.budget > 0 {
			c.check(plain)
		}
	}
	cut.finish()
	cut.commit()
	p.before, cut.packets = c.tick, nil
}

// check compares the order with that of a plain sort, and that no record was skipped that would
// have fitted.
func (c *contest) check(plain []priority) {
	c.t.Helper()
	slices.SortFunc(plain, byPlainOrder)
	cut := &c.p.cut
	var tried []uint32
	for i := range cut.list {
		if cut.list[i].why != 0 {
			tried = append(tried, uint32(i))
		}
	}
	slices.SortFunc(tried, func(a, b uint32) int { return cmp.Compare(cut.list[a].order, cut.list[b].order) })
	misfits := 0
	for i, n := range plain {
		if len(tried) > 0 && tried[0] == n.index {
			tried = tried[1:]
			if c.tried[n.rank]++; n.large && misfits >= maxMisfits {
				c.late++
			} else if !n.large && cut.list[n.index].packet == unplaced {
				misfits++
			}
			continue
		}
		c.untried[n.rank]++
		full := misfits >= maxMisfits && (!n.large || cut.largeRoom <= 0)
		if !full && (!cut.short || len(tried) > 0) {
			c.t.Fatalf("tick %d: number %d of %d was passed over, and %d others were tried after it", c.tick, i, len(plain), len(tried))
		}
	}
	if len(tried) > 0 {
		c.t.Fatalf("tick %d: %d are left, which were tried out of order", c.tick, len(tried))
	}
}

// A shortage tries candidates in the order of a plain sort, until no more can be sent.
func TestAShortageGoesByThePlainOrder(t *testing.T) {
	var tried, untried [rankCopy + 1]int
	late := 0
	for seed := range uint64(6) {
		c := newContest(t, seed)
		for range 30 {
			c.step()
		}
		for i := range tried {
			tried[i] += c.tried[i]
			untried[i] += c.untried[i]
		}
		late += c.late
	}
	if late == 0 || slices.Contains(tried[:], 0) || slices.Contains(untried[1:], 0) {
		t.Errorf("by rank %v were tried and %v were not, %d large ones late", tried, untried, late)
	}
}

// A snapshot is short of budget once its records have used all of it, and not while a bit is left.
func TestABudgetIsShortOnceItIsUsedUp(t *testing.T) {
	q := newPair(t, 0)
	for range 3 {
		q.spawnRock(q.w, rock{X: 5}, 1)
	}
	q.tick++
	q.w.Capture(q.tick)
	c := &q.p.cut
	c.begin(nil, q.tick, wide)
	c.gather(false)
	c.weigh()
	c.next()
	place := func(budget int) (placed, used int) {
		c.left = budget
		c.weigh()
		c.choose(c.room)
		for _, i := range c.chosen {
			used += int(c.list[i].size)
		}
		return len(c.chosen), used
	}
	_, all := place(1 << 20)
	for _, set := range []struct {
		budget, placed int
		short          bool
	}{{1 << 20, 3, false}, {all + 1, 3, false}, {all, 3, true}, {all - 1, 3, true}, {1, 1, true}} {
		if placed, used := place(set.budget); placed != set.placed || c.short != set.short || c.left != set.budget {
			t.Errorf("%d records of %d bits go on %d, short: %v, left %d", placed, used, set.budget, c.short, c.left)
		}
	}
}

type letter struct {
	Stamp int32
	Text  string `net:"max=200"`
}

// A record that fills a packet to the last bit is sent under a shortage too.
func TestARecordOfExactlyAPacketFits(t *testing.T) {
	class := classOf[letter](t, "letter")
	sizes := 0
	for words := range 40 {
		cut := func(size int) (packets [][]byte, list []candidate) {
			w := NewWorld(state.NewTable(class))
			p := w.NewPeer(1)
			// one record is sent, and the other one has to wait
			p.SetBudget(Budget{PerTick: 1, Burst: 1})
			for i := range 2 {
				o := w.Spawn(class, unsafe.Pointer(&letter{int32(words * words * words), strings.Repeat("x", words)}), 0, 1)
				w.SetWeight(o, float64(2-i))
			}
			w.Capture(1)
			packets, _ = snap(p, 1, Limit{Packets: 2, PacketSize: size})
			return packets, p.cut.list
		}
		packets, list := cut(packet.MaxSize)
		data := packets[len(packets)-1]
		if list[0].packet == unplaced || data[packet.AtFlags]>>packet.AtPadding != 0 {
			continue
		}
		sizes++
		if _, list := cut(len(data)); list[0].packet == unplaced || list[1].packet != unplaced {
			t.Errorf("a record of exactly a packet of %d bytes waits", len(data))
		}
		if _, list := cut(len(data) - 1); list[0].packet != unplaced {
			t.Errorf("a record of a packet of %d bytes went into a smaller one", len(data))
		}
	}
	if sizes == 0 {
		t.Error("no record was of exactly a packet")
	}
}

// BenchmarkShortage is a snapshot of 200 bytes for a client with 10 000 pending objects, without
// the capture, compared with the time for listing them once. It reports the minimum of both times.
func BenchmarkShortage(b *testing.B) {
	q := newQueue(b, 10_000)
	least := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i := range least {
			q.tick++
			q.move()
			q.w.Capture(q.tick)
			start := time.Now()
			if i == 0 {
				q.packets[0], _ = q.p.AppendSnapshot(q.packets[0][:0], q.tick, wide)
			} else {
				q.p.cut.gather(true)
			}
			least[i] = min(least[i], time.Since(start))
		}
	}
	b.ReportMetric(float64(least[0].Nanoseconds()), "ns/snapshot")
	b.ReportMetric(float64(least[1].Nanoseconds()), "ns/gather")
	b.ReportMetric(float64(least[0])/float64(least[1]), "ratio")
}
