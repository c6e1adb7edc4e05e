package arena_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/netlooptest"
)

var link = netlooptest.Link{Delay: 25 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.05}

// enter joins a player and steps until it plays.
func enter(w *netlooptest.World, name string) *client.Client {
	c := w.Join("", arena.JoinParams{Name: name}, link)
	w.Until(300, func() bool { return c.State().Phase == client.Playing })
	return c
}

// hold sets a player's input from now on to the returned control.
func hold(c *client.Client) *arena.Control {
	in := new(arena.Control)
	arena.Play(c, func(*netloop.Tick) arena.Control { return *in })
	return in
}

// game makes an arena with so many rocks.
func game(t *testing.T, rocks int) *netlooptest.World {
	t.Helper()
	g := arena.New()
	cfg := g.Config().(*arena.Config)
	cfg.Rocks, cfg.Pickups = rocks, 0
	return netlooptest.New(t, g)
}

// edit changes a client's ship on the server.
func edit(w *netlooptest.World, c *client.Client, fn func(t *netloop.Tick, s *arena.Ship)) {
	w.Tick(func(t *netloop.Tick) {
		for o := range arena.Ships.Owned(t, c.ID()) {
			fn(t, o.Edit(t))
		}
	})
}

// ship returns a client's ship in the view of another client, or of its own.
func ship(w *netlooptest.World, sees, of *client.Client) (s arena.Ship) {
	w.Look(sees, func(t *netloop.Tick) {
		for o := range arena.Ships.Owned(t, of.ID()) {
			s = o.State()
		}
	})
	return s
}

func TestShipFliesWhereItIsSteered(t *testing.T) {
	w := game(t, 0)
	ann, bob := enter(w, "ann"), enter(w, "bob")
	edit(w, ann, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Heading = 1000, 1000, 0 })
	in := hold(ann)
	in.Thrust = true
	w.Step(60)
	in.Thrust = false
	w.Step(20)
	seen := ship(w, bob, ann)
	if seen.Name != "ann" || seen.X < 1050 || math.Abs(float64(seen.Y-1000)) > 1 {
		t.Errorf("after a second of thrust to the right bob has %+v", seen)
	}
	if seen.Thrust {
		t.Error("the thrust has not ended")
	}
}

// The own ship is drawn at the position of its player's inputs, which the server reaches later. A
// move over an edge of the arena is not interpolated.
func TestArenaHasNoEdges(t *testing.T) {
	w := game(t, 0)
	ann, bob := enter(w, "ann"), enter(w, "bob")
	hold(ann)
	hold(bob)
	edit(w, ann, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.VX, s.Leaps = arena.Size-40, 400, s.Leaps+1 })
	for range 60 {
		w.Step(1)
		for _, c := range []*client.Client{ann, bob} {
			w.Look(c, func(t2 *netloop.Tick) {
				for o := range arena.Ships.Owned(t2, ann.ID()) {
					if s, ok := client.View(c, o); ok && s.X > 500 && s.X < arena.Size-50 && s.VX > 0 {
						t.Errorf("the ship is drawn at %v, on its way over the edge", s.X)
					}
				}
			})
		}
	}
	if s := ship(w, ann, ann); s.X > 400 {
		t.Errorf("a ship beyond the right edge is at %v", s.X)
	}
}

func TestShotsHitAndScore(t *testing.T) {
	w := game(t, 0)
	ann, bob := enter(w, "ann"), enter(w, "bob")
	in := hold(ann)
	hold(bob)
	w.Step(60 * 3) // Until the shields are down.
	edit(w, ann, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Heading = 1000, 1000, 0 })
	edit(w, bob, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Hull = 1200, 1000, 2 })
	w.Step(30)
	told := map[netloop.ClientID]int{}
	for _, c := range []*client.Client{ann, bob} {
		client.Handle(c, arena.Struck, func(*netloop.Tick, arena.Strike) { told[c.ID()]++ })
	}
	for range 2 {
		in.Fire = true
		w.Step(1)
		in.Fire = false
		w.Step(59)
	}
	if s := ship(w, bob, ann); s.Score != 3 {
		t.Errorf("at bob, ann's score is %d", s.Score)
	}
	if s := ship(w, ann, bob); s.Hull != 3 || s.Score != -1 {
		t.Errorf("at ann, bob's ship is %+v", s)
	}
	if told[ann.ID()] != 2 || told[bob.ID()] != 2 {
		t.Errorf("they got %v hits, by id", told)
	}
}

// A falling ship still acts: the player's inputs count until the ship has fallen and respawns.
func TestAFallingShipStillFires(t *testing.T) {
	w := game(t, 0)
	ann, bob := enter(w, "ann"), enter(w, "bob")
	first, second := hold(ann), hold(bob)
	w.Step(60 * 3) // Until the shields are down.
	edit(w, ann, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Heading = 1000, 1000, 0 })
	edit(w, bob, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Heading, s.Hull = 1200, 1000, math.Pi, 1 })
	w.Step(30)
	first.Fire = true
	w.Step(1)
	first.Fire = false
	w.Until(60, func() bool { return ship(w, ann, bob).Hull == 0 })
	second.Fire = true
	w.Step(1)
	second.Fire = false
	w.Step(60)
	if a, b := ship(w, bob, ann), ship(w, ann, bob); a.Hull != 2 || b.Hull != 3 || b.Score != -1 {
		t.Errorf("ann's ship is %+v, and bob's fallen one is %+v", a, b)
	}
}

