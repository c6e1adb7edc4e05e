package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

type whistle struct {
	At  uint64
	Who netloop.Ref[train]
}

var whistles = netloop.NewRPC[whistle](railway, "whistle")

// depot is a game with trains controlled by the test.
type depot struct {
	rails
	run func(*netloop.Tick) // runs in each tick, unless nil
}

func (d *depot) Open(room *netloop.Room) error {
	room.On(netloop.Update, "run", func(t *netloop.Tick) {
		if d.run != nil {
			d.run(t)
		}
	})
	return nil
}

// joinDrawing joins a client that draws trains, and steps until it plays.
func joinDrawing(w *netlooptest.World, l netlooptest.Link, fps int, o ...client.InterpolateOption) *client.Client {
	c := w.Join("", nil, l, netlooptest.FPS(fps))
	client.Interpolate(c, trains, o...)
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
	return c
}

// serverStates has the server's state at the end of each tick.
type serverStates map[uint64]map[netloop.Ref[train]]float64

// changeTrains spawns, moves, teleports, hides, shows and despawns trains at random.
func (h serverStates) changeTrains(w *netlooptest.World, r *rand.Rand, all []*netloop.Object[train], hidden map[*netloop.Object[train]]bool) []*netloop.Object[train] {
	w.Tick(func(t *netloop.Tick) {
		if len(all) < 40 && r.IntN(10) == 0 {
			all = append(all, trains.Spawn(t, train{X: float64(r.IntN(100))}))
		}
		for i := 0; i < len(all); i++ {
			o := all[i]
			switch k := r.IntN(100); {
			case k < 60:
				o.Edit(t).X++
			case k == 60:
				s := o.Edit(t)
				s.X, s.Hops = s.X+1000, s.Hops+1
			case k == 61:
				if hidden[o] = !hidden[o]; hidden[o] {
					o.SetVisible(t, netloop.To())
				} else {
					o.SetVisible(t, netloop.Everyone())
				}
			case k == 62:
				o.Despawn(t)
				all = slices.Delete(all, i, i+1)
				i--
			}
		}
	})
	w.Step(1)
	w.Tick(func(t *netloop.Tick) {
		now := map[netloop.Ref[train]]float64{}
		for _, o := range all {
			if !hidden[o] {
				now[o.Ref()] = o.State().X
			}
		}
		h[t.Number()] = now
	})
	return all
}

// look compares a frame's drawn positions with the server's states of its two snapshots.
func (h serverStates) look(t *testing.T, c *client.Client, exact bool) (drawn int) {
	t.Helper()
	v := c.ViewMoment()
	from, to := h[v.From], h[v.To]
	if v.From == 0 || from == nil || to == nil {
		return 0
	}
	seen := map[netloop.Ref[train]]bool{}
	for o, s := range client.Views(c, trains) {
		drawn++
		a, was := from[o.Ref()]
		b, is := to[o.Ref()]
		if seen[o.Ref()] {
			t.Fatalf("at %+v %v is drawn twice", v, o.Ref())
		}
		seen[o.Ref()] = true
		switch want := a + (b-a)*v.Alpha; {
		case !exact || !was && !is:
		case was && is && b-a < 900 && s.X-want < 1e-6 && want-s.X < 1e-6:
		case was && b-a > 900 && s.X == a: // It teleports.
		case is && !was && s.X == b, was && !is && s.X == a:
		default:
			if h.unbroken(o.Ref(), v) {
				t.Fatalf("at %+v %v is drawn at %v, it was at %v and %v", v, o.Ref(), s.X, a, b)
			}
		}
	}
	for ref := range from {
		if !seen[ref] && exact && h.unbroken(ref, v) {
			t.Fatalf("at %+v %v is not drawn", v, ref)
		}
	}
	return drawn
}

// unbroken reports whether the client may see the train at all ticks around a view.
func (h serverStates) unbroken(ref netloop.Ref[train], v netloop.Moment) bool {
	for tick := v.From; tick <= v.To; tick++ {
		if _, ok := h[tick][ref]; !ok {
			return false
		}
	}
	return true
}

