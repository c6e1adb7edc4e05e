package netvar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// buoy has fields that are held back in every way, and fields that are not.
type buoy struct {
	Fast int32
	Slow int32                `net:"interval=100ms"`
	Pos  struct{ X, Y int32 } `net:"interval=50ms,threshold=10"`
	Heat float32              `net:"quant=1/4,threshold=2"`
	Wide float64              `net:"threshold=0.5"`
	Rot  [4]float32           `net:"quat=12,threshold=5"`
	Name string               `net:"max=8,interval=100ms"`
	List []int16              `net:"max=4,interval=50ms"`
}

// heldWorld is a world of buoys with one client.
type heldWorld struct {
	*pair
	class *state.Class
}

func newHeldWorld(t *testing.T) *heldWorld {
	t.Helper()
	c := classOf[buoy](t, "buoy")
	table := state.NewTable(c)
	q := &pair{t: t, w: NewWorld(table), r: replica.New(table)}
	q.p = q.w.NewPeer(1)
	q.r.StartAt(0)
	return &heldWorld{q, c}
}

func (h *heldWorld) spawn(b buoy) *state.Object {
	return h.w.Spawn(h.class, unsafe.Pointer(&b), 0, h.tick+1)
}

func (h *heldWorld) change(o *state.Object, fn func(*buoy)) { h.w.Edit(o); fn(live[buoy](o)) }

func (h *heldWorld) seen(o *state.Object) buoy {
	h.t.Helper()
	c, ok := h.r.Get(o.ID())
	if !ok {
		h.t.Fatal("the client has no buoy")
	}
	return *live[buoy](c)
}

// TestThrottledSibling: a field that changes in every tick does not make the world forget a
// sibling's change that an interval holds back.
func TestThrottledSibling(t *testing.T) {
	h := newHeldWorld(t)
	o := h.spawn(buoy{})
	h.deliver() // tick 1: both are captured with the spawn
	for tick := 2; tick <= 40; tick++ {
		h.change(o, func(b *buoy) { b.Fast, b.Slow = int32(tick), int32(tick) })
		h.deliver()
		last := tick - (tick-1)%6 // 100 ms are 6 ticks, so the captures of 1, 7, 13 … have it
		if last == 1 {
			last = 0
		}
		if got := h.seen(o); got.Fast != int32(tick) || got.Slow != int32(last) {
			t.Fatalf("tick %d: fast %d, slow %d, want %d and %d", tick, got.Fast, got.Slow, tick, last)
		}
	}
	for range 6 { // no edits any more
		h.deliver()
	}
	if got := h.seen(o); got.Slow != 40 || o.Changed() != 43 {
		t.Errorf("slow %d as of %d, want the 40 of the last edit as of 43", got.Slow, o.Changed())
	}
}

func TestChangeWithinItsIntervalIsCapturedOnceItIsOver(t *testing.T) {
	h := newHeldWorld(t)
	o := h.spawn(buoy{Name: "a"})
	h.deliver()
	h.change(o, func(b *buoy) { b.Slow, b.Name, b.List = 1, "b", []int16{1} })
	h.deliver()
	if why, until := h.w.Held(o, 1); why != WithinInterval || until != 7 {
		t.Errorf("held for %d until %d, want its interval, until 7", why, until)
	}
	captured := h.w.stats.Captured
	for h.tick < 12 {
		h.deliver()
		got, list, rest := h.seen(o), h.tick >= 4, h.tick >= 7
		if (len(got.List) == 1) != list || (got.Slow == 1) != rest || (got.Name == "b") != rest {
			t.Errorf("tick %d: %+v", h.tick, got)
		}
	}
	if n := h.w.stats.Captured - captured; n != 2 {
		t.Errorf("captured %d times, want once for each interval that ended", n)
	}
	if why, _ := h.w.Held(o, 1); why != NotHeld {
		t.Errorf("still held for %d", why)
	}
}

