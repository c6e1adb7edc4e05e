package netvar

import (
	"math"
	"math/bits"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// newcomers is a world of many objects, and clients that have joined it in its second tick.
type newcomers struct {
	schema
	t        *testing.T
	w        *World
	tick     uint64
	objects  []*state.Object
	peers    []*Peer
	replicas []*replica.Replica
	came     []map[state.ID]uint64 // by client: the ticks in which its objects arrived
	most     uint64                // maximum of records in a tick
}

func newNewcomers(t *testing.T, objects, peers int) *newcomers {
	t.Helper()
	n := &newcomers{schema: newSchema(t), t: t, tick: 1}
	n.w = NewWorld(n.table)
	for i := range objects {
		n.objects = append(n.objects, n.spawnRock(n.w, rock{X: int32(i)}, 1))
	}
	n.w.Capture(1)
	for range peers {
		n.join()
	}
	return n
}

func (n *newcomers) join() *Peer {
	p, r := n.w.NewPeer(n.tick+1), replica.New(n.table)
	r.StartAt(n.tick)
	n.peers, n.replicas, n.came = append(n.peers, p), append(n.replicas, r), append(n.came, map[state.ID]uint64{})
	return p
}

// play runs a tick without losses.
func (n *newcomers) play(lim Limit) {
	n.t.Helper()
	n.tick++
	n.w.Capture(n.tick)
	before := n.w.stats.Records
	for i, p := range n.peers {
		packets, _ := snap(p, n.tick, lim)
		mustApply(n.t, n.replicas[i], p, packets...)
		for _, e := range n.replicas[i].Events() {
			if e.Kind == replica.Spawn {
				n.came[i][e.Object.ID()] = n.tick
			}
		}
		n.sound(p)
	}
	n.most = max(n.most, n.w.stats.Records-before)
}

// sound checks that never-sent slots were never sent, and are pending.
func (n *newcomers) sound(p *Peer) {
	n.t.Helper()
	if err := soundBlanks(p); err != "" {
		n.t.Fatalf("tick %d: %s", n.tick, err)
	}
}

// soundBlanks returns the first error in a peer's never-sent slots.
func soundBlanks(p *Peer) string {
	for k, word := range p.neverSent {
		switch {
		case word&^p.pending.Word(k) != 0:
			return "something blank is not owed"
		case word&(p.sentOnce.Word(k)|p.sentTwice.Word(k)|p.derived.Word(k)) != 0:
			return "something blank was sent"
		}
		for ; word != 0; word &= word - 1 {
			if e := p.entries[k<<6+bits.TrailingZeros64(word)]; e.phase != shown || e.sent != 0 || e.base != 0 {
				return "something blank has a detail"
			}
		}
	}
	if p.w.details.neverSent != (detail{}) {
		return "the detail of all that is blank was changed"
	}
	return ""
}

// complete plays until the first clients have all objects, and returns the number of ticks.
func (n *newcomers) complete(clients int, lim Limit) (ticks int) {
	n.t.Helper()
	for ticks < 1000 {
		missing := false
		for i := range clients {
			missing = missing || len(n.came[i]) < len(n.objects)
		}
		if !missing {
			return ticks
		}
		n.play(lim)
		ticks++
	}
	n.t.Fatal("they do not get everything")
	return 0
}

// A client without objects is sent those of larger weight first, for any distribution of weights,
// and among equal weights the lower slots first.
func TestAJoinerGetsHeavierObjectsFirst(t *testing.T) {
	for name, weight := range map[string]func(slot int) float64{
		"mixed":  func(slot int) float64 { return []float64{4, 1, 0.25}[slot%3] },
		"blocks": func(slot int) float64 { return []float64{4, 1, 0.25}[slot/50%3] },
		"alike":  func(int) float64 { return 1 },
	} {
		n := newNewcomers(t, 2000, 1)
		for slot, o := range n.objects {
			n.w.SetWeight(o, weight(slot))
		}
		n.complete(1, Limit{Packets: 2, PacketSize: 600})
		// by weight: the last and the first tick in which an object of it arrived
		last := map[float64]uint64{}
		first := map[float64]uint64{}
		for slot, o := range n.objects {
			came, w := n.came[0][o.ID()], weight(slot)
			if first[w] == 0 || came < first[w] {
				first[w] = came
			}
			if name != "mixed" && came+1 < last[w] {
				t.Errorf("%s: slot %d comes in tick %d, and a lower one in %d", name, slot, came, last[w])
			}
			last[w] = max(last[w], came)
		}
		if name != "alike" && (last[4] > first[1]+1 || last[1] > first[0.25]+1) {
			t.Errorf("%s: weight 4 comes until tick %d, 1 from %d until %d, 1/4 from %d", name, last[4], first[1], last[1], first[0.25])
		}
	}
}

// Levels increase with the amount, and two amounts of one level differ by less than an eighth.
func TestLevelsRoundToAnEighth(t *testing.T) {
	least, before := uint64(0), uint16(0)
	for amount := uint64(1); amount < 1<<63; amount += 1 + amount>>9 {
		switch level := levelOf(amount); {
		case level < before:
			t.Fatalf("%d has level %d, and less has %d", amount, level, before)
		case level > before:
			if amount <= 16 && level != uint16(amount) {
				t.Fatalf("%d has level %d", amount, level)
			}
			least, before = amount, level
		case amount-least >= (least+7)/8:
			t.Fatalf("%d and %d have both level %d", least, amount, level)
		}
	}
	if most := levelOf(math.MaxUint64); most != before+8 {
		t.Errorf("the largest amount has level %d, and the half of it %d", most, before)
	}
}

// An object that becomes overdue while a client catches up is sent soon after, although it has a
// low weight.
func TestAPlanSendsOverdueObjectsSoon(t *testing.T) {
	const every = 10
	n := newNewcomers(t, 3000, 0)
	n.w.SetClassWeight(n.ship, 1.0/8, every)
	var ships []*state.Object
	for range 20 {
		ships = append(ships, n.spawnShip(n.w, ship{}, 0, 2))
	}
	n.objects = append(n.objects, ships...)
	n.tick++
	n.w.Capture(n.tick)
	joined := n.tick
	n.join()
	if ticks := n.complete(1, Limit{Packets: 1, PacketSize: 600}); ticks < 3*every {
		t.Fatalf("everything has come in %d ticks", ticks)
	}
	for _, o := range ships {
		if after := n.came[0][o.ID()] - joined; after < every || after > every+minPlanTicks+1 {
			t.Errorf("something that is overdue after %d ticks comes after %d", every, after)
		}
	}
}

// A new object is sent at once when all of the plan is sent: the plan does not hold it, and is made
// again.
func TestASentPlanIsMadeAgain(t *testing.T) {
	n := newNewcomers(t, 10, 1)
	n.w.PlanFrom(1)
	lim := Limit{Packets: 8, PacketSize: 1200}
	n.play(lim)
	last := n.spawnRock(n.w, rock{X: 10}, 1)
	n.objects = append(n.objects, last)
	n.play(lim)
	if at := n.came[0][last.ID()]; at != n.tick {
		t.Errorf("the object of tick %d came in tick %d", n.tick, at)
	}
}

// The cost of a snapshot depends on its records, not on the objects that its client lacks: all
// objects are ranked once, neighbours are one candidate, and each object is encoded once for all
// clients that join in the same tick.
func TestTheCostOfAPlanDependsOnItsRecords(t *testing.T) {
	const objects = 6000
	n := newNewcomers(t, objects, 2)
	n.w.stats = Stats{}
	for ticks := n.complete(2, wide); ticks > 5; ticks = 0 {
		t.Errorf("it takes %d ticks", ticks)
	}
	if s := &n.w.stats; s.Planned != 2 || s.Encoded > objects*6/5 || s.Ranked > s.InRuns/16 || s.FullFirst != 2*objects {
		t.Errorf("%d plans, %d encodings, %d of %d ranked, %d sent", s.Planned, s.Encoded, s.Ranked, s.InRuns, s.FullFirst)
	}
}

// A queue grants turns up to its exact number of expected records, and one turn in any case.
func TestALaneGrantsUpToItsNumberOfRecords(t *testing.T) {
	for i, c := range []struct {
		took []uint64
		want []bool
	}{
		{[]uint64{40, 60, 1}, []bool{true, true, false}},
		{[]uint64{40, 61, 60}, []bool{true, false, true}},
		{[]uint64{101, 1}, []bool{true, false}},
	} {
		l := catchUpQueue{most: 100}
		for j, took := range c.took {
			turn := turns{took: took}
			if got := l.grant(&turn); got != c.want[j] || turn.granted != got {
				t.Errorf("case %d: turn %d of %v is granted: %v", i, j, c.took, got)
			}
		}
	}
}

// In each tick a queue grants turns to the longest waiting clients, as far as it has room.
func TestALaneGrantsTurnsToTheLongestWaiting(t *testing.T) {
	w := NewWorld(newSchema(t).table)
	l := &w.catchUp[joinQueue]
	l.most = 100
	var peers []*Peer
	for _, took := range []uint64{60, 30, 30} {
		p := w.NewPeer(1)
		p.turns.took = took
		p.wait()
		peers = append(peers, p)
	}
	for i, c := range []struct {
		tick, granted uint64
		gone          int
	}{{7, 90, 2}, {7, 90, 2}, {8, 30, 3}, {9, 0, 3}} {
		if c.tick != l.tick {
			l.granted, l.served = 1000, 1000
		}
		l.begin(c.tick)
		if l.tick != c.tick || l.granted != c.granted || l.served != 0 || !slices.Equal(l.waiting, peers[c.gone:]) {
			t.Errorf("step %d: of tick %d are %d records granted, %d served, %d wait", i, l.tick, l.granted, l.served, len(l.waiting))
		}
		for j, p := range peers {
			if p.turns.waits != (j >= c.gone) || p.turns.granted != (j < c.gone) {
				t.Errorf("step %d: client %d has %+v", i, j, p.turns)
			}
		}
	}
}

// A client is granted a turn at once if no client waits and its queue has room, and waits
// otherwise. A granted turn is served unless the tick has served twice its number of records.
func TestClientsLoadInTurns(t *testing.T) {
	for i, c := range []struct {
		turns           turns
		queued          bool
		granted, served uint64
		may, waits      bool
		took            uint64
	}{
		{turns{}, false, 0, 0, true, false, firstTurn},
		{turns{took: 70}, false, 0, 0, true, false, 70},
		{turns{took: 70}, true, 0, 0, false, true, 70},
		{turns{took: 70}, false, joinRecords, 0, false, true, 70},
		{turns{took: 70, waits: true}, false, 0, 0, false, true, 70},
		{turns{took: 70, granted: true}, true, joinRecords, 2*joinRecords - 70, true, false, 70},
		{turns{took: 70, granted: true}, true, joinRecords, 2*joinRecords - 69, false, false, 70},
		{turns{took: 3 * joinRecords, granted: true}, true, joinRecords, 0, true, false, 3 * joinRecords},
	} {
		w := NewWorld(newSchema(t).table)
		p, l := w.NewPeer(1), &w.catchUp[joinQueue]
		if c.queued {
			l.waiting = append(l.waiting, w.NewPeer(1))
		}
		p.turns, l.tick, l.granted, l.served, p.cut.header.Tick = c.turns, 5, c.granted, c.served, 5
		if may := p.cut.mayLoad(); may != c.may || p.turns.waits != c.waits || p.turns.took != c.took {
			t.Errorf("case %d: it may load: %v, and has %+v", i, may, p.turns)
		}
	}
}

// Blank slots are sent as a run if they are at least half of the slots that it spans, and if it
// spans no other candidate. If the span overlaps another run, they are not sent.
func TestARunSpansFewOtherSlots(t *testing.T) {
	n := newNewcomers(t, 64, 1)
	n.w.Capture(2)
	c := &n.peers[0].cut
	c.begin(nil, 2, wide)
	for _, set := range []struct {
		mask, taken, covered uint64
		runs                 int // 0: one run of all
		none                 bool
	}{
		{mask: 1 << 9},
		{mask: 1 | 1<<3},
		{mask: 1 | 1<<4, runs: 2},
		{mask: 0x5555555555555555},
		{mask: 0x9249249249249249, runs: 22},
		{mask: 1<<2 | 1<<4, taken: 1 << 3, runs: 2},
		{mask: 1<<2 | 1<<4, taken: 1<<1 | 1<<5},
		{mask: 1<<2 | 1<<4, covered: 1 << 3, none: true},
		{mask: 1<<2 | 1<<4, covered: 1<<1 | 1<<5},
	} {
		c.list, c.taken, c.covered = c.list[:0], bitset.Set{set.taken}, bitset.Set{set.covered}
		c.addPlanned(0, set.mask)
		records := 0
		for _, one := range c.list {
			records += one.run.records
		}
		if want := bits.OnesCount64(set.mask); !set.none && (records != want || len(c.list) != max(set.runs, 1)) || set.none && records > 0 {
			t.Errorf("slots %b among %b and the runs %b: %d records in %d runs", set.mask, set.taken, set.covered, records, len(c.list))
		}
	}
}

// A client that gives up its turn leaves the queue, and the others do not.
func TestAClientThatGivesUpItsTurnLeavesTheQueue(t *testing.T) {
	for gone := range 4 {
		w := NewWorld(newSchema(t).table)
		var peers []*Peer
		for range 3 {
			p := w.NewPeer(1)
			p.wait()
			peers = append(peers, p)
		}
		peers = append(peers, w.NewPeer(1)) // not waiting
		peers[gone].turns.granted = true
		peers[gone].giveUpTurn()
		want := slices.DeleteFunc(slices.Clone(peers[:3]), func(p *Peer) bool { return p == peers[gone] })
		if got := w.catchUp[joinQueue].waiting; !slices.Equal(got, want) || peers[gone].turns != (turns{}) {
			t.Errorf("client %d of 3 gives up: %d are left, it has %+v", gone, len(got), peers[gone].turns)
		}
	}
}

// The expected records of a first turn depend on its queue, and include the ranking.
func TestAFirstTurnIsExpectedToTakeAPlan(t *testing.T) {
	n := newNewcomers(t, 40*rankShare, 1)
	p := n.peers[0]
	if got := p.firstTurn(); got != firstTurn+40 {
		t.Errorf("%d records, want %d and 40", got, firstTurn)
	}
	if p.Slow(); p.firstTurn() != slowTurn+40 {
		t.Errorf("%d records in the slow lane, want %d and 40", p.firstTurn(), slowTurn)
	}
}

// If full records are too large for a run of 64, those of later clients are sent in shorter runs at
// once; if they are only too large for the packets of this client, they are not.
func TestFullRecordsThatAreLargeGoInShorterRuns(t *testing.T) {
	class := classOf[barge](t, "barge")
	for _, c := range []struct {
		logged, size, width int
	}{{0, packet.MaxSize, 64}, {0, 200, 64}, {2, 200, 8}, {5, packet.MaxSize, 4}, {16, packet.MaxSize, 1}} {
		w := NewWorld(state.NewTable(class))
		for range farBehind + 64 {
			b := new(barge)
			for i := range c.logged {
				b.Log[i] = 1 << 60
			}
			w.Spawn(class, unsafe.Pointer(b), 0, 1)
		}
		w.Capture(1)
		p := w.NewPeer(2)
		w.Capture(2)
		snap(p, 2, Limit{Packets: 4, PacketSize: c.size})
		if got := w.runs[0].fullWidth; got != c.width {
			t.Errorf("%d large numbers, packets of %d bytes: runs extend over %d slots, want %d", c.logged, c.size, got, c.width)
		}
		for _, n := range p.cut.list {
			if n.run.size == 0 || n.run.records > c.width {
				t.Errorf("%d large numbers: a run of %d records takes %d bits", c.logged, n.run.records, n.run.size)
			}
		}
	}
}

// While a client catches up, it is sent changes of the objects that it has, also during the turns
// of others.
func TestChangesGoOnWhileAClientCatchesUp(t *testing.T) {
	n := newNewcomers(t, 4000, 4)
	o, slow := n.objects[100], 0
	for _, p := range n.peers {
		p.Slow()
	}
	n.w.SetWeight(o, state.MaxWeight)
	for range 40 {
		value := &rock{X: int32(n.tick) << 8}
		*live[rock](o) = *value
		n.w.Edit(o)
		n.play(wide)
		for i, r := range n.replicas {
			got, ok := r.Get(o.ID())
			switch {
			case !ok:
			case live[rock](got).X != value.X:
				t.Fatalf("tick %d: client %d has %d", n.tick, i, live[rock](got).X)
			case len(n.came[i]) < len(n.objects):
				slow++
			}
		}
	}
	if slow < 40 {
		t.Errorf("only %d times a client was catching up", slow)
	}
}

// Clients in the slow queue take few records of a tick, however many they are, and share them
// equally. Joining clients are served meanwhile, and a leaving client takes no turn with it.
func TestTheSlowLaneIsBoundedAndFair(t *testing.T) {
	const clients, objects = 12, 2000
	n := newNewcomers(t, objects, clients)
	for _, p := range n.peers {
		p.Slow()
	}
	for range 200 { // a client joins and leaves
		p := n.w.NewPeer(n.tick + 1)
		p.Slow()
		n.play(wide)
		if _, _ = snap(p, n.tick, wide); n.tick%2 == 0 {
			p.RequestFull()
		}
		n.w.ClosePeer(p)
		least, most := objects, 0
		for _, came := range n.came {
			least, most = min(least, len(came)), max(most, len(came))
		}
		if most-least > 3*slowTurn {
			t.Fatalf("tick %d: one has %d, another %d", n.tick, most, least)
		}
	}
	n.complete(clients, wide)
	if n.most > slowRecords+slowTurn+64 {
		t.Errorf("%d records in a tick", n.most)
	}
	for _, p := range n.peers {
		p.RequestFull()
	}
	n.join()
	from := n.tick
	if n.complete(clients+1, wide); n.tick-from > 3 {
		t.Errorf("who joins while others ask for the full state has it after %d ticks", n.tick-from)
	}
	for _, p := range n.peers {
		for p.neverSent.Count() >= n.w.farBehind {
			n.play(wide)
		}
		if p.turns != (turns{}) && n.tick-from > 100 {
			t.Errorf("a turn is left over: %+v", p.turns)
		}
	}
}

// SetWeight sets the weight of one object.
func (w *World) SetWeight(o *state.Object, weight float64) { o.Weight = state.FixedWeight(weight) }