// A frame draws the server's interpolation of its states of the same two ticks, for each object,
// over links that delay, lose and reorder. Spawned, despawned, hidden and teleported objects are
// never drawn in between.
func TestAFrameDrawsTheServersStates(t *testing.T) {
	seeds.OneGoroutine(t)
	for seed := range uint64(4) {
		for _, l := range []netlooptest.Link{{Delay: 25 * time.Millisecond}, {Delay: 40 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.1, Duplicate: 0.05}} {
			for _, every := range []int{1, 3} {
				w := netlooptest.New(t, &depot{}, netlooptest.Seed(seed+1), netlooptest.Room(netloop.RoomSpec{SendEvery: every}))
				h, r := serverStates{}, rand.New(rand.NewPCG(seed, uint64(every)))
				hidden := map[*netloop.Object[train]]bool{}
				var all []*netloop.Object[train]
				for range 60 {
					all = h.changeTrains(w, r, all, hidden)
				}
				c := w.Join("", nil, l, netlooptest.FPS(100))
				client.Interpolate(c, trains)
				drawn, last := 0, time.Duration(0)
				c.On(netloop.PostLateUpdate, "test.look", func(*netloop.Tick) {
					drawn += h.look(t, c, l.Loss == 0)
					if now := c.ViewTime(); now < last {
						t.Fatalf("from %v back to %v", last, now)
					}
					last = c.ViewTime()
				})
				for range 300 {
					all = h.changeTrains(w, r, all, hidden)
				}
				if s := c.Stats(); drawn < 1000 || s.Teleports == 0 || s.Malformed > 0 {
					t.Errorf("seed %d, %+v: %d drawn, %+v", seed, l, drawn, s)
				}
			}
		}
	}
}

// A message WithState runs in the first frame that draws the tick of its sending, with its
// object. At a client without interpolation it runs with the state.
func TestAMessageWithStateRunsWhenItsTickIsShown(t *testing.T) {
	g := &depot{}
	w := netlooptest.New(t, g, netlooptest.Room(netloop.RoomSpec{SendEvery: 3}))
	link := netlooptest.Link{Delay: 30 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.05}
	shows, newest := joinDrawing(w, link, 144), play(t, w, link)
	times, last, ran := map[uint64]time.Duration{}, time.Duration(0), [2]int{}
	shows.On(netloop.PostLateUpdate, "test.last", func(*netloop.Tick) { last = shows.ViewTime() })
	for i, c := range []*client.Client{shows, newest} {
		client.Handle(c, whistles, func(tick *netloop.Tick, m whistle) {
			ran[i]++
			o, ok := m.Who.Get(tick)
			if !ok {
				t.Fatalf("whistle of tick %d: its train is not there", m.At)
			}
			s, shown := client.View(c, o)
			if !shown || s.X < float64(m.At) {
				t.Errorf("client %d: whistle of tick %d: its train is at %v, drawn at %v", i, m.At, s.X, shown)
			}
			if i == 0 && (c.ViewTime() < times[m.At] || last >= times[m.At]) {
				t.Errorf("whistle of %v runs at %v, the frame before showed %v", times[m.At], c.ViewTime(), last)
			}
			if delay := tick.GameTime() - times[m.At]; i == 1 && delay > 150*time.Millisecond {
				t.Errorf("without interpolation it runs %v late", delay)
			}
		})
	}
	var o *netloop.Object[train]
	sent := 0
	g.run = func(tick *netloop.Tick) {
		n := tick.Number()
		if n%50 == 0 || o == nil {
			o = trains.Spawn(tick, train{})
		}
		if o.Edit(tick).X = float64(n); n%10 == 0 && sent < 15 {
			sent++
			times[n] = tick.GameTime()
			whistles.Send(tick, netloop.Everyone(), whistle{n, o.Ref()}, netloop.WithState())
		}
	}
	w.Step(220)
	for i, c := range []*client.Client{shows, newest} {
		if s := c.Stats(); ran[i] != 15 || s.Held != 0 || s.Early != 0 {
			t.Errorf("client %d: %d of 15 ran, %d wait, %d ran early", i, ran[i], s.Held, s.Early)
		}
	}
}

