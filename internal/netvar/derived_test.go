package netvar

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/seeds"
)

// herd is a world in which nearly all objects move in every tick, so that they are steady, and in
// which some become unsteady again and again.
type herd struct {
	t       *testing.T
	rng     *rand.Rand
	w       *World
	class   *state.Class
	crates  []*state.Object
	clients []*herdClient
	tick    uint64
	lim     Limit
	loss    float64
	moving  bool
	team    map[*state.Object]clientSet // clients that may read the team fields of a guard
	full    bool                        // other clients have taken all places of the caches
	reached herdTally
	sent    transcript
}

// herdTally counts the cases that a herd has reached: runs with unreadable fields, parts of runs
// that would be too large, and uncached runs.
type herdTally struct{ masked, parts, lone int }

// guard begins as a crate does, and has fields for its owner and for a team.
type guard struct {
	X, Y, Z float32 `net:"quant=1/512,range=-32:32"`
	Yaw     float32 `net:"quant=1/256"`
	Ammo    int32   `net:"read=owner"`
	Plan    string  `net:"max=20,read=team"`
}

// Ask and Withheld implement Readers.
func (h *herd) Ask(*state.Object) {}

func (h *herd) Withheld(o *state.Object, p *interest.Viewer) (w state.Rules) {
	if int(o.Owner()) != p.Handle.(int) {
		w |= ownerRule
	}
	if !h.team[o].Includes(p) {
		w |= teamRule
	}
	return w
}

type herdClient struct {
	p     *Peer
	r     *replica.Replica
	delay int
	down  [][][]byte // packets in flight, by remaining ticks
	acks  [][]Range
}

func newHerd(t *testing.T, seed uint64) *herd {
	h := &herd{t: t, rng: rand.New(rand.NewPCG(seed, 11)), tick: 100 * seed, moving: true, team: map[*state.Object]clientSet{}, full: seed%4 == 3}
	if h.class = classOf[crate](t, "crate"); seed%2 == 1 {
		h.class = classOf[guard](t, "guard")
	}
	h.w = NewWorld(state.NewTable(h.class))
	h.w.SetReaders(h.class, h)
	h.lim = Limit{Packets: 3 + h.rng.IntN(8), PacketSize: 200 + h.rng.IntN(900)}
	h.loss = []float64{0, 0.02, 0.2}[h.rng.IntN(3)]
	for range 20 + h.rng.IntN(180) {
		h.spawn()
	}
	for i := range 3 {
		c := &herdClient{p: h.w.NewPeer(h.tick + 1), r: replica.New(h.w.table), delay: 1 + h.rng.IntN(5)}
		c.p.Handle = i
		c.r.StartAt(h.tick + 1)
		h.clients = append(h.clients, c)
	}
	return h
}

func (h *herd) spawn() {
	v := reflect.New(h.class.Type()).UnsafePointer()
	*(*crate)(v) = crate{X: h.rng.Float32() * 10}
	owner := uint64(0)
	if h.guards() {
		owner = uint64(h.rng.IntN(4))
	}
	o := h.w.Spawn(h.class, v, owner, h.tick+1)
	if h.crates = append(h.crates, o); h.rng.IntN(3) == 0 {
		h.team[o] = clientSet(h.rng.IntN(8))
	}
}

func (h *herd) guards() bool { return h.class.Rules() != nil }

// order changes the readers of some guards.
func (h *herd) order() {
	for range h.rng.IntN(1 + len(h.crates)/8) {
		o := h.crates[h.rng.IntN(len(h.crates))]
		h.w.Edit(o)
		if g := live[guard](o); h.rng.IntN(2) == 0 {
			g.Ammo++
		} else {
			g.Plan = string(rune('a' + h.rng.IntN(3)))
		}
	}
}

// crowdOut makes the next snapshot find no place for a run.
func (w *World) crowdOut() {
	for k := range w.runs {
		s := w.runsOf(k)
		s.by = slices.Repeat([]uint64{w.stats.Snapshots}, maxRuns)
		clear(s.keys[:])
	}
}