// TestIntervalsAreWholeTicks: rounded up, at any rate. A class without intervals has none.
func TestIntervalsAreWholeTicks(t *testing.T) {
	h := newHeldWorld(t)
	rocks := classOf[rock](t, "rock")
	over := classOf[struct {
		X int32 `net:"interval=1000000001ns"`
	}](t, "over")
	h.w = NewWorld(state.NewTable(rocks, classOf[buoy](t, "buoy"), over))
	for _, c := range []struct {
		num, den uint64
		want     []uint64 // of 100 ms and of 50 ms, each of two fields or structs
	}{{0, 0, []uint64{6, 3, 6, 3}}, {60, 1, []uint64{6, 3, 6, 3}}, {61, 1, []uint64{7, 4, 7, 4}}, {30, 1, []uint64{3, 2, 3, 2}}, {60, 1001, []uint64{1, 1, 1, 1}}, {1000, 1, []uint64{100, 50, 100, 50}}} {
		if c.num > 0 {
			h.w.SetRate(c.num, c.den)
		}
		if got := h.w.holds.by; got[0] != nil || !slices.Equal(got[1], c.want) {
			t.Errorf("%d ticks in %d s: %v ticks, want %v", c.num, c.den, got, c.want)
		}
	}
	if h.w.SetRate(1, 1); h.w.holds.by[2][0] != 2 {
		t.Errorf("a nanosecond more than a tick is %d ticks", h.w.holds.by[2][0])
	}
}

// TestHeldBackFieldsAreCounted: each held-back field in each capture is counted, by the reason.
func TestHeldBackFieldsAreCounted(t *testing.T) {
	h := newHeldWorld(t)
	o := h.spawn(buoy{})
	h.deliver()
	h.change(o, func(b *buoy) { b.Fast, b.Slow, b.Name, b.Heat = 1, 1, "b", 1 })
	h.deliver()
	h.change(o, func(b *buoy) { b.Wide = 0.25 })
	h.deliver()
	if s := h.w.stats; s.WithinInterval != 2+2 || s.BelowThreshold != 1+2 || len(h.w.holds.late) != 1 {
		t.Errorf("%d within an interval, %d below a threshold, %d late", s.WithinInterval, s.BelowThreshold, len(h.w.holds.late))
	}
	fresh := h.spawn(buoy{})
	for i, want := range []HoldReason{NotHeld, WithinInterval, NotHeld, NotHeld, BelowThreshold} {
		if why, until := h.w.Held(o, i); why != want || (until == 7) != (why == WithinInterval) || until != 0 && until != 7 {
			t.Errorf("%s is held for %d until %d, want %d", h.class.Plan().LeafName(i), why, until, want)
		}
		if why, until := h.w.Held(fresh, i); why != NotHeld || until != 0 {
			t.Errorf("of what is not captured yet %s is held for %d", h.class.Plan().LeafName(i), why)
		}
	}
	h.w.Despawn(o)
	if why, until := h.w.Held(o, 1); why != NotHeld || until != 0 {
		t.Errorf("of what is despawned a field is held for %d until %d", why, until)
	}
	h.deliver()
	if late := h.w.holds.late[:1]; late[0].o != nil {
		t.Error("what is despawned is kept alive")
	}
	h.change(fresh, func(b *buoy) { b.Fast++ })
	if h.deliver(); len(h.w.holds.late) != 0 {
		t.Error("nothing is held back, and yet late")
	}
}

// TestFieldsOfOneIntervalAreCapturedTogether: an interval never separates the components of a
// vector.
func TestFieldsOfOneIntervalAreCapturedTogether(t *testing.T) {
	h := newHeldWorld(t)
	o := h.spawn(buoy{})
	h.deliver()
	for tick := range 30 {
		h.change(o, func(b *buoy) {
			if b.Pos.X += 10; tick%2 == 1 {
				b.Pos.Y += 20
			}
		})
		h.deliver()
		if got := h.seen(o); h.tick%3 == 1 && got.Pos != live[buoy](o).Pos || h.tick%3 != 1 && got.Pos == live[buoy](o).Pos {
			t.Fatalf("tick %d: the client has %v of %v", h.tick, got.Pos, live[buoy](o).Pos)
		}
	}
}

// TestAThresholdMeasuresFromTheCapturedValue: a slow drift adds up and is sent.
func TestAThresholdMeasuresFromTheCapturedValue(t *testing.T) {
	h := newHeldWorld(t)
	o := h.spawn(buoy{})
	h.deliver()
	for i := 1; i <= 40; i++ {
		h.change(o, func(b *buoy) { b.Heat = float32(i) / 4 })
		h.deliver()
		if got, want := h.seen(o).Heat, float32(i/8)*2; got != want {
			t.Fatalf("heat %v: the client has %v, want %v", float32(i)/4, got, want)
		}
	}
}