// A stalled, paused or slow server does not move the view back, and positions do not jump: after
// a stall the view continues from its last time.
func TestStallsAndScalesDoNotMoveTheViewBack(t *testing.T) {
	g := &rails{}
	w := netlooptest.New(t, g)
	c := joinDrawing(w, netlooptest.Link{Delay: 30 * time.Millisecond}, 144)
	w.Step(120)
	s, starved := draw(c, 60), c.Stats().Starved
	scale := func(num, den int) {
		w.Tick(func(tick *netloop.Tick) { tick.Room().SetTimeScale(tick, num, den) })
		w.Step(60)
	}
	scale(0, 1)
	scale(1, 2)
	scale(4, 1)
	if s.uneven > 0 || s.back > 0 || c.Stats().Starved > starved {
		t.Errorf("at other scales %d frames are uneven, %d go back", s.uneven, s.back)
	}
	for _, stall := range []time.Duration{60 * time.Millisecond, 400 * time.Millisecond} {
		w.Spend(stall)
		w.Step(120)
	}
	if st := c.Stats(); s.back > 0 || st.ViewJumps > 0 || st.Starved == starved || st.ViewDelay > 150*time.Millisecond {
		t.Errorf("after stalls %d frames moved back, %d jumps, %v behind", s.back, st.ViewJumps, st.ViewDelay)
	}
	s.uneven = 0
	if w.Step(60); s.uneven > 0 {
		t.Errorf("a second after the stall %d frames are uneven", s.uneven)
	}
}

// A reconnecting client continues to show its objects, at first with their old state. At another
// server it shows none of the old ones.
func TestTheViewContinuesAfterReconnecting(t *testing.T) {
	w := netlooptest.New(t, &rails{})
	c := joinDrawing(w, netlooptest.Link{Delay: 30 * time.Millisecond}, 60)
	w.Step(120)
	s := draw(c, 60)
	shown, frames := 0, 0
	c.On(netloop.PostLateUpdate, "test.count", func(*netloop.Tick) {
		frames++
		for range client.Views(c, trains) {
			shown++
		}
	})
	w.Break(c)
	w.Step(240)
	if st := c.Stats(); st.Resumes != 1 || shown != frames || s.back > 0 || st.ViewDelay > 100*time.Millisecond {
		t.Errorf("%d resumes: drawn in %d of %d frames, %d moved back, delay %v", st.Resumes, shown, frames, s.back, st.ViewDelay)
	}
	before := c.ViewTime()
	w.Restart(&rails{})
	w.Until(600, func() bool { return c.State().Phase != client.Playing })
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
	w.Step(30)
	shown, frames = 0, 0
	s.uneven = 0
	w.Step(60)
	if v := c.ViewTime(); shown != frames || v >= before || s.uneven > 5 {
		t.Errorf("of the other server: drawn in %d of %d frames, at %v after %v, %d uneven", shown, frames, v, before, s.uneven)
	}
}

// Even motion is drawn evenly while a server sends every other snapshot, and afterwards, except
// at the changes.
func TestMotionIsDrawnEvenlyDuringOverload(t *testing.T) {
	g := &rails{}
	w := netlooptest.New(t, g)
	c := joinDrawing(w, netlooptest.Link{Delay: 30 * time.Millisecond}, 144)
	w.Step(120)
	s := draw(c, 60)
	level := netloop.OverloadNone
	c.OnOverload(func(l netloop.Overload) { level = max(level, l) })
	busy := true
	w.Tick(func(tick *netloop.Tick) {
		tick.Room().On(netloop.Update, "test.busy", func(*netloop.Tick) {
			if busy {
				w.Spend(15500 * time.Microsecond)
			}
		})
	})
	w.Step(60)
	busy = false
	w.Step(900)
	if level != netloop.OverloadHalved || c.Overload() != netloop.OverloadNone {
		t.Fatalf("the server's overload was %v, and is %v", level, c.Overload())
	}
	if st := c.Stats(); s.back > 0 || s.uneven*100 > s.frames || st.Starved*100 > st.Drawn || st.ViewJumps > 0 {
		t.Errorf("%d of %d frames are uneven, %d starved, %d times back", s.uneven, s.frames, st.Starved, s.back)
	}
}

