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

// ship returns a client's ship as another one, or the same, sees it.
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
	for range 30 { // Steering is unreliable: players repeat it.
		client.Send(ann, arena.SteerShip, arena.Steer{Thrust: true})
		w.Step(2)
	}
	for range 10 {
		client.Send(ann, arena.SteerShip, arena.Steer{})
		w.Step(2)
	}
	seen := ship(w, bob, ann)
	if seen.Name != "ann" || seen.X < 1050 || math.Abs(float64(seen.Y-1000)) > 1 {
		t.Errorf("after a second of thrust to the right bob sees %+v", seen)
	}
	if seen.Thrust {
		t.Error("the thrust is still on")
	}
}

func TestArenaHasNoEdges(t *testing.T) {
	w := game(t, 0)
	ann := enter(w, "ann")
	edit(w, ann, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.VX = arena.Size-10, 400 })
	w.Step(30)
	if s := ship(w, ann, ann); s.X > 400 {
		t.Errorf("what leaves on the right is at %v", s.X)
	}
}

func TestShotsHitAndScore(t *testing.T) {
	w := game(t, 0)
	ann, bob := enter(w, "ann"), enter(w, "bob")
	w.Step(60 * 3) // Until the shields are down.
	edit(w, ann, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Heading = 1000, 1000, 0 })
	edit(w, bob, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Hull = 1200, 1000, 2 })
	for range 2 {
		client.Send(ann, arena.FireShot, arena.Fire{})
		w.Step(60)
	}
	if s := ship(w, bob, ann); s.Score != 3 {
		t.Errorf("bob sees that ann has scored %d", s.Score)
	}
	if s := ship(w, ann, bob); s.Hull != 3 || s.Score != -1 {
		t.Errorf("ann sees that bob is %+v", s)
	}
}

func TestShotsFlyAlikeOnBothSides(t *testing.T) {
	w := game(t, 0)
	ann := enter(w, "ann")
	w.Step(120) // Until the clocks agree.
	edit(w, ann, func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.VX, s.VY, s.Heading = 1000, 1000, 0, 0, 0 })
	client.Send(ann, arena.FireShot, arena.Fire{})
	w.Step(40)
	position := func(t *netloop.Tick) (x float32) {
		for o := range arena.Shots.All(t) {
			x, _ = o.State().Position(t)
		}
		return x
	}
	var here, there float32
	w.Tick(func(t *netloop.Tick) { here = position(t) })
	w.Look(ann, func(t *netloop.Tick) { there = position(t) })
	if here < 1100 || there < 1100 || math.Abs(float64(here-there)) > 30 { // 50 ms of flight.
		t.Errorf("the shot is at %v on the server, at %v on the client", here, there)
	}
}

func TestShotsAreBounded(t *testing.T) {
	w := game(t, 0)
	var players []*client.Client
	for range 20 {
		players = append(players, enter(w, ""))
	}
	most := 0
	for range 60 * 4 {
		for _, c := range players {
			client.Send(c, arena.FireShot, arena.Fire{})
		}
		w.Step(1)
		w.Tick(func(t *netloop.Tick) { most = max(most, len(slices.Collect(arena.Shots.All(t)))) })
	}
	if most != 50 {
		t.Errorf("at most %d shots were in the air", most)
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

func TestPickupsComeByThemselves(t *testing.T) {
	w := netlooptest.New(t, arena.New())
	w.Step(60 * 20)
	w.Tick(func(tick *netloop.Tick) {
		if n := len(slices.Collect(arena.Pickups.All(tick))); n != 12 {
			t.Errorf("after 20 s %d pickups wait", n)
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

func TestStandingsNameTheBest(t *testing.T) {
	w := game(t, 0)
	ann, bob := enter(w, "ann"), enter(w, "bob")
	edit(w, bob, func(_ *netloop.Tick, s *arena.Ship) { s.Score = 7 })
	var rows []arena.Standing
	client.Ask(ann, arena.Standings, arena.StandingsQuery{Top: 1}, func(_ *netloop.Tick, r arena.StandingsReply, err error) {
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

// TestALongNameIsCutBetweenCharacters: what a player calls itself is cut to what a ship's name
// may have, and stays a text.
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