// disturb causes one event that affects few of the crates, or one client.
func (h *herd) disturb() {
	i := h.rng.IntN(len(h.crates))
	o, c := h.crates[i], h.clients[h.rng.IntN(len(h.clients))]
	switch h.rng.IntN(12) {
	case 10, 11:
		h.team[o] = clientSet(h.rng.IntN(8))
		h.w.Recheck(o)
	case 0:
		h.w.Despawn(o)
		delete(h.team, o)
		h.crates[i] = h.crates[len(h.crates)-1]
		h.crates = h.crates[:len(h.crates)-1]
		h.spawn()
	case 1:
		h.spawn()
	case 2:
		h.w.SetAudience(o, clientSet(h.rng.IntN(8)))
	case 3:
		h.w.SetAudience(o, nil)
	case 4:
		h.w.SetOwner(o, h.rng.Uint64N(3))
	case 5:
		c.p.RequestFull()
	case 6:
		c.p.RequestDigest(4)
	case 7:
		c.p.SetBudget(Budget{PerTick: h.rng.IntN(2) * 200})
	case 8:
		h.resume(c, h.rng.IntN(3) > 0)
	default:
		h.moving = !h.moving
	}
}

// step is one tick. Each client acknowledges arrived packets after delay ticks.
func (h *herd) step(disturb bool) {
	h.tick++
	if disturb && h.rng.IntN(12) == 0 {
		h.disturb()
	}
	still := h.rng.IntN(60) // one in so many crates does not move
	for i, o := range h.crates {
		if h.moving && i != still {
			h.w.Edit(o)
			v := live[crate](o)
			v.X += 0.02
			v.Y += float32(h.rng.IntN(5)-2) / 512
			v.Yaw += 0.01
			if v.X > 30 {
				v.X = -30
			}
		}
	}
	if h.guards() && disturb {
		h.order()
	}
	if h.rng.IntN(40) > 0 { // otherwise a snapshot of the last capture
		if h.w.Capture(h.tick); h.full {
			h.w.crowdOut()
		}
	}
	for i, c := range h.clients {
		h.carry(c)
		if fault := c.p.unsound() + c.p.unlike(c.r); fault != "" {
			h.t.Fatalf("tick %d, client %d: %s", h.tick, i, fault)
		}
	}
}

func (h *herd) carry(c *herdClient) {
	// the acknowledgements of two ticks at once, the newest first
	if n := len(c.acks); n > c.delay && n > 1 && h.rng.IntN(8) == 0 {
		c.acks[1] = append(c.acks[1], c.acks[0]...)
		c.acks = c.acks[1:]
	}
	if len(c.acks) > c.delay {
		least := c.p.acknowledged(c.acks[0])
		c.p.Ack(c.acks[0])
		c.acks = c.acks[1:]
		for slot, version := range least {
			if e := c.p.peek(slot); e.base < version && e.phase == shown && !c.p.derived.Has(slot) {
				h.t.Fatalf("tick %d: the baseline of slot %d is %d, and %d is acknowledged", h.tick, slot, e.base, version)
			}
		}
	}
	packets, _ := snap(c.p, h.tick, h.lim)
	h.sent.sent(packets)
	h.tally(c.p)
	c.down = append(c.down, packets)
	if len(c.down) <= c.delay {
		return
	}
	now := c.down[0]
	c.down = c.down[1:]
	var acks []Range
	for _, i := range h.rng.Perm(len(now)) {
		if h.rng.Float64() < h.loss {
			continue
		}
		a, err := c.r.Apply(now[i])
		if err != nil {
			h.t.Fatalf("tick %d: %v", h.tick, err)
		}
		if a.Ack {
			acks = append(acks, Range{a.Packet, a.Packet})
		}
		if d, _ := c.r.Digest(); d == replica.DigestUnequal {
			h.t.Fatalf("tick %d: the digest differs", h.tick)
		}
	}
	c.r.Events()
	if h.rng.Float64() >= h.loss {
		c.acks = append(c.acks, acks)
	} else {
		c.acks = append(c.acks, nil)
	}
}

// tally counts the cases of the last snapshot.
func (h *herd) tally(p *Peer) {
	block := ^uint32(0)
	for _, n := range p.cut.list {
		if n.run == nil {
			continue
		}
		note := &n.run.note
		if _, ok := p.Among(int(note.block), note.mask); ok && len(p.Block(int(note.block))) > 0 {
			h.reached.masked++
		}
		if note.block == block {
			h.reached.parts++
		}
		block = note.block
	}
	h.reached.lone += h.w.unsharedUsed
}