// Objects without room in the budget are drawn at their last state, and later at the new one,
// never back or beyond the server's.
func TestDeferredObjectsAreDrawnAtTheirLastState(t *testing.T) {
	w := netlooptest.New(t, &depot{}, netlooptest.Room(netloop.RoomSpec{Budget: 300}))
	var all []*netloop.Object[train]
	w.Tick(func(tick *netloop.Tick) {
		for range 200 {
			all = append(all, trains.Spawn(tick, train{}))
		}
	})
	c := joinDrawing(w, netlooptest.Link{Delay: 30 * time.Millisecond, Loss: 0.05}, 100)
	at, moved := map[netloop.Ref[train]]float64{}, 0
	c.On(netloop.PostLateUpdate, "test.look", func(*netloop.Tick) {
		for o, s := range client.Views(c, trains) {
			if was, ok := at[o.Ref()]; ok && s.X < was || s.X > all[0].State().X {
				t.Fatalf("%v is drawn at %v, was at %v and is at %v", o.Ref(), s.X, was, all[0].State().X)
			} else if s.X > was {
				moved++
			}
			at[o.Ref()] = s.X
		}
	})
	for range 300 {
		w.Tick(func(tick *netloop.Tick) {
			for _, o := range all {
				o.Edit(tick).X += 1 + 1.0/1024
			}
		})
		w.Step(1)
	}
	if len(at) != 200 || moved < 2000 {
		t.Errorf("%d trains are drawn, moved %d times", len(at), moved)
	}
	for ref, x := range at {
		if x < 100 {
			t.Errorf("%v is at %v", ref, x)
		}
	}
}

// Without snapshots, a class with extrapolation continues for its configured time; others wait.
func TestExtrapolationIsBounded(t *testing.T) {
	for _, d := range []time.Duration{0, 50 * time.Millisecond} {
		w := netlooptest.New(t, &rails{})
		c := joinDrawing(w, netlooptest.Link{Delay: 30 * time.Millisecond}, 144, client.Extrapolate(d))
		w.Step(120)
		var x float64
		c.On(netloop.PostLateUpdate, "test.look", func(*netloop.Tick) {
			for _, s := range client.Views(c, trains) {
				x = s.X
			}
		})
		w.Stall(c, true)
		w.Step(30)
		st := c.Stats()
		want := float64(st.Applied+1) + d.Seconds()*60
		if diff := x - want; diff > 1e-6 || diff < -1e-6 || st.Starved == 0 || (st.Extrapolated > 0) != (d > 0) {
			t.Errorf("with %v the train is drawn at %v, want %v; %d frames starved, %d extrapolated", d, x, want, st.Starved, st.Extrapolated)
		}
		w.Stall(c, false)
		w.Step(60)
	}
}

// View returns the newest state of objects without interpolation, and allocates no memory.
func TestViewWithoutInterpolationReturnsTheNewestState(t *testing.T) {
	w := netlooptest.New(t, &rails{})
	c := play(t, w, netlooptest.Link{Delay: 30 * time.Millisecond})
	w.Step(60)
	var o *netloop.Object[train]
	w.Look(c, func(tick *netloop.Tick) {
		for o = range trains.All(tick) {
			if s, ok := client.View(c, o); !ok || s != o.State() {
				t.Errorf("it is %+v, %v, want %+v", s, ok, o.State())
			}
		}
	})
	if v, newest := c.ViewMoment(), c.Stats().Applied; v != (netloop.Moment{From: newest, To: newest}) || c.ViewTime() != c.TickRate().Period()*time.Duration(newest) && c.ViewTime() == 0 {
		t.Errorf("View returns %+v at %v, the newest is %d", v, c.ViewTime(), newest)
	}
	client.Interpolate(c, trains)
	w.Step(60)
	var sum float64
	if n := testing.AllocsPerRun(100, func() {
		s, _ := client.View(c, o)
		sum += s.X
	}); n != 0 || sum == 0 {
		t.Errorf("View allocates %v times", n)
	}
	var server *netloop.Object[train]
	w.Tick(func(tick *netloop.Tick) {
		for server = range trains.All(tick) {
			server.Despawn(tick)
		}
	})
	gone := 0
	c.On(netloop.PostLateUpdate, "test.gone", func(*netloop.Tick) {
		if _, ok := client.View(c, o); ok && !o.Alive() {
			gone++
		}
	})
	w.Step(60)
	if _, ok := client.View(c, o); ok || gone == 0 {
		t.Errorf("after its end it is drawn: %v, in %d frames", ok, gone)
	}
	defer func() {
		want := `client: Interpolate: class "crate" belongs to another schema than Config.Schema`
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}()
	client.Interpolate(c, netloop.NewClass[train](netloop.NewSchema("elsewhere", 1, 0), "crate"))
}
