package e2e_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

var (
	rewindSchema = netloop.NewSchema("gallery", 1, 0)
	runners      = netloop.NewClass[runner](rewindSchema, "runner")
	aims         = netloop.NewInput(rewindSchema, func(aim, int) aim { return aim{} })
)

// runner is a target.
type runner struct {
	X     float32 `net:"quant=1/256,range=-2000:2000"`
	Angle float32 `net:"lerp=angle,quant=1/512,range=0:6.5"`
	Score int32   `net:"lerp=none"`
	Name  string  `net:"max=8"`
}

// aim is an input with the position at which the player aims, and a number.
type aim struct {
	Fire bool
	At   float32
	N    uint32
}

// shooter is a game with one target, which runs back and forth at 20 units per second and is hit
// within half a unit.
type shooter struct {
	target                 *netloop.Object[runner]
	fired, hits, inPresent int
	link                   netloop.LinkStats
}

func (*shooter) Schema() *netloop.Schema { return rewindSchema }

func (g *shooter) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) { g.target = runners.Spawn(t, runner{}) })
	r.On(netloop.Update, "run", func(t *netloop.Tick) {
		at := math.Mod(t.GameTime().Seconds(), 10)
		g.target.Edit(t).X = float32(20 * min(at, 10-at))
	})
	aims.Handle(r, func(t *netloop.Tick, from *netloop.Client, in aim) {
		if !in.Fire {
			return
		}
		near := func(s runner) bool { return math.Abs(float64(s.X-in.At)) < 0.5 }
		g.fired++
		if s, ok := g.target.At(t.ViewMoment(from)); ok && near(s) {
			g.hits++
		}
		if near(g.target.State()) {
			g.inPresent++
		}
		g.link = from.Link()
	})
	return nil
}

// A shot at the drawn target hits, over any link, and would miss in the present. No view of an
// honest client is clamped, except one in 1 000 over the worst link.
func TestRewindMakesShotsAtVisibleTargetsHit(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, c := range []struct {
		link    netlooptest.Link
		fps     int
		clamped uint64 // at most: the view of a late input may be too old
	}{
		{netlooptest.Link{}, 24, 0},
		{netlooptest.Link{Delay: 65 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.05}, 60, 0},
		{netlooptest.Link{Delay: 105 * time.Millisecond, Jitter: 40 * time.Millisecond, Loss: 0.1}, 144, 3},
	} {
		g := new(shooter)
		w := netlooptest.New(t, g)
		cl := w.Join("", nil, c.link, netlooptest.FPS(c.fps))
		client.Interpolate(cl, runners)
		client.Inputs(cl, aims, func(t *netloop.Tick) aim {
			for _, seen := range client.Views(cl, runners) {
				return aim{Fire: cl.State().Phase == client.Playing && t.FixedStep() > 120, At: seen.X}
			}
			return aim{}
		})
		w.Step(1200)
		t.Logf("%v, %d fps: of %d shots %d hit, without rewind %d; %d views clamped", c.link.Delay, c.fps, g.fired, g.hits, g.inPresent, g.link.ViewsClamped)
		if g.fired < 900 || g.hits*100 < g.fired*97 || g.inPresent*4 > g.fired {
			t.Errorf("%+v: of %d shots %d hit, and %d would in the present", c.link, g.fired, g.hits, g.inPresent)
		}
		if g.link.ViewsClamped > c.clamped {
			t.Errorf("%+v: %d views were clamped", c.link, g.link.ViewsClamped)
		}
	}
}

// randomRunners is a game of runners that spawn, despawn and change at random.
type randomRunners struct {
	rng     *rand.Rand
	compare func(t *netloop.Tick, from *netloop.Client, n uint32)
}

func (*randomRunners) Schema() *netloop.Schema { return rewindSchema }

