package netvar

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

// Of equal objects those with a change in the field of the largest weight are sent first. The tag
// of a struct applies to the fields inside, unless they have tags.
func TestFieldsOrderAShortBudget(t *testing.T) {
	b := newBrawl(t, true)
	b.spawn(7, 1)
	b.step()
	b.short()
	b.edit(0).Dust++
	b.edit(1).Plain++
	b.edit(2).Pose.X++
	b.edit(3).Pose.Shield++
	b.edit(4).Health++
	b.edit(5).Dust++
	b.edit(5).Pose.Shield++ // the largest weight counts, not the sum
	b.edit(5).Pose.X++
	// The owner has the weight of a field without a tag, which exceeds smaller weights.
	b.w.SetOwner(b.objects[6], 3)
	b.edit(6).Dust++
	b.editRock(7).X++ // a class without a tag
	b.want(4, 3, 5, 2, 1, 6, 7, 0)
}

// A change counts until it is acknowledged. Then only later changes count.
func TestAFieldCountsUntilItIsAcknowledged(t *testing.T) {
	b := newBrawl(t, true)
	b.spawn(1, 1)
	b.step()
	b.edit(0).Health++
	b.loses = true
	b.steps(2)
	b.loses = false
	b.short()
	b.edit(0).Dust++ // the change of Health is in flight or lost
	b.editRock(1).X++
	b.want(0, 1)
	b.edit(0).Dust++
	b.editRock(1).X++
	b.want(1, 0)
}

// The client may have the value in between, and versions are never compared by value.
func TestAFieldThatIsSetBackCountsAsChanged(t *testing.T) {
	b := newBrawl(t, true)
	b.spawn(1, 2)
	b.step()
	b.p.SetBudget(Budget{PerTick: 1, Burst: 1})
	b.editRock(1).X++
	b.step() // overdraws the budget, so no record is sent for some ticks
	b.edit(0).Health = 7
	b.editRock(2).X++
	if got := b.step(); got != nil {
		t.Fatalf("records of %v despite the debt", got)
	}
	b.edit(0).Health = 0
	b.want(0, 2)
	b.edit(0).Health = 7
	b.edit(0).Health = 0 // within a tick: no client ever had the other value
	b.edit(0).Dust++
	b.editRock(2).X++
	b.want(2, 0)
}

// A change of an unreadable field does not raise the priority, because that would reveal it.
func TestAFieldThatMayNotBeReadRaisesNothing(t *testing.T) {
	for _, told := range []bool{false, true} {
		b := newBrawl(t, told)
		b.spawn(1, 1)
		b.steps(2)
		b.short()
		b.edit(0).Dust++
		b.edit(0).Secret++
		b.editRock(1).X++
		if told {
			b.want(0, 1)
		} else {
			b.want(1, 0)
		}
		b.edit(0).Secret++ // has no effect for a client that may not read it
		b.editRock(1).X++
		if told {
			b.want(0, 1)
		} else {
			b.want(1)
		}
	}
}

// A full record has the largest weight of its readable fields.
func TestAFullRecordCountsAsItsLargestField(t *testing.T) {
	for _, told := range []bool{false, true} {
		b := newBrawl(t, told)
		b.short()
		b.spawn(1, 2)
		b.w.SetWeight(b.objects[1], 9)
		b.w.SetWeight(b.objects[2], 20)
		if told {
			b.want(0, 2, 1)
		} else {
			b.want(2, 0, 1)
		}
		b.p.RequestFull()
		if told {
			b.want(0, 2, 1)
		} else {
			b.want(2, 0, 1)
		}
		b.editRock(1).X++
		b.editRock(2).X++
		b.told = !told // a full record, because the readable fields change
		b.w.Recheck(b.objects[0])
		if told {
			b.want(2, 0, 1)
		} else {
			b.want(0, 2, 1)
		}
	}
}

// A dropped baseline makes the record a full one, but the client lacks the same fields as before:
// an object of low priority keeps it after a long wait.
func TestABaselineThatIsGoneRaisesNothing(t *testing.T) {
	b := newBrawl(t, true)
	b.spawn(1, 1)
	b.steps(2)
	b.loses = true
	for o, base := b.objects[0], b.p.peek(0).base; o.Hist.Floor(base, o.Changed()) >= 0; {
		if b.tick > 3*state.Horizon+500 {
			t.Fatal("the baseline is never gone")
		}
		b.edit(0).Dust++
		b.editRock(1).X++
		b.step()
	}
	b.loses = false
	b.short()
	b.edit(0).Dust++
	b.editRock(1).X++
	b.want(1, 0)
	if b.w.stats.FullEvicted == 0 {
		t.Error("the record was no full one")
	}
}

