package netvar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// rush is a world of rocks that all change in every tick, with one client that receives and
// acknowledges all packets.
type rush struct {
	*pair
	rocks  []*state.Object
	ships  []*state.Object
	random *rand.Rand
	sent   [256]int    // by slot: number of records so far
	last   [256]uint64 // by slot: tick of the last one
	wait   [256]uint64 // by slot: the longest time without one, in ticks
	bytes  int         // of records
}

func newRush(t *testing.T, rocks int) *rush {
	u := &rush{pair: newPair(t, 0), random: rand.New(rand.NewPCG(3, 3))}
	for range rocks {
		u.rocks = append(u.rocks, u.spawnRock(u.w, rock{X: u.random.Int32N(2000)}, 1))
	}
	return u
}

// run plays ticks, with a snapshot in each.
func (u *rush) run(ticks int) {
	u.t.Helper()
	for range ticks {
		for _, o := range u.rocks {
			u.edit(o).X = u.random.Int32N(2000) // not predictable
		}
		for _, o := range u.ships {
			u.w.Edit(o)
			live[ship](o).Angle = u.random.Float32()
		}
		packets, _ := u.next()
		for _, b := range packets {
			mustApply(u.t, u.r, u.p, b)
			var h packet.Header
			in := wire.NewReader(b)
			packet.ReadHeader(&in, u.tick, &h)
			u.bytes += in.Len()
			for s := range u.r.Records {
				u.sent[nth(s.Slot)]++
				u.last[nth(s.Slot)] = u.tick
			}
		}
		for i := range len(u.rocks) + len(u.ships) {
			u.wait[i] = max(u.wait[i], u.tick-u.last[i])
		}
	}
}

// Rule 7: the budget bounds the bytes of a client's records, on average and at once.
func TestBudgetIsATokenBucket(t *testing.T) {
	u := newRush(t, 250)
	u.p.SetBudget(Budget{PerTick: 150, Burst: 600})
	u.run(1)
	if u.bytes < 450 || u.bytes > 600+90 { // bounds derived from the size of the records
		t.Errorf("the first snapshot takes %d bytes, want the burst of 600 and at most a record more", u.bytes)
	}
	before := u.bytes
	u.run(400)
	if got := u.bytes - before; got < 400*150-600 || got > 400*150+600 {
		t.Errorf("%d bytes in 400 ticks, want 150 a tick", got)
	}
	if n := u.w.stats.WaitedLarge; n != 0 {
		t.Errorf("%d records waited for room on the stream", n)
	}
	if u.w.stats.OverBudget == 0 || u.w.stats.OverBudget > u.w.stats.Waited {
		t.Errorf("%d records waited for the budget, %d in all", u.w.stats.OverBudget, u.w.stats.Waited)
	}
	u.tick += 100 // without a snapshot
	before = u.bytes
	u.run(1)
	if got := u.bytes - before; got < 450 || got > 600+90 {
		t.Errorf("%d bytes after 100 ticks of rest, want the burst of 600", got)
	}
	u.p.SetBudget(Budget{})
	clear(u.sent[:])
	u.run(1)
	if u.sent[0] != 1 || u.sent[249] != 1 {
		t.Error("without a budget not everything is sent")
	}
}