func (g *randomRunners) Open(r *netloop.Room) error {
	r.On(netloop.Update, "run", func(t *netloop.Tick) {
		if g.rng.IntN(8) == 0 {
			runners.Spawn(t, runner{X: g.rng.Float32() * 100, Name: "new"})
		}
		for o := range runners.All(t) {
			switch k := g.rng.IntN(60); {
			case k == 0:
				o.Despawn(t)
			case k == 1:
				o.Edit(t).Name = string(rune('a' + g.rng.IntN(26)))
			case k < 40:
				s := o.Edit(t)
				s.X += g.rng.Float32()*8 - 4
				s.Angle = float32(math.Mod(float64(s.Angle)+0.4*g.rng.Float64(), 2*math.Pi))
				s.Score++
			}
		}
	})
	aims.Handle(r, func(t *netloop.Tick, from *netloop.Client, in aim) { g.compare(t, from, in.N) })
	return nil
}

// TestRewindReturnsTheStatesThatTheClientDrew plays random worlds. For each input that arrives,
// the server's state of each object at its view is the one that the client had drawn when it made
// the input, up to the resolution of a view, 64 steps between two snapshots. At most one object
// in 200 differs, because its newest change was lost, or arrived between two steps.
func TestRewindReturnsTheStatesThatTheClientDrew(t *testing.T) {
	seeds.OneGoroutine(t)
	type drawing map[netloop.Ref[runner]]runner
	for seed := range uint64(6) {
		g := &randomRunners{rng: rand.New(rand.NewPCG(seed, 7))}
		w := netlooptest.New(t, g, netlooptest.Seed(seed+1), netlooptest.Room(netloop.RoomSpec{SendEvery: 1 + int(seed)%3}))
		c := w.Join("", nil, netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond, Reorder: 0.05, Loss: float64(seed%2) * 0.05}, netlooptest.FPS(40+30*int(seed%6)))
		client.Interpolate(c, runners)
		drawn := map[uint32]drawing{}
		client.Inputs(c, aims, func(*netloop.Tick) aim {
			d := drawing{}
			for o, seen := range client.Views(c, runners) {
				d[o.Ref()] = seen
			}
			n := uint32(len(drawn) + 1)
			drawn[n] = d
			return aim{N: n}
		})
		compared, wrong := 0, 0
		g.compare = func(t *netloop.Tick, from *netloop.Client, n uint32) {
			view := t.ViewMoment(from)
			most := float32(view.To-view.From)*4/64 + 1.0/128 // A runner moves by 4 in a tick.
			for ref, saw := range drawn[n] {
				o, alive := ref.Get(t)
				if !alive {
					continue
				}
				s, ok := o.At(view)
				compared++
				angle := math.Abs(math.Remainder(float64(s.Angle-saw.Angle), 2*math.Pi))
				if !ok || max(s.X-saw.X, saw.X-s.X) > most || angle > float64(most) || s.Score != saw.Score || s.Name != saw.Name {
					wrong++
				}
			}
		}
		w.Step(600)
		if compared < 1000 || wrong*200 > compared {
			t.Errorf("seed %d: of %d objects %d differ", seed, compared, wrong)
		}
	}
}