// After any disturbances each client converges to the server's state.
func TestWhateverDisturbsThemClientsConverge(t *testing.T) {
	var total Stats
	var reached herdTally
	const enough = 24 // enough to reach all cases
	played := 0
	for seed := range seeds.Of(t, enough) {
		played++
		h := newHerd(t, seed)
		for range 250 {
			h.step(true)
		}
		h.moving, h.loss = false, 0
		for _, c := range h.clients {
			c.p.SetBudget(Budget{})
		}
		for range 120 {
			h.step(false)
		}
		for i, c := range h.clients {
			seen := 0
			for _, o := range h.crates {
				got, ok := c.r.Get(o.ID())
				if ok != c.p.Shows(o) {
					t.Fatalf("seed %d, client %d: crate %v is there: %v", seed, i, o.ID(), ok)
				}
				if !ok {
					continue
				}
				seen++
				want, has := codec.Values{}, got.Hist.Newest()
				withheld := state.Rules(0)
				if h.guards() {
					withheld = h.Withheld(o, &c.p.Viewer)
				}
				if h.w.permit(&want, o, o.Hist.Len()-1, withheld, 0); !h.class.Equal(&has, &want) {
					t.Fatalf("seed %d, client %d: crate %v is %+v, want %+v", seed, i, o.ID(), has, want)
				}
				if !h.guards() && *live[crate](got) != rounded(o) || got.Owner() != o.Owner() {
					t.Fatalf("seed %d, client %d: crate %v is %+v, want %+v", seed, i, o.ID(), *live[crate](got), rounded(o))
				}
			}
			if n := len(ids(c.r)); n != seen || c.p.pending.Count() > 0 {
				t.Fatalf("seed %d, client %d: %d crates of %d, %d owed", seed, i, n, seen, c.p.pending.Count())
			}
		}
		st := h.w.Stats()
		total.InRuns += st.InRuns
		total.Deltas += st.Deltas
		total.Lost += st.Lost
		total.Masked += st.Masked
		reached.masked += h.reached.masked
		reached.parts += h.reached.parts
		reached.lone += h.reached.lone
	}
	t.Logf("%+v, %+v", reached, total)
	if played < enough {
		return
	}
	if total.Masked == 0 || reached.masked < 1000 || reached.parts < 1000 || reached.lone < 1000 {
		t.Errorf("it does not reach %d changes of views, or one of %+v", total.Masked, reached)
	}
	if total.InRuns < total.Deltas/10 || total.InRuns > total.Deltas*19/20 || total.Lost == 0 {
		t.Errorf("of %d records %d went in runs, %d packets were lost: it does not reach both ways", total.Deltas, total.InRuns, total.Lost)
	}
}

// rounded returns the live value as clients have it.
func rounded(o *state.Object) (c crate) {
	v := captured(o)
	o.Plan().Restore(unsafe.Pointer(&c), &v, nil)
	return c
}

// Neighbours are sent as one run to all clients with the same state, and its bytes are counted by
// class and record.
func TestNeighboursAreOneRunForAllClients(t *testing.T) {
	f := newFleet(t, 192, 10, []uint64{4}, 0)
	before := *f.w.Stats()
	f.step(192)
	st := f.w.Stats()
	if n := st.InRuns - before.InRuns; n != 1920 {
		t.Errorf("%d records in runs, want 1920", n)
	}
	if n := st.Encoded - before.Encoded; n < 192 || n > 192+20 { // plus samples
		t.Errorf("%d records were encoded for 10 clients, want 192", n)
	}
	if st.Records-before.Records != 1920 || st.Deltas-before.Deltas != 1920 {
		t.Errorf("%d records, %d deltas", st.Records-before.Records, st.Deltas-before.Deltas)
	}
	for i := range f.clients {
		if n := f.clients[i].peer.derived.Count(); n != 192 {
			t.Errorf("client %d: %d of 192 are steady", i, n)
		}
	}
}