// veiled is a class of which a client may be unable to read any field.
type veiled struct {
	A int32 `net:"weight=8,read=team"`
}

// The readable part is then its existence and its owner.
func TestAnObjectOfWhichNothingIsReadHasWeightOne(t *testing.T) {
	type trifle struct {
		A int32 `net:"weight=1/4"`
	}
	for _, x := range []struct {
		class    *state.Class
		base     uint64
		withheld state.Rules
		want     float64
	}{
		{classOf[veiled](t, "veiled"), 0, 2, 1}, {classOf[veiled](t, "veiled"), 1, 2, 1},
		{classOf[veiled](t, "veiled"), 0, 0, 8}, {classOf[veiled](t, "veiled"), 1, 0, 1},
		{classOf[trifle](t, "trifle"), 0, 0, 0.25}, {classOf[trifle](t, "trifle"), 1, 0, 1},
	} {
		w := NewWorld(state.NewTable(x.class))
		o := w.Spawn(x.class, unsafe.Pointer(new(int32)), 0, 1) // both classes have this layout
		w.Capture(1)
		w.SetOwner(o, 5)
		w.Capture(2)
		if got := o.ChangedWeight(x.base, x.withheld); got != state.FixedWeight(x.want) {
			t.Errorf("%s from %d, without rules %b: %d, want %v", x.class.Name(), x.base, x.withheld, got, x.want)
		}
	}
}

// Objects that always change are sent in proportion to their weights, beside any others; and a
// minimum rate holds.
func TestPrioritiesOfFieldsAreSharesAndStarveNothing(t *testing.T) {
	b := newBrawl(t, true)
	b.spawn(60, 60)
	b.step()
	b.p.SetBudget(Budget{PerTick: 10, Burst: 10})
	run := func(ticks int) (sent [120]int) {
		for n := range ticks {
			for i := range 60 {
				f := b.edit(i)
				switch i % 3 {
				case 0:
					f.Dust = int32(i + n*7919%1000) // not predictable
				case 1:
					f.Pose.X = int32(i + n*7919%1000)
				case 2:
					f.Pose.Shield = int32(i + n*7919%1000)
				}
				b.editRock(60 + i).X = int32(i + n*7919%1000)
			}
			for _, slot := range b.step() {
				sent[nth(slot)]++
			}
		}
		return sent
	}
	run(200)
	share := func(sent [120]int) (s [4]float64) {
		for i, n := range sent[:60] {
			s[i%3] += float64(n) / 20
		}
		for _, n := range sent[60:] {
			s[3] += float64(n) / 60
		}
		return s
	}
	s := share(run(6000))
	for i, want := range []float64{0.1, 2, 4, 1} {
		if got := s[i] / s[3]; got < 0.85*want || got > 1.15*want {
			t.Errorf("weight %v is sent %.2f times as often as 1, %v", want, got, s)
		}
	}
	b.w.SetClassWeight(b.fighter, 1, 100)
	if s := share(run(2000)); s[0] < 15 || s[0] > 30 {
		t.Errorf("with a minimum of once in 100 ticks the least needed are sent %.1f times in 2000 ticks", s[0])
	}
}

// If a run does not fit, its objects are sent individually, in the order of their changed fields.
func TestAFieldOrdersTheObjectsOfARun(t *testing.T) {
	b := newBrawl(t, true)
	b.spawn(64, 0)
	move := func() {
		for i := range 64 {
			b.edit(i).Pose.X = int32(b.tick*2654435761>>20) + int32(i)
		}
	}
	for range 20 {
		move()
		b.step()
	}
	if b.p.derived.Count() != 64 || b.w.stats.InRuns == 0 {
		t.Fatal("the fighters are no run")
	}
	b.p.SetBudget(Budget{PerTick: 20, Burst: 20})
	move()
	b.edit(50).Health++
	b.edit(60).Pose.Shield++
	got := b.step()
	if len(got) > 30 || !slices.Contains(got, 50) || !slices.Contains(got, 60) {
		t.Errorf("of a run records of %v go, want 50 and 60 among few others", got)
	}
	b.p.SetBudget(Budget{})
	move()
	if got := b.step(); len(got) != 64 {
		t.Errorf("%d records once there is room", len(got))
	}
	for range 20 {
		move()
		b.step()
	}
	if b.p.derived.Count() != 64 {
		t.Error("the fighters are not steady again")
	}
}