// The balance of a bucket follows from gains and spending, to the byte: see Budget.
func TestABucketIsExactToTheByte(t *testing.T) {
	p := &Peer{tick: 100}
	set := func(perTick, burst int) func() int {
		return func() int { p.SetBudget(Budget{perTick, burst}); return p.bucket.tokens }
	}
	fill := func(tick uint64) func() int { return func() int { return p.bucket.fill(tick) } }
	spend := func(bytes int) func() int {
		return func() int { p.bucket.spend(bytes); return p.bucket.tokens }
	}
	for i, step := range []struct {
		do   func() int
		want int
	}{
		{fill(100), math.MaxInt}, // no budget
		{spend(50), 0},
		{set(10, 45), 45}, // full at first
		{fill(100), 45},
		{spend(70), -25},
		{fill(101), -15},
		{fill(101), -15},
		{fill(104), 15},
		{fill(106), 35},
		{fill(107), 45}, // 5 of the gains exceed the burst
		{spend(35), 10},
		{fill(110), 40}, // one more tick would fill it
		{spend(25), 15},
		{set(20, 0), 15}, // the burst is at least PerTick
		{fill(111), 20},
		{set(20, 100), 20},
		{fill(112), 40},
		{set(20, 30), 30},
		{spend(1 << 30), 30 - 1<<30},
		{fill(1 << 60), 30},
		{set(0, 30), 30},
		{fill(1<<60 + 5), math.MaxInt},
		{set(-1, -1), 0},
	} {
		if got := step.do(); got != step.want {
			t.Errorf("step %d: %d bytes, want %d", i, got, step.want)
		}
	}
	p.SetBudget(Budget{1 << 30, math.MaxInt})
	if got := p.Budget(); got != (Budget{1 << 20, math.MaxInt32}) {
		t.Errorf("the largest budget is %+v", got)
	}
}

// Rule 7: a record may start while tokens are positive, even if it is larger than the bucket.
func TestARecordMayOverdrawTheBudget(t *testing.T) {
	q := newPair(t, 0)
	q.p.SetBudget(Budget{PerTick: 2, Burst: 2})
	a := q.spawnShip(q.w, ship{Name: "twelve bytes"}, 0, 1)
	b := q.spawnShip(q.w, ship{Name: "twelve bytes"}, 0, 1)
	q.deliver()
	_, first := q.r.Get(a.ID())
	if _, second := q.r.Get(b.ID()); !first || second {
		t.Fatalf("one of two records larger than the bucket may go: %v, %v", first, second)
	}
	owes := -q.p.bucket.tokens
	if owes < 10 {
		t.Fatalf("the bucket owes %d bytes after a record of more than 12", owes)
	}
	for range (owes - 1) / 2 {
		q.deliver()
		if _, ok := q.r.Get(b.ID()); ok {
			t.Fatalf("at tick %d the debt of %d is not paid", q.tick, owes)
		}
	}
	q.deliver()
	q.deliver()
	if _, ok := q.r.Get(b.ID()); !ok {
		t.Errorf("the second is not there at tick %d", q.tick)
	}
}

// A snapshot's own limit of bytes holds beside the budget, for that snapshot only.
func TestASnapshotMayHaveALimitOfBytes(t *testing.T) {
	q := newPair(t, 0)
	for range 20 {
		q.spawnShip(q.w, ship{Name: "twelve bytes"}, 0, 1)
	}
	small := wide
	small.Bytes = 100
	size := func(lim Limit) (n int) {
		q.tick++
		q.w.Capture(q.tick)
		packets, _ := snap(q.p, q.tick, lim)
		for _, b := range packets {
			n += len(b)
		}
		mustApply(q.t, q.r, q.p, packets...)
		return n
	}
	if n := size(small); n < 100 || n > 150 {
		t.Errorf("%d bytes, want about 100", n)
	}
	if n := size(wide); n < 200 {
		t.Errorf("%d bytes without the limit", n)
	}
}

func TestDespawnsGoFirstWhenTheBudgetIsShort(t *testing.T) {
	u := newRush(t, 200)
	u.run(3)
	u.p.SetBudget(Budget{PerTick: 20, Burst: 20})
	u.run(20)
	gone := u.rocks[199]
	u.rocks = u.rocks[:199]
	u.w.Despawn(gone)
	for n := 0; ; n++ {
		if _, ok := u.r.Get(gone.ID()); !ok {
			return
		}
		if n == 3 { // the overdraft of one record may have to be balanced first
			t.Fatal("the despawn waits behind changes")
		}
		u.run(1)
	}
}