// A shot passes through no object: of two ships and a rock in a line it strikes the first.
func TestShotsHitTheFirstObject(t *testing.T) {
	w := game(t, 1)
	players := []*client.Client{enter(w, "ann"), enter(w, "bob"), enter(w, "cid")}
	w.Step(60 * 3) // Until the shields are down.
	for _, rock := range []float32{50, 150, 250, 2000} {
		w.Tick(func(tick *netloop.Tick) {
			for o := range arena.Rocks.All(tick) {
				r := o.Edit(tick)
				r.X, r.Y, r.VX, r.VY = rock, 100, 0, 0
			}
		})
		for i, c := range players { // At 0, 100 and 200, and 4 beside the line.
			edit(w, c, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Hull = float32(i)*100, 104, 3 })
		}
		struck := netloop.ClientID(0)
		w.Tick(func(tick *netloop.Tick) {
			shot, now := arena.Shot{X: 0, Y: 100}, netloop.Moment{}
			if o := shot.Strikes(tick, players[0].ID(), arena.At(tick, arena.Rocks, now), arena.At(tick, arena.Ships, now)); o != nil {
				struck = o.Owner()
			}
		})
		want := players[1].ID()
		if rock == 50 {
			want = 0
		}
		if struck != want {
			t.Errorf("with a rock at %v the shot strikes the ship of client %d, want %d", rock, struck, want)
		}
	}
}

// A shot appears in the frame of its input, and once, at any latency of the server.
func TestAShotAppearsInTheFrameOfItsInput(t *testing.T) {
	w := game(t, 0)
	ann := enter(w, "ann")
	in := hold(ann)
	spawned, gone := 0, 0
	client.Watch(ann, arena.Shots, client.Watcher[arena.Shot]{
		Spawn:   func(*netloop.Tick, *netloop.Object[arena.Shot]) { spawned++ },
		Despawn: func(*netloop.Tick, *netloop.Object[arena.Shot], arena.Shot) { gone++ },
	})
	w.Step(60)
	in.Fire = true
	w.Step(1)
	in.Fire = false
	if spawned != 1 {
		t.Fatalf("%d shots appear in the frame of the input", spawned)
	}
	w.Step(60)
	if st := ann.Stats().Prediction; spawned != 1 || gone != 1 || st.SpawnsMatched != 1 {
		t.Errorf("%d shots spawned, %d despawned; %+v", spawned, gone, st)
	}
}

func TestShotsAreBounded(t *testing.T) {
	w := game(t, 0)
	for range 8 {
		hold(enter(w, "")).Fire = true
	}
	most, ever := 0, map[netloop.Ref[arena.Shot]]bool{}
	w.Step(60)
	for range 60 * 2 {
		w.Step(1)
		w.Tick(func(t *netloop.Tick) {
			all := slices.Collect(arena.Shots.All(t))
			most = max(most, len(all))
			for _, o := range all {
				ever[o.Ref()] = true
			}
		})
	}
	// Each fires one per 250 ms, which is visible for less.
	if most > 8 || len(ever) < 8*6 || len(ever) > 8*9 {
		t.Errorf("in two seconds 8 ships fired %d shots, of which at most %d were visible", len(ever), most)
	}
}

func TestPickupsAreCollected(t *testing.T) {
	w := game(t, 0)
	ann := enter(w, "ann")
	w.Tick(func(t *netloop.Tick) {
		arena.Pickups.Spawn(t, arena.Pickup{X: 500, Y: 500, Kind: arena.Repair})
		arena.Pickups.Spawn(t, arena.Pickup{X: 500, Y: 500, Kind: arena.Shield})
		arena.Pickups.Spawn(t, arena.Pickup{X: 900, Y: 900})
	})
	edit(w, ann, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Hull = 510, 500, 1 })
	w.Step(20)
	if s := ship(w, ann, ann); s.Hull != 2 || s.Score != 2 {
		t.Errorf("ann's ship is %+v", s)
	}
	w.Look(ann, func(tick *netloop.Tick) {
		if n := len(slices.Collect(arena.Pickups.All(tick))); n != 1 {
			t.Errorf("ann sees %d pickups", n)
		}
	})
}

func TestPickupsRespawn(t *testing.T) {
	w := netlooptest.New(t, arena.New())
	w.Step(60 * 20)
	w.Tick(func(tick *netloop.Tick) {
		if n := len(slices.Collect(arena.Pickups.All(tick))); n != 12 {
			t.Errorf("after 20 s there are %d pickups", n)
		}
	})
}