// The age of an object with a derived baseline counts from its last record, wherever the last mark
// is. Of two competing objects the one with the old record is sent before a heavier one with a new
// record, though the client's acknowledgements are late.
func TestASteadyObjectIsAsOldAsItsLastRecord(t *testing.T) {
	const delay, last = 6, 60
	q := newPair(t, 0)
	heavy, light := q.spawnRock(q.w, rock{}, 1), q.spawnRock(q.w, rock{}, 1)
	q.w.SetWeight(heavy, 4)
	var under [][][]byte
	for q.tick < last {
		q.edit(heavy).X += int32(q.tick * q.tick)
		if q.tick < last-delay-6 {
			q.edit(light).X++
		}
		packets, _ := q.next()
		if under = append(under, packets); len(under) > delay {
			mustApply(t, q.r, q.p, under[0]...)
			under = under[1:]
		}
	}
	slots := []int{heavy.ID().Slot(), light.ID().Slot()}
	for i, want := range []uint64{1, delay + 7} {
		if e := q.p.peek(slots[i]); !q.p.derived.Has(slots[i]) || e.age(last+1) != want {
			t.Errorf("slot %d is steady: %v, and was sent %d ticks ago, want %d", slots[i], q.p.derived.Has(slots[i]), e.age(last+1), want)
		}
	}
	q.edit(heavy).X++
	q.edit(light).X++
	q.p.SetBudget(Budget{PerTick: 1, Burst: 1})
	if q.next(); q.p.cut.list[0].packet != unplaced || q.p.cut.list[1].packet == unplaced {
		t.Errorf("%+v: the second should go", q.p.cut.list)
	}
}

// countMissing counts the objects that are steady, due and missing as of an origin.
func TestMissingObjectsAreCounted(t *testing.T) {
	f := newFleet(t, 150, 6, tenBaselines, 0.2)
	counted := 0
	for range 100 {
		f.step(40)
		for i := range f.clients {
			p := f.clients[i].peer
			m := &p.ackedTicks
			from := m.originOf(m.newest, f.tick+1)
			want := 0
			for slot := range p.entries {
				due := p.pending.Has(slot) && !p.sentTwice.Has(slot)
				if due && p.derived.Has(slot) && (m.missing(from.AsOf).Has(slot) || m.missing(from.TrendFrom).Has(slot) || m.missing(from.Oldest()).Has(slot)) {
					want++
				}
			}
			if got := p.cut.countMissing(from); got != want {
				t.Fatalf("tick %d, client %d: %d are missing as of %v, want %d", f.tick, i, got, from, want)
			}
			counted += want
		}
	}
	if counted == 0 {
		t.Error("nothing was ever missing")
	}
}

// An object becomes steady as soon as no mark is older than the packet that updated the client's
// copy, unless it is missing as of the newest mark.
func TestAnObjectIsSteadyOnceAllMarksKnowIt(t *testing.T) {
	for _, set := range []struct {
		mendedAt uint64
		missing  bool
		want     uint64
	}{{0, false, 0}, {9, false, 1}, {10, false, 1}, {10, true, 0}, {11, false, 0}} {
		p := &Peer{w: &World{}, entries: []entry{{detail: &detail{updatedAt: set.mendedAt}, phase: shown}}}
		p.ackedTicks.add(10)
		if set.missing {
			p.ackedTicks.setMissing(bitset.Set{1})
		}
		if got := p.makeDerived(0, 1); got != set.want || p.derived.Has(0) != (got == 1) || (p.entries[0].detail == nil) != (got == 1) {
			t.Errorf("%+v: the steady ones are %b", set, got)
		}
	}
}

// A client that may not read the changing fields keeps the baseline of its first snapshot, also
// beyond the history and while the object has a derived baseline.
func TestASteadyObjectKeepsTheBaselineOfItsReaders(t *testing.T) {
	f := newFleetOf(t, classOf[captain](t, "captain"), 1, 2, []uint64{3}, 0)
	o, p := f.crates[0], f.clients[1].peer
	quiet := func(ticks int) {
		for range ticks {
			f.tick++
			f.w.Edit(o)
			live[captain](o).Ammo++
			f.acknowledge()
			f.w.Capture(f.tick)
			for i := range f.clients {
				c := &f.clients[i]
				var first uint64
				c.packets, first = c.peer.AppendSnapshot(c.packets[:0], f.tick, wide)
				c.sent[f.tick%uint64(len(c.sent))] = Range{first, first + uint64(len(c.packets)) - 1}
			}
		}
	}
	quiet(2 * state.Horizon) // client 1 does not own it, so no record is sent to it
	if !p.derived.Has(0) || p.pending.Has(0) {
		t.Fatal("the object is not steady, or owed to who may not read what has changed")
	}
	live[captain](o).X++
	quiet(1)
	if e := p.peek(0); e.base == 0 || e.full != fullFirst {
		t.Errorf("the baseline is %d, and the next record is full for reason %d", e.base, e.full)
	}
}