// For objects that are always pending, the shares of the records are the shares of the weights.
func TestWeightsAreSharesOfAShortBudget(t *testing.T) {
	u := newRush(t, 120)
	for i, o := range u.rocks {
		u.w.SetWeight(o, []float64{1, 2, 4}[i%3])
	}
	u.run(3)
	u.p.SetBudget(Budget{PerTick: 30, Burst: 30})
	u.run(200)
	clear(u.sent[:])
	u.run(4000)
	var share [3]int
	for i, n := range u.sent[:120] {
		share[i%3] += n
	}
	for i, want := range []float64{1, 2, 4} {
		if got := float64(share[i]) / float64(share[0]); got < 0.9*want || got > 1.1*want {
			t.Errorf("weight %v is sent %v times as often as weight 1, %v", want, got, share)
		}
	}
}

// With equal weights the oldest record is sent first, and of equally old ones the lower slot:
// objects take turns.
func TestEqualWeightsTakeTurns(t *testing.T) {
	u := newRush(t, 100)
	u.run(3)
	u.p.SetBudget(Budget{PerTick: 40, Burst: 40})
	u.run(50)
	clear(u.sent[:])
	u.run(1000)
	least, most := u.sent[0], u.sent[0]
	for _, n := range u.sent[:100] {
		least, most = min(least, n), max(most, n)
	}
	if least < 10 || most-least > most/8 { // of one tick the lower slot is first again

		t.Errorf("from %d to %d records each, want turns", least, most)
	}
}

// With any weights an object waits at most for its minimum rate, plus the time in which the budget
// pays for all objects that became overdue with it.
func TestNothingWaitsLongerThanItsMinimumRate(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		slow := 5 + rng.IntN(20)
		u := newRush(t, 40+rng.IntN(60))
		for _, o := range u.rocks {
			u.w.SetWeight(o, float64(1+rng.IntN(64)))
		}
		const perTick, record = 40, 30 // the size of a full record of such a ship is less
		due := uint64(slow*record/perTick + 2)
		every := due + uint64(rng.IntN(60))
		u.w.SetClassWeight(u.ship, state.MinWeight, every)
		for range slow {
			u.ships = append(u.ships, u.spawnShip(u.w, ship{}, 0, 1))
		}
		u.p.SetBudget(Budget{PerTick: perTick, Burst: perTick})
		u.run(600)
		for _, o := range u.ships {
			if wait := u.wait[o.ID().Slot()]; wait > every+due {
				t.Fatalf("seed %d: ship %x waited %d ticks; it may %d, and %d of them take %d", seed, uint64(o.ID()), wait, every, slow, due)
			}
			if n := u.sent[o.ID().Slot()]; every > 3*due && n > 2*600/int(every) {
				t.Fatalf("seed %d: a ship of the least weight was sent %d times in 600 ticks, at a minimum of one in %d", seed, n, every)
			}
		}
	}
}

// The factor is called only if not all records fit, only for pending objects, and determines their
// order.
func TestFactorIsAskedOnlyWhenTheBudgetIsShort(t *testing.T) {
	u := newRush(t, 100)
	asked := 0
	u.w.SetFactor(u.schema.rock, func(p *Peer, o *state.Object) float64 {
		if asked++; p != u.p {
			t.Error("asked for another client")
		}
		switch slot := o.ID().Slot(); {
		case slot < 50:
			return 4
		case slot == 99:
			return math.NaN() // treated as 0, but waiting still counts
		default:
			return 1
		}
	})
	u.run(10)
	if asked > 0 {
		t.Fatalf("asked %d times although everything fits", asked)
	}
	u.p.SetBudget(Budget{PerTick: 40, Burst: 40})
	u.run(100)
	clear(u.sent[:])
	u.run(1000)
	if asked == 0 {
		t.Fatal("never asked")
	}
	if near, far := u.sent[10], u.sent[60]; near < 3*far || near > 5*far {
		t.Errorf("near %d, far %d records, want 4 to 1", near, far)
	}
	asked = 0
	u.rocks = u.rocks[:3]
	u.run(30)
	asked = 0
	u.p.SetBudget(Budget{PerTick: 8, Burst: 8})
	u.run(1)
	if asked > 3 {
		t.Errorf("asked %d times about 3 changed objects", asked)
	}
}

