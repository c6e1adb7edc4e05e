package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// The game of the priority tests: balls of four classes that all change in every tick.
var (
	ballSchema = netloop.NewSchema("crowd", 1, 0)
	balls      = netloop.NewClass[ball](ballSchema, "ball")
	stars      = netloop.NewClass[ball](ballSchema, "star", netloop.Weight(4))
	embers     = netloop.NewClass[ball](ballSchema, "ember", netloop.Weight(0.9))
	sparks     = netloop.NewClass[ball](ballSchema, "spark", netloop.Weight(0.5), netloop.MinRate(4))
)

type ball struct{ X, Y int32 }

type ballGame struct {
	balls, stars, sparks int
	open                 func(*netloop.Room)
}

func (ballGame) Schema() *netloop.Schema { return ballSchema }

func (g ballGame) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) {
		for i := range g.balls {
			balls.Spawn(t, ball{X: int32(i)})
		}
		for i := range g.stars {
			stars.Spawn(t, ball{X: int32(i)})
		}
		for i := range g.sparks {
			sparks.Spawn(t, ball{X: int32(i)})
		}
	})
	r.On(netloop.Update, "crowd.move", func(t *netloop.Tick) {
		for _, class := range []*netloop.Class[ball]{balls, stars, embers, sparks} {
			for o := range class.All(t) {
				o.Edit(t).Y = int32(t.Rand().Uint32()) // unpredictable
			}
		}
	})
	if g.open != nil {
		g.open(r)
	}
	return nil
}

// tally counts a client's changes of a class, by the X of the ball.
func tally(c *client.Client, class *netloop.Class[ball]) map[int32]int {
	n := map[int32]int{}
	client.Watch(c, class, client.Watcher[ball]{Change: func(_ *netloop.Tick, o *netloop.Object[ball], _ ball) { n[o.State().X]++ }})
	return n
}

func sum64(n map[int32]int) (all float64) {
	for _, v := range n {
		all += float64(v)
	}
	return all
}

// TestABudgetLimitsOneClient: a smaller budget for one of two clients limits only that one.
func TestABudgetLimitsOneClient(t *testing.T) {
	w := netlooptest.New(t, ballGame{balls: 200})
	rich, poor := play(t, w, perfect), play(t, w, perfect)
	w.Tick(func(t *netloop.Tick) {
		c, _ := t.Client(poor.ID())
		c.SetBudget(t, 100)
	})
	w.Step(60) // The overdraft of the first state is paid.
	var bytes, whole int
	poor.OnSnapshot(func(s client.Snapshot) { bytes += s.Bytes })
	rich.OnSnapshot(func(s client.Snapshot) { whole += s.Bytes })
	w.Step(120)
	if bytes > 120*(100+16) || bytes < 120*50 { // 16 is the header of a packet.
		t.Errorf("%d bytes in 120 ticks of 100", bytes)
	}
	if whole < 4*bytes {
		t.Errorf("the other client was sent %d bytes", whole)
	}
	w.Tick(func(t *netloop.Tick) {
		c, _ := t.Client(poor.ID())
		c.SetBudget(t, 0) // the room's
	})
	before := whole
	bytes = 0
	w.Step(60)
	if bytes < (whole-before)*9/10 {
		t.Errorf("with the room's budget %d bytes, the other %d", bytes, whole-before)
	}
}

// TestWeightAndDistanceOrderAShortBudget: objects of weight 4 are sent four times as often, and
// so are objects at a quarter of the distance; minimum rates apply too.
func TestWeightAndDistanceOrderAShortBudget(t *testing.T) {
	seeds.OneGoroutine(t)
	var panics bool
	w := netlooptest.New(t, ballGame{balls: 60, stars: 20, sparks: 5, open: func(r *netloop.Room) {
		balls.WeightFor(r, func(c *netloop.Client, o *netloop.Object[ball]) float64 {
			if panics {
				panic("test")
			}
			if o.State().X < 10 {
				return 4
			}
			return 1
		})
	}}, netlooptest.Room(netloop.RoomSpec{Budget: 60}), netlooptest.AllowPanics())
	c := play(t, w, perfect)
	w.Step(60)
	ofBalls, ofStars, ofSparks := tally(c, balls), tally(c, stars), tally(c, sparks)
	w.Step(1200)
	var near, far float64
	for x, n := range ofBalls {
		if x < 10 {
			near += float64(n) / 10
		} else {
			far += float64(n) / 50
		}
	}
	star, spark := sum64(ofStars)/20, sum64(ofSparks)/5
	if near < 3*far || near > 5*far || star < 3*far || star > 5*far {
		t.Errorf("changes in 20 s: %.1f of a ball near, %.1f far, %.1f of a star", near, far, star)
	}
	if spark < 70 || spark > 1.4*80 {
		t.Errorf("%.1f changes of a spark in 20 s, want 4 a second", spark)
	}
	panics = true
	w.Step(240)
	before := sum64(ofBalls)
	w.Step(240)
	if sum64(ofBalls) == before {
		t.Error("a panic of the function ended the changes")
	}
}