// An object that is missing as of every remaining mark gets its detail, with the version that the
// client has, before the older marks are dropped.
func TestAMissingObjectKeepsItsBaseline(t *testing.T) {
	f := newFleet(t, 1, 1, []uint64{3}, 0)
	p := f.clients[0].peer
	f.tick++
	f.move(1)
	f.acknowledge()
	f.w.Capture(f.tick)
	m := &p.ackedTicks
	known := m.newest - 2*nearTrend - 1
	for tick := known + 1; tick <= m.newest; tick++ {
		m.missingAt = append(m.missingAt, missingSlots{tick, bitset.Set{1}})
	}
	if !p.derived.Has(0) || m.newestWith(0) != known {
		t.Fatalf("the object is known as of %d, want %d", m.newestWith(0), known)
	}
	p.cut.begin(nil, f.tick, wide)
	if p.derived.Has(0) || p.entries[0].base != known || m.oldest <= known {
		t.Errorf("steady: %v; %+v, and the oldest mark is %d", p.derived.Has(0), p.entries[0].detail, m.oldest)
	}
}

// The memory of a detail is reused, and cleared.
func TestDetailsAreTakenEmpty(t *testing.T) {
	s := details{most: 1}
	a, b := s.take(), s.take()
	*a, *b = detail{base: 5, ackedSet: 7, sent: 5, updatedAt: 5, leftOutAt: 4}, detail{base: 6}
	s.release(a)
	s.release(b) // one is kept
	if got := s.take(); got != a || *got != (detail{}) {
		t.Errorf("taken: %+v", got)
	}
	if got := s.take(); got == b {
		t.Error("more details are kept than there is room for")
	}
	if s.release(nil); len(s.spare) != 0 {
		t.Error("nothing was released, and is kept")
	}
}

// The pool of details has room for as many as one client can need at once, and for 4096 more.
func TestDetailsAreKeptForOneClientAndAFewMore(t *testing.T) {
	q := newPair(t, 0)
	for range 3 {
		q.spawnRock(q.w, rock{}, 1)
	}
	q.deliver()
	for range 5000 {
		q.w.details.release(new(detail))
	}
	if n := len(q.w.details.spare); n != 3+4096 {
		t.Errorf("%d details are kept for 3 objects, want 4096 more than that", n)
	}
}

// An entry stores which of the last 64 versions were acknowledged, in any order of
// acknowledgements, and is cleared with its baseline.
func TestAnEntryStoresAcknowledgedVersions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	e := entry{detail: new(detail)}
	acked := map[uint64]bool{}
	for tick := uint64(100); tick < 4000; tick += 1 + rng.Uint64N(1<<rng.IntN(7)) {
		if e.advance(tick); rng.IntN(3) == 0 {
			before := tick - rng.Uint64N(64)
			e.noteAcked(before)
			acked[before] = true
		}
		acked[tick] = true
		for age := range uint64(90) {
			if want := acked[tick-age] && age < 64; e.hasAcked(tick-age) != want {
				t.Fatalf("of %d it is said as of %d that it was acknowledged: %v", tick-age, tick, !want)
			}
		}
		if e.updatedAt = tick; rng.IntN(50) == 0 {
			if e.forget(); *e.detail != (detail{}) {
				t.Fatalf("after it forgets it has %+v", e.detail)
			}
			clear(acked)
		}
	}
}

// An age is a number of ticks, also across the tick with low bits of 0.
func TestAgeCountsAcrossTheLowBits(t *testing.T) {
	e := entry{last: 1<<32 - 3}
	for tick, want := range map[uint64]uint64{1<<32 - 3: 0, 1<<32 - 1: 2, 1 << 32: 3, 1<<32 + 7: 10, 2<<32 + 7: 10} {
		if got := e.age(tick); got != want {
			t.Errorf("at %d the age is %d, want %d", tick, got, want)
		}
	}
}