// Factor, object weight and field weight are multiplied, without overflow.
func TestNeedIsWeightTimesWeightTimesAge(t *testing.T) {
	b := newBrawl(t, true)
	b.spawn(1, 2)
	b.step()
	b.short()
	b.edit(0).Pose.Shield++ // 4 · 3 · 2
	b.w.SetWeight(b.objects[0], 3)
	b.w.SetFactor(b.fighter, func(*Peer, *state.Object) float64 { return 2 })
	b.editRock(1).X++
	b.w.SetWeight(b.objects[1], 23)
	b.editRock(2).X++
	b.w.SetWeight(b.objects[2], 25)
	b.want(2, 0, 1)

	if product(3, 5) != 15 || product(1<<32, 1<<32) != math.MaxUint64 || product(1<<31, 1<<32) != 1<<63 {
		t.Error("a product runs over")
	}
	b.w.SetFactor(b.fighter, func(*Peer, *state.Object) float64 { return maxFactor })
	b.w.SetWeight(b.objects[0], state.MaxWeight)
	b.editRock(1).X++
	b.edit(0).Secret++
	b.tick += 1 << 31 // the highest priority, for the longest time
	b.loses = true
	b.step()
	if all := b.p.cut.priorities; all[len(all)-1] != (priority{amount: math.MaxUint64, rank: rankPending}) {
		t.Errorf("the first is %+v", all[len(all)-1])
	}
}

func TestOnlyATagMakesAClassLookForPriorities(t *testing.T) {
	type even struct {
		A int32 `net:"weight=1"`
		B []item
	}
	if classOf[rock](t, "rock").HasFieldWeights() || classOf[even](t, "even").HasFieldWeights() {
		t.Error("a class in which all is alike keeps priorities")
	}
	if !classOf[fighter](t, "fighter").HasFieldWeights() {
		t.Error("a class with weights has none")
	}
}

func TestAShortBudgetOfPrioritiesDoesNotAllocate(t *testing.T) {
	b := newBrawl(t, false)
	b.spawn(150, 50)
	b.p.SetBudget(Budget{PerTick: 60, Burst: 120})
	b.loses = true
	step := func() {
		for i := range 150 {
			f := b.edit(i)
			f.Dust++
			f.Secret++
			if i%7 == int(b.tick%7) {
				f.Health++
			}
		}
		first := b.p.flight.next
		b.step()
		b.p.Ack([]Range{{first, b.p.flight.next - 1}})
	}
	for range 3 * state.Horizon {
		step()
	}
	if b.w.stats.OverBudget == 0 {
		t.Fatal("the budget is not short")
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// The weight of an object is the largest weight of its changed readable fields, and a change of
// owner has weight 1, from any version on.
func TestTheChangedWeightIsTheLargestReadableOne(t *testing.T) {
	c := classOf[agent](t, "agent") // Ammo has 16, Gear.Key 4, the rest of Gear 1/2
	for _, set := range []struct {
		changed  map[int]uint64 // by field, after tick 1
		base     uint64
		withheld state.Rules
		want     float64
	}{
		{nil, 0, 0, 16},
		{nil, 0, ownerRule, 4},
		{nil, 0, ownerRule | teamRule, 1},
		{nil, 1, 0, 1},
		{map[int]uint64{7: 2}, 1, 0, 0.5},
		{map[int]uint64{7: 2}, 2, 0, 1},
		{map[int]uint64{7: 2, 5: 2}, 1, 0, 4},
		{map[int]uint64{7: 2, 5: 2}, 1, teamRule, 1},
		{map[int]uint64{0: 2, 7: 2}, 1, 0, 1},
		{map[int]uint64{0: 2, 7: 3}, 2, 0, 0.5},
		{map[int]uint64{0: 2, 3: 3}, 1, 0, 16},
		{map[int]uint64{0: 2, 3: 3}, 3, 0, 1},
	} {
		o := state.NewObject(0, c, nil, 0)
		o.Fields = make([]uint64, 1+c.Leaves())
		for i := range o.Fields {
			o.Fields[i] = max(1, set.changed[i])
		}
		if got := o.ChangedWeight(set.base, set.withheld); got != state.FixedWeight(set.want) {
			t.Errorf("%+v: weight %d, want %d", set, got, state.FixedWeight(set.want))
		}
	}
}
