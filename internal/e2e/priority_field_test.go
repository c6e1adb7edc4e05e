package e2e_test

import (
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// The game for the weight tag: wrecks with dust that changes in every tick and exceeds the budget.
var (
	yard   = netloop.NewSchema("yard", 1, 0)
	wrecks = netloop.NewClass[wreck](yard, "wreck")
	barges = netloop.NewClass[wreck](yard, "barge", netloop.MinRate(2))
)

type wreck struct {
	N      int32
	Dust   int32 `net:"weight=0.1"`
	Health int32 `net:"weight=10"`
	Loot   int32 `net:"weight=64,read=owner"`
}

// scrapyard is a world with wrecks and a client with a short budget.
type scrapyard struct {
	*netlooptest.World
	wrecks []*netloop.Object[wreck]
}

func newScrapyard(t *testing.T, class *netloop.Class[wreck], n int) *scrapyard {
	t.Helper()
	s := &scrapyard{World: netlooptest.New(t, game{schema: yard}, netlooptest.Room(netloop.RoomSpec{Budget: 30}))}
	s.Tick(func(tick *netloop.Tick) {
		for i := range n {
			s.wrecks = append(s.wrecks, class.Spawn(tick, wreck{N: int32(i)}))
		}
	})
	return s
}

// step runs a tick that changes all dust and then calls fn.
func (s *scrapyard) step(fn func(tick *netloop.Tick, i int, w *wreck)) {
	s.Tick(func(tick *netloop.Tick) {
		for i, o := range s.wrecks {
			w := o.Edit(tick)
			w.Dust = int32(tick.Rand().Uint32()) // unpredictable
			if fn != nil {
				fn(tick, i, w)
			}
		}
	})
	s.Step(1)
}

// TestFieldsWithMoreWeightAreSentFirst: while dust waits for its turn, a heavy field arrives at
// once.
func TestFieldsWithMoreWeightAreSentFirst(t *testing.T) {
	s := newScrapyard(t, wrecks, 60)
	c := play(t, s.World, perfect)
	var health int32
	dusty := map[int32]int{}
	client.Watch(c, wrecks, client.Watcher[wreck]{Change: func(_ *netloop.Tick, o *netloop.Object[wreck], _ wreck) {
		dusty[o.State().N]++
		health = max(health, o.State().Health)
	}})
	for range 100 {
		s.step(nil)
	}
	clear(dusty)
	const rounds, ticks = 20, 15
	for round := range int32(rounds) {
		seen := 0
		for n := range ticks {
			s.step(func(_ *netloop.Tick, i int, w *wreck) {
				if n == 0 && i == int(round)*37%60 {
					w.Health = round + 1
				}
			})
			if seen == 0 && health == round+1 {
				seen = n + 1
			}
		}
		if seen == 0 || seen > 3 { // the budget may be overdrawn by a record
			t.Errorf("round %d: the client sees the health after %d ticks", round, seen)
		}
	}
	if gap := rounds * ticks * 60 / sum64(dusty); gap < 6 {
		t.Errorf("a wreck is sent every %.1f ticks: the budget is not short", gap)
	}
}

// TestMinimumRatesHoldDespiteFieldWeights: while heavy fields take the whole budget, light ones
// are still sent at the minimum rate of their class.
func TestMinimumRatesHoldDespiteFieldWeights(t *testing.T) {
	gaps := func(class *netloop.Class[wreck]) (longest uint64) {
		s := newScrapyard(t, class, 60)
		c := play(t, s.World, perfect)
		var tick, last uint64
		client.Watch(c, class, client.Watcher[wreck]{Change: func(now *netloop.Tick, o *netloop.Object[wreck], _ wreck) {
			if o.State().N == 59 {
				last = tick
			}
		}})
		for tick = range 500 {
			s.step(func(now *netloop.Tick, i int, w *wreck) {
				if i < 50 {
					w.Health = int32(now.Rand().Uint32())
				}
			})
			if tick > 100 {
				longest = max(longest, tick-last)
			}
		}
		return longest
	}
	if free, held := gaps(wrecks), gaps(barges); free < 100 || held < 25 || held > 40 {
		t.Errorf("dust waits for %d ticks, and for %d of a class with a minimum of twice a second at 60 Hz", free, held)
	}
}

// TestTheWeightOfAnUnreadableFieldDoesNotCount: the owner of a wreck gets its loot at once; for
// other clients the wreck's dust has no priority.
func TestTheWeightOfAnUnreadableFieldDoesNotCount(t *testing.T) {
	s := newScrapyard(t, wrecks, 60)
	other, owner := play(t, s.World, perfect), play(t, s.World, perfect)
	s.Tick(func(tick *netloop.Tick) { s.wrecks[7].SetOwner(tick, owner.ID()) })
	for range 100 {
		s.step(nil)
	}
	ofOther, ofOwner := map[int32]int{}, map[int32]int{}
	for c, counts := range map[*client.Client]map[int32]int{other: ofOther, owner: ofOwner} {
		client.Watch(c, wrecks, client.Watcher[wreck]{Change: func(_ *netloop.Tick, o *netloop.Object[wreck], _ wreck) { counts[o.State().N]++ }})
	}
	for range 300 {
		s.step(func(_ *netloop.Tick, i int, w *wreck) {
			if i == 7 {
				w.Loot++
			}
		})
	}
	mean := sum64(ofOther) / 60
	if n := float64(ofOther[7]); n < 0.7*mean || n > 1.3*mean {
		t.Errorf("a client that may not read the loot has %.0f changes of that wreck, and %.1f of each", n, mean)
	}
	if ofOwner[7] < 5*int(mean) {
		t.Errorf("its owner has %d changes of it, and the other %.1f of each", ofOwner[7], mean)
	}
}

func TestABadWeightPanicsWithTheField(t *testing.T) {
	try := func(declare func(), want ...string) {
		defer func() {
			said, _ := recover().(string)
			for _, part := range want {
				if !strings.Contains(said, part) {
					t.Errorf("panic %q, want %q in it", said, part)
				}
			}
		}()
		declare()
	}
	sc := netloop.NewSchema("bad", 1, 0)
	type state struct {
		In struct {
			A int32 `net:"weight=0"`
		}
	}
	try(func() { netloop.NewClass[state](sc, "bad") }, `class "bad"`, "state.In.A: weight=0", "from 1/64 to 64")
	type elem struct {
		B int32 `net:"weight=2"`
	}
	type list struct{ In []elem }
	try(func() { netloop.NewClass[list](sc, "worse") }, `class "worse"`, "In[].B", "interval and weight on the slice or map itself")
}