func TestChangesBelowTheThresholdAreNeverSent(t *testing.T) {
	h := newHeldWorld(t)
	o := h.spawn(buoy{Wide: 1, Rot: [4]float32{1, 0, 0, 0}})
	h.deliver()
	turn := func(degrees float64) [4]float32 {
		s, c := math.Sincos(degrees * math.Pi / 360)
		return [4]float32{float32(-c), 0, float32(-s), 0} // of both signs
	}
	h.change(o, func(b *buoy) { b.Wide, b.Rot, b.Pos.X = 1.499, turn(4.8), -9 })
	version := o.Changed()
	for range 200 {
		h.deliver()
	}
	if o.Changed() != version || h.w.stats.BelowThreshold != 3 {
		t.Errorf("version %d, %d values below their threshold; want %d and 3", o.Changed(), h.w.stats.BelowThreshold, version)
	}
	for i, want := range map[int]HoldReason{0: NotHeld, 2: BelowThreshold, 5: BelowThreshold, 6: BelowThreshold} {
		if why, _ := h.w.Held(o, i); why != want {
			t.Errorf("%s is held for %d, want %d", h.class.Plan().LeafName(i), why, want)
		}
	}
	h.change(o, func(b *buoy) { b.Wide, b.Rot, b.Pos.X = 1.5, turn(5.2), -10 })
	h.deliver()
	if got := h.seen(o); got.Wide != 1.5 || got.Rot[2] == 0 || got.Pos.X != -10 {
		t.Errorf("passed, but the client has %+v", got)
	}
}

// TestSpawnsOwnersAndFullRecordsHaveCapturedValues: no client is sent values that are held back
// from others.
func TestSpawnsOwnersAndFullRecordsHaveCapturedValues(t *testing.T) {
	h := newHeldWorld(t)
	o := h.spawn(buoy{Slow: 1})
	h.deliver()
	h.change(o, func(b *buoy) { b.Slow, b.Heat = 2, 1 })
	h.w.SetOwner(o, 7)
	h.deliver()
	if c, _ := h.r.Get(o.ID()); c.Owner() != 7 || h.seen(o).Slow != 1 || h.seen(o).Heat != 0 {
		t.Errorf("owner %d, %+v", c.Owner(), h.seen(o))
	}
	late := h.w.NewPeer(h.tick + 1)
	r := replica.New(h.w.table)
	r.StartAt(h.tick)
	h.p.RequestFull()
	h.p.RequestDigest(1)
	h.deliver()
	packets, _ := snap(late, h.tick, wide)
	mustApply(t, r, late, packets...)
	joined, _ := r.Get(o.ID())
	if h.seen(o).Slow != 1 || live[buoy](joined).Slow != 1 {
		t.Errorf("a full record carries what is held back: %d, %d", h.seen(o).Slow, live[buoy](joined).Slow)
	}
	if state, _ := h.r.Digest(); state != replica.DigestEqual {
		t.Errorf("digest %d", state)
	}
}

func TestDespawnedWhileHeldBack(t *testing.T) {
	h := newHeldWorld(t)
	o := h.spawn(buoy{})
	h.deliver()
	h.change(o, func(b *buoy) { b.Slow = 1 })
	h.deliver()
	h.w.Despawn(o)
	h.deliver()
	again := h.spawn(buoy{Slow: 9}) // in the same slot
	for range 10 {
		h.deliver()
	}
	if h.seen(again).Slow != 9 || len(h.w.holds.late) != 0 {
		t.Errorf("slow %d, %d still late", h.seen(again).Slow, len(h.w.holds.late))
	}
	if why, _ := h.w.Held(o, 1); why != NotHeld {
		t.Error("what is despawned is held back")
	}
}