// An object has no state at a view before its spawn, after its end, or beyond the history. The
// view of no client is the present, and a client has no history.
func TestAtReturnsNoStateBeyondTheHistory(t *testing.T) {
	var o, gone *netloop.Object[runner]
	w := netlooptest.New(t, game{schema: rewindSchema, script: func(r *netloop.Room) {
		r.On(netloop.Update, "run", func(t *netloop.Tick) {
			switch t.Number() {
			case 10:
				o = runners.Spawn(t, runner{})
				gone = runners.Spawn(t, runner{})
			case 150:
				gone.Despawn(t)
			}
			if o != nil {
				o.Edit(t).X = float32(t.Number())
			}
		})
	}})
	c := w.Join("", nil, perfect)
	w.Step(160)
	w.Tick(func(*netloop.Tick) {
		for _, at := range []struct {
			o    *netloop.Object[runner]
			v    netloop.Moment
			want float32
			ok   bool
		}{
			{o, netloop.Moment{From: 150, To: 152, Alpha: 0.25}, 150.5, true},
			{o, netloop.Moment{}, 160, true},
			{o, netloop.Moment{From: 10, To: 11}, 0, false},
			{o, netloop.Moment{From: 8, To: 9}, 0, false},
			{gone, netloop.Moment{From: 140, To: 141}, 0, false},
			{gone, netloop.Moment{}, 0, false},
		} {
			if s, ok := at.o.At(at.v); ok != at.ok || s.X != at.want {
				t.Errorf("at %+v X is %v, %v, want %v, %v", at.v, s.X, ok, at.want, at.ok)
			}
		}
	})
	panics := map[string]func(*netloop.Tick, *netloop.Object[runner]){
		"netloop: Object.At works on the server only":       func(_ *netloop.Tick, o *netloop.Object[runner]) { o.At(netloop.Moment{From: 1, To: 2}) },
		"netloop: Tick.ViewMoment works on the server only": func(t *netloop.Tick, _ *netloop.Object[runner]) { t.ViewMoment(nil) },
	}
	c.On(netloop.Update, "look", func(tick *netloop.Tick) {
		for mine := range runners.All(tick) {
			for want, call := range panics {
				func() {
					defer func() {
						if v, _ := recover().(string); !strings.HasPrefix(v, want) {
							t.Errorf("recovered %q, want %q", v, want)
						}
						delete(panics, want)
					}()
					call(tick, mine)
				}()
			}
		}
	})
	w.Step(2)
	if len(panics) > 0 {
		t.Error("the client has no object")
	}
}

// A second program of a player has not seen the first one's frames.
func TestAReplacedClientStartsWithoutAView(t *testing.T) {
	var before, after netloop.Moment
	resumed := false
	w := netlooptest.New(t, game{schema: rewindSchema, script: func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
		r.OnResume(func(t *netloop.Tick, c *netloop.Client) { after, resumed = t.ViewMoment(c), true })
		aims.Handle(r, func(t *netloop.Tick, from *netloop.Client, _ aim) {
			if !resumed {
				before = t.ViewMoment(from)
			}
		})
	}})
	first := w.Join("ann", nil, perfect)
	client.Inputs(first, aims, func(*netloop.Tick) aim { return aim{} })
	w.Step(90)
	w.Join("ann", nil, perfect)
	w.Step(30)
	if before == (netloop.Moment{}) || !resumed || after != (netloop.Moment{}) {
		t.Errorf("the view of the first is %+v, and of the second, %v, %+v", before, resumed, after)
	}
}

// View and At allocate no memory.
func TestAtAllocatesNothing(t *testing.T) {
	g := new(shooter)
	w := netlooptest.New(t, g)
	c := w.Join("", nil, perfect)
	client.Inputs(c, aims, func(*netloop.Tick) aim { return aim{Fire: true} })
	w.Step(90)
	w.Tick(func(tick *netloop.Tick) {
		for from := range tick.Clients() {
			if tick.ViewMoment(from) == (netloop.Moment{}) {
				t.Error("the client has no view")
			}
			n := testing.AllocsPerRun(20, func() {
				if s, ok := g.target.At(tick.ViewMoment(from)); !ok || s.X == 0 {
					t.Error("it has no state")
				}
			})
			if n > 0 {
				t.Errorf("%v allocations", n)
			}
		}
	})
}

// BenchmarkAt reads an object that has changed in each of 128 ticks.
func BenchmarkAt(b *testing.B) {
	g := new(shooter)
	w := netlooptest.New(b, g)
	w.Step(200)
	b.ReportAllocs()
	v := netloop.Moment{From: 185, To: 186, Alpha: 0.5}
	for b.Loop() {
		if s, ok := g.target.At(v); !ok || s.X == 0 {
			b.Fatal("it has no state")
		}
	}
}