func TestRocksAllMoveEveryTick(t *testing.T) {
	w := netlooptest.New(t, arena.New())
	ann := w.Join("", arena.JoinParams{}, netlooptest.Link{})
	w.Until(60, func() bool { return ann.State().Phase == client.Playing })
	w.Step(30)
	moved := map[netloop.Ref[arena.Rock]]bool{}
	client.Watch(ann, arena.Rocks, client.Watcher[arena.Rock]{
		Change: func(_ *netloop.Tick, o *netloop.Object[arena.Rock], _ arena.Rock) { moved[o.Ref()] = true },
	})
	w.Step(4)
	if len(moved) < 95 { // The slowest move by less than an eighth in four ticks.
		t.Errorf("in four ticks %d of 100 rocks moved", len(moved))
	}
}

func TestChatReachesEveryoneInOrder(t *testing.T) {
	w := game(t, 0)
	ann, bob := enter(w, "ann"), enter(w, "bob")
	var heard []string
	client.Handle(bob, arena.Said, func(_ *netloop.Tick, m *arenav1.Said) { heard = append(heard, m.GetName()+": "+m.GetText()) })
	for _, line := range []string{"hello", "is anybody there?", strings.Repeat("x", 121), "", "bye"} {
		client.Send(ann, arena.Say, &arenav1.Say{Text: line})
	}
	w.Step(60)
	if got := strings.Join(heard, "|"); got != "ann: hello|ann: is anybody there?|ann: bye" {
		t.Errorf("bob heard %q", got)
	}
}

func TestStandingsListTheBestPlayers(t *testing.T) {
	w := game(t, 0)
	ann, bob := enter(w, "ann"), enter(w, "bob")
	edit(w, bob, func(_ *netloop.Tick, s *arena.Ship) { s.Score = 7 })
	var rows []arena.Standing
	client.Call(ann, arena.Standings, arena.StandingsQuery{Top: 1}, func(_ *netloop.Tick, r arena.StandingsReply, err error) {
		if err != nil {
			t.Error(err)
		}
		rows = r.Rows
	})
	w.Until(60, func() bool { return rows != nil })
	if !slices.Equal(rows, []arena.Standing{{Name: "bob", Score: 7}}) {
		t.Errorf("the best are %+v", rows)
	}
}

func TestBadConfigurationNamesTheKey(t *testing.T) {
	g := arena.New()
	g.Config().(*arena.Config).Rocks = -1
	if _, err := netloop.New(netloop.Config{}, g); err == nil || !strings.Contains(err.Error(), "arena.rocks") {
		t.Errorf("New: %v", err)
	}
}

// TestALongNameIsCutBetweenCharacters checks that a player's name is cut to the limit of a ship's
// name, and remains valid text.
func TestALongNameIsCutBetweenCharacters(t *testing.T) {
	w := netlooptest.New(t, arena.New())
	c := w.Join("", arena.JoinParams{Name: "fifteen bytes..ü and more"}, netlooptest.Link{})
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
	w.Tick(func(tick *netloop.Tick) {
		for ship := range arena.Ships.All(tick) {
			if name := ship.State().Name; name != "fifteen bytes.." {
				t.Errorf("the ship is called %q", name)
			}
		}
	})
}

// TestASpectatorGetsAShipByEnter checks that a watching client sees the others, has no ship,
// steers none and cannot chat. With Enter it gets one ship, under the given name, and no second
// one.
func TestASpectatorGetsAShipByEnter(t *testing.T) {
	w := game(t, 0)
	enter(w, "ann")
	eve := w.Join("", arena.JoinParams{Name: "unused", Watch: true}, link)
	in := hold(eve)
	in.Thrust = true
	w.Until(300, func() bool { return eve.State().Phase == client.Playing })
	names := func() (all []string) {
		w.Look(eve, func(t *netloop.Tick) {
			for o := range arena.Ships.All(t) {
				all = append(all, o.State().Name)
			}
		})
		return all
	}
	heard := 0
	client.Handle(eve, arena.Said, func(*netloop.Tick, *arenav1.Said) { heard++ })
	client.Send(eve, arena.Say, &arenav1.Say{Text: "hello"})
	w.Step(60)
	if got := names(); !slices.Equal(got, []string{"ann"}) || heard != 0 {
		t.Errorf("a watching client has %v, and sent %d lines", got, heard)
	}
	client.Send(eve, arena.Enter, arena.Entry{Name: "eve"})
	client.Send(eve, arena.Enter, arena.Entry{Name: "again"})
	w.Step(60)
	if got := names(); !slices.Equal(got, []string{"ann", "eve"}) {
		t.Errorf("after Enter the ships are %v", got)
	}
	client.Send(eve, arena.Say, &arenav1.Say{Text: "hello"})
	w.Step(60)
	if s := ship(w, eve, eve); s.VX == 0 && s.VY == 0 || heard != 1 {
		t.Errorf("its ship is %+v, and it sent %d lines", s, heard)
	}
}