func TestHoldingBackDoesNotAllocate(t *testing.T) {
	h := newHeldWorld(t)
	var all []*state.Object
	for range 50 {
		all = append(all, h.spawn(buoy{Name: "x", Rot: [4]float32{1}}))
	}
	step := func() {
		for _, o := range all {
			h.change(o, func(b *buoy) { b.Fast++; b.Slow++; b.Heat += 0.25; b.Pos.X += 3 })
		}
		h.tick++
		h.w.Capture(h.tick)
	}
	for range 3 * state.Horizon {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// buoyMirror is a plain implementation of the rules of interval and threshold for a buoy.
type buoyMirror struct {
	at                    buoy
	slow, pos, name, list uint64
	moved                 bool
}

func far[T int32 | float32 | float64](a, b, least T) bool { return max(a, b)-min(a, b) >= least }

func (m *buoyMirror) capture(now *buoy, tick uint64) {
	if tick == 1 {
		*m = buoyMirror{at: *now, slow: 1, pos: 1, name: 1, list: 1, moved: true}
		m.at.Heat = float32(math.RoundToEven(float64(now.Heat)*4)) / 4
		return
	}
	was := m.at
	m.at.Fast = now.Fast
	if now.Slow != m.at.Slow && tick >= m.slow+6 {
		m.at.Slow, m.slow = now.Slow, tick
	}
	if x, y := far(now.Pos.X, m.at.Pos.X, 10), far(now.Pos.Y, m.at.Pos.Y, 10); (x || y) && tick >= m.pos+3 {
		if m.pos = tick; x {
			m.at.Pos.X = now.Pos.X
		}
		if y {
			m.at.Pos.Y = now.Pos.Y
		}
	}
	if heat := float32(math.RoundToEven(float64(now.Heat)*4)) / 4; far(heat, m.at.Heat, 2) {
		m.at.Heat = heat
	}
	if far(now.Wide, m.at.Wide, 0.5) {
		m.at.Wide = now.Wide
	}
	if now.Name != m.at.Name && tick >= m.name+6 {
		m.at.Name, m.name = now.Name, tick
	}
	if !reflect.DeepEqual(now.List, m.at.List) && tick >= m.list+3 {
		m.at.List, m.list = append([]int16(nil), now.List...), tick
	}
	m.moved = !reflect.DeepEqual(was, m.at)
}

// TestHoldingBackFollowsItsRules edits at random, over a lossy link, and compares the client with a
// mirror of the rules once it has all records.
func TestHoldingBackFollowsItsRules(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			h := newHeldWorld(t)
			var objects []*state.Object
			var mirrors []*buoyMirror
			for range 4 {
				objects = append(objects, h.spawn(buoy{}))
				mirrors = append(mirrors, new(buoyMirror))
			}
			var edits []int
			for h.tick < 300 {
				edits = edits[:0]
				for i, o := range objects {
					if h.tick < 250 && rng.IntN(3) == 0 {
						h.change(o, func(b *buoy) { shake(b, rng) })
						edits = append(edits, i)
					}
				}
				packets, _ := h.next()
				for i, m := range mirrors {
					if m.capture(live[buoy](objects[i]), h.tick); m.moved != (objects[i].Changed() == h.tick) {
						t.Fatalf("tick %d, object %d: a version %v, the mirror says %v (%d edited)", h.tick, i, !m.moved, m.moved, len(edits))
					}
				}
				if rng.Float64() >= 0.3 || h.tick > 280 {
					mustApply(t, h.r, h.p, packets...)
				}
			}
			for i, m := range mirrors {
				if got := h.seen(objects[i]); !reflect.DeepEqual(got, m.at) {
					t.Errorf("object %d: the client has %+v, want %+v", i, got, m.at)
				}
			}
			h.p.RequestDigest(1)
			h.deliver()
			if state, _ := h.r.Digest(); state != replica.DigestEqual {
				t.Errorf("digest %d", state)
			}
		})
	}
}

func shake(b *buoy, rng *rand.Rand) {
	switch rng.IntN(6) {
	case 0:
		b.Fast, b.Slow = rng.Int32N(9), rng.Int32N(9)
	case 1:
		b.Pos.X += rng.Int32N(17) - 8
		b.Pos.Y += rng.Int32N(17) - 8
	case 2:
		b.Heat += rng.Float32()*3 - 1.5
	case 3:
		b.Wide += rng.Float64() - 0.5
	case 4:
		b.Name = string(rune('a' + rng.IntN(3)))
	case 5:
		b.List = []int16{int16(rng.IntN(3)), 1}
	}
}