// While the world sheds, objects of a weight below 1 are sent at their minimum rate. Other objects,
// and those that the client does not have yet, are not affected.
func TestOverloadSendsLightObjectsAtTheirMinimumRate(t *testing.T) {
	u := newRush(t, 3)
	u.w.SetWeight(u.rocks[0], 0.5)
	u.w.SetClassWeight(u.ship, 0.9, 4)
	u.ships = append(u.ships, u.spawnShip(u.w, ship{}, 0, 1))
	u.run(20)
	u.w.Shed(10)
	clear(u.sent[:])
	u.run(40)
	if u.sent[0] != 4 || u.sent[1] != 40 || u.sent[2] != 40 || u.sent[3] != 10 {
		t.Errorf("records in 40 ticks: %v; want 4 of the light rock, 40 of the others, 10 of the ship with its own rate", u.sent[:4])
	}
	if u.w.stats.Shed != 36+30 {
		t.Errorf("%d counted as shed, want 66", u.w.stats.Shed)
	}
	u.edit(u.rocks[0]).X++
	packets, _ := u.next()
	if a, err := u.r.Apply(packets[0]); err != nil || a.Reached >= u.tick || a.Reached < u.tick-10 {
		t.Errorf("at tick %d the client has reached %d without what was shed (%v)", u.tick, a.Reached, err)
	}
	fresh := u.spawnShip(u.w, ship{}, 0, u.tick)
	u.run(1)
	if _, ok := u.r.Get(fresh.ID()); !ok {
		t.Error("a light object that the client does not have is shed")
	}
	u.w.Shed(0)
	clear(u.sent[:])
	u.run(10)
	if u.sent[0] != 10 || u.sent[3] != 10 {
		t.Errorf("records in 10 ticks after it: %v", u.sent[:4])
	}
}

func TestAShortBudgetDoesNotAllocate(t *testing.T) {
	f := newField(t, 250, 2, 6)
	f.w.SetFactor(f.rock, func(_ *Peer, o *state.Object) float64 { return float64(o.ID().Slot()) })
	for _, p := range f.peers {
		p.SetBudget(Budget{PerTick: 200, Burst: 800})
	}
	f.warm(true)
	if f.w.stats.OverBudget == 0 {
		t.Fatal("the budget is not short")
	}
	if n := testing.AllocsPerRun(100, func() { f.step(true) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestWeightsAreClamped(t *testing.T) {
	for w, want := range map[float64]uint32{0: 16, -1: 16, 1: state.WeightOne, 1e9: 64 * state.WeightOne, math.Inf(1): 64 * state.WeightOne} {
		if got := state.FixedWeight(w); got != want {
			t.Errorf("weight %v is %d, want %d", w, got, want)
		}
	}
	if state.FixedWeight(math.NaN()) != 16 || scale(5, math.NaN()) != 1 || scale(5, 0) != 1 || scale(5, math.Inf(1)) != 5*maxFactor {
		t.Error("what is no number counts as something")
	}
}

// On platforms with 32-bit ints a client without a budget is sent as much as on others.
func TestNoBudgetFitsAnInt(t *testing.T) {
	for bytes, want := range map[int]int{0: 0, 1000: 8000, math.MaxInt32 / 8: math.MaxInt32 - 7, math.MaxInt: math.MaxInt32 - 7} {
		if got := inBits(bytes); got != want {
			t.Errorf("%d bytes are %d bits, want %d", bytes, got, want)
		}
	}
}