// TestOverloadSendsLightObjectsAtTheirMinimumRate: an overloaded server sends objects of weight 1
// or more as before, and lighter ones at their minimum rate, until it recovers.
func TestOverloadSendsLightObjectsAtTheirMinimumRate(t *testing.T) {
	var load time.Duration
	var w *netlooptest.World
	w = netlooptest.New(t, ballGame{stars: 1, sparks: 1, open: func(r *netloop.Room) {
		r.OnStart(func(t *netloop.Tick) { embers.Spawn(t, ball{}) })
		r.On(netloop.Update, "test.load", func(*netloop.Tick) { w.Spend(load) })
	}})
	c := play(t, w, perfect)
	w.Step(60)
	ofEmbers, ofStars, ofSparks := tally(c, embers), tally(c, stars), tally(c, sparks)
	counts := func(ticks int) [3]int {
		clear(ofEmbers)
		clear(ofStars)
		clear(ofSparks)
		w.Step(ticks)
		return [3]int{ofEmbers[0], ofStars[0], ofSparks[0]}
	}
	w.Step(1)
	if got := counts(120); got != [3]int{120, 120, 120} {
		t.Errorf("changes in 120 ticks before: %v", got)
	}
	load = 20 * time.Millisecond
	w.Until(600, func() bool { return c.Overload() >= netloop.OverloadShedding })
	w.Step(60)
	got := counts(240)
	if got[0] < 3 || got[0] > 5 || got[1] != 120 || got[2] < 14 || got[2] > 18 {
		t.Errorf("changes in 4 s of 60 ticks while shedding: %v; want 1 a second of the ember, half of the snapshots of the star, 4 a second of the spark", got)
	}
	load = 0
	w.Until(20*60, func() bool { return c.Overload() == netloop.OverloadNone })
	w.Step(10)
	if got := counts(120); got != [3]int{120, 120, 120} {
		t.Errorf("changes in 120 ticks afterwards: %v", got)
	}
}

func TestBadPrioritiesAreRefused(t *testing.T) {
	for name, fn := range map[string]func(){
		"Weight":  func() { netloop.Weight(0) },
		"Weight(": func() { netloop.Weight(math.NaN()) },
		"MinRate": func() { netloop.MinRate(-1) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, name) || !strings.Contains(got, "use ") {
					t.Errorf("%s: %q", name, got)
				}
			}()
			fn()
		}()
	}
	if _, err := netloop.New(netloop.Config{Room: netloop.RoomSpec{Budget: -1}}, ballGame{}); err == nil || !strings.Contains(err.Error(), "Room.Budget: -1") {
		t.Errorf("a negative budget: %v", err)
	}
	for budget, ok := range map[int]bool{1: true, netvar.MaxBudget: true, netvar.MaxBudget + 1: false} {
		if _, err := netloop.New(netloop.Config{Room: netloop.RoomSpec{Budget: budget}}, ballGame{}); (err == nil) != ok {
			t.Errorf("a budget of %d: %v", budget, err)
		}
	}
	other := script(func(r *netloop.Room) {
		balls.WeightFor(r, func(*netloop.Client, *netloop.Object[ball]) float64 { return 1 })
	})
	if _, err := netloop.New(netloop.Config{}, other); err == nil || !strings.Contains(err.Error(), `class "ball"`) {
		t.Errorf("a class of another schema: %v", err)
	}
}

// TestBytesByClassAndFieldAreMetrics: the metrics have the bytes of each class and field.
func TestBytesByClassAndFieldAreMetrics(t *testing.T) {
	s, _ := serve(t, script(busy), 60)
	dial(t, s.Addr().String(), nil)
	class := regexp.MustCompile(`netloop_replication_bytes_total\{class="thing"\} [1-9]`)
	field := regexp.MustCompile(`netloop_replication_field_bytes_total\{class="thing",field="[A-Z]\w*(\[\d\])?"\} [1-9]`)
	waitFor(t, func() bool {
		_, body := page(t, s, "/metrics")
		return class.MatchString(body) && field.MatchString(body)
	})
}

// TestPrioritiesReplay: a replay sends the same bytes despite a short budget, weights, distances
// and shedding.
func TestPrioritiesReplay(t *testing.T) {
	var file bytes.Buffer
	var w *netlooptest.World
	var load time.Duration
	spend := func() { w.Spend(load) }
	game := ballGame{balls: 60, stars: 20, sparks: 20, open: func(r *netloop.Room) {
		balls.WeightFor(r, func(c *netloop.Client, o *netloop.Object[ball]) float64 {
			return float64(uint64(c.ID()) * uint64(o.State().X%7))
		})
		r.On(netloop.Update, "test.load", func(t *netloop.Tick) {
			spend()
			for c := range t.Clients() {
				c.SetBudget(t, int(20+t.Number()%64))
			}
		})
	}}
	w = netlooptest.New(t, game, netlooptest.Record(&file), netlooptest.Room(netloop.RoomSpec{Budget: 300}))
	w.Join("", nil, bad)
	c := w.Join("", nil, perfect)
	shed := false
	for n := range 400 {
		if load = 0; n > 100 && n < 200 {
			load = 20 * time.Millisecond
		}
		w.Step(1)
		shed = shed || c.Overload() >= netloop.OverloadShedding
	}
	if !shed {
		t.Fatal("the server never sheds")
	}
	spend = func() {}
	p, err := netloop.NewReplay(netloop.Config{}, game, &file)
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for ; err == nil; ticks++ {
		_, err = p.Step() // Compares the digest of all sent bytes.
	}
	if !errors.Is(err, io.EOF) || ticks != 401 {
		t.Errorf("tick %d: %v", ticks, err)
	}
}
