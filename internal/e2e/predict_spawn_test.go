package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// shootingClient is a client that fires, and the watcher calls for its shots.
type shootingClient struct {
	*steeringClient
	came, went []*netloop.Object[shot]
}

func (r *race) shootingClient(l netlooptest.Link) *shootingClient {
	g := &shootingClient{steeringClient: r.steeringClient(l)}
	client.Watch(g.Client, shots, client.Watcher[shot]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[shot]) { g.came = append(g.came, o) },
		Despawn: func(_ *netloop.Tick, o *netloop.Object[shot], _ shot) { g.went = append(g.went, o) },
	})
	return g
}

// fire sets Fire for one step.
func (r *race) fire(g *shootingClient) {
	g.in.Fire = true
	r.Step(1)
	g.in.Fire = false
}

// spawnKeys lists the shots of one side by their spawn keys.
func spawnKeys(t *netloop.Tick) (all []netloop.SpawnKey) {
	for o := range shots.All(t) {
		all = append(all, o.State().Born)
	}
	slices.SortFunc(all, func(a, b netloop.SpawnKey) int { return int(a.Step) - int(b.Step) })
	return all
}

// A shot appears in the frame of its input, and continues evenly when the server's object
// arrives: it is one object for the game.
func TestAPredictedSpawnAppearsInTheFrameOfItsInput(t *testing.T) {
	r := newRace(t)
	g := r.shootingClient(farAway)
	r.fire(g)
	if len(g.came) != 1 || !g.came[0].Ref().IsZero() || g.came[0].Owner() != g.ID() {
		t.Fatalf("%d shots in the frame", len(g.came))
	}
	one := g.came[0]
	var xs []float64
	for range 60 {
		s, shown := client.View(g.Client, one)
		if !shown {
			t.Fatal("it is not drawn")
		}
		xs = append(xs, float64(s.X))
		r.Step(1)
	}
	for i := range xs[1:] {
		if d := xs[i+1] - xs[i]; math.Abs(d-1) > 0.05 {
			t.Errorf("frame %d: it moves %v", i, d)
		}
	}
	s := g.Stats().Prediction
	if len(g.came) != 1 || len(g.went) != 0 || s.SpawnsMatched != 1 || s.SpawnsWithdrawn != 0 || s.Mispredicted != 0 {
		t.Errorf("%d spawned, %d despawned, %+v", len(g.came), len(g.went), s)
	}
	var there *netloop.Object[shot]
	r.Look(g.Client, func(t *netloop.Tick) { there, _ = one.Ref().Get(t) })
	if there != one || one.State().X == 0 {
		t.Errorf("its Ref finds %v, with the state %+v", there, one.State())
	}
}

// A replayed step spawns the shot from the ship's corrected state: the ship's correction applies
// to the shot too, and the server's object causes no misprediction.
func TestAReplayedStepSpawnsFromTheCorrectedState(t *testing.T) {
	r := newRace(t)
	g := r.shootingClient(farAway)
	before := g.Stats().Prediction.Mispredicted
	r.touch(g.steeringClient, func(s *racer) { s.X += 10 })
	r.fire(g)
	r.Step(60)
	if s := g.Stats().Prediction; s.Mispredicted != before+1 || s.SpawnsMatched != 1 || len(g.came) != 1 || len(g.went) != 0 {
		t.Errorf("%+v, %d spawned, %d despawned", s, len(g.came), len(g.went))
	}
}

// A spawn that the server does not make is removed as soon as that is certain.
func TestAPredictedSpawnThatTheServerRefusesIsRemoved(t *testing.T) {
	for _, l := range []netlooptest.Link{{}, farAway, playing} {
		r := newRace(t)
		g := r.shootingClient(l)
		r.deny = true
		r.fire(g)
		if len(g.came) != 1 || len(g.went) != 0 {
			t.Fatalf("%v: %d spawned, %d despawned", l.Delay, len(g.came), len(g.went))
		}
		r.Step(64)
		s := g.Stats().Prediction
		_, shown := client.View(g.Client, g.came[0])
		if len(g.went) != 1 || g.went[0] != g.came[0] || g.came[0].Alive() || shown || s.SpawnsWithdrawn != 1 || s.SpawnsMatched != 0 {
			t.Errorf("%v: %d went, alive %v, shown %v, %+v", l.Delay, len(g.went), g.came[0].Alive(), shown, s)
		}
		r.Look(g.Client, func(tick *netloop.Tick) {
			if n := shots.Len(tick); n != 0 {
				t.Errorf("%v: %d are left", l.Delay, n)
			}
		})
	}
}

// Despite lost packets and corrections, the client finally has each of the server's shots once,
// and no other.
func TestPredictedSpawnsExistOnceDespiteLossAndReplays(t *testing.T) {
	seeds.OneGoroutine(t)
	for seed := range uint64(3) {
		r := newRace(t, netlooptest.Seed(seed+1))
		g := r.shootingClient(playing)
		for i := range 60 {
			r.fire(g)
			switch i % 6 {
			case 2:
				r.touch(g.steeringClient, func(s *racer) { s.VX += 3 })
			case 4:
				r.touch(g.steeringClient, func(s *racer) { s.Stunned = 6 })
			}
			r.Step(6)
		}
		r.Step(100)
		var server, mine []netloop.SpawnKey
		r.Tick(func(t *netloop.Tick) { server = spawnKeys(t) })
		r.Look(g.Client, func(t *netloop.Tick) { mine = spawnKeys(t) })
		s := g.Stats().Prediction
		if !slices.Equal(server, mine) || len(server) < 30 {
			t.Errorf("seed %d: the server has %v, the client %v", seed+1, server, mine)
		}
		if len(g.came)-len(g.went) != len(server) || s.SpawnsMatched < 30 || s.Replayed == 0 || s.SpawnsWithdrawn != uint64(len(g.went)) {
			t.Errorf("seed %d: %d spawned, %d despawned, of %d; %+v", seed+1, len(g.came), len(g.went), len(server), s)
		}
	}
}

// Predicted spawns without a server object end with the client's seat.
func TestPredictedSpawnsEndWithTheLostSeat(t *testing.T) {
	r := newRace(t)
	g := r.shootingClient(farAway)
	r.fire(g)
	r.mine = map[netloop.ClientID]*netloop.Object[racer]{}
	r.Restart(r.game)
	r.Step(300)
	if len(g.came) != 1 || len(g.went) != 1 {
		t.Errorf("%d spawned, %d despawned", len(g.came), len(g.went))
	}
	before := g.Stats().Prediction
	drawn, _ := r.view(t, g.steeringClient)
	g.in.Thrust = 100
	r.Step(30)
	after, _ := r.view(t, g.steeringClient)
	if s := g.Stats().Prediction; after.X <= drawn.X || s.Mispredicted != before.Mispredicted {
		t.Errorf("the new racer moves from %v to %v, %+v", drawn.X, after.X, s)
	}
}

// A client's objects are predicted while it owns them, also over a break of the connection.
func TestOnlyOwnObjectsArePredicted(t *testing.T) {
	r := newRace(t)
	p := r.steeringClient(netlooptest.Link{Delay: 40 * time.Millisecond})
	o := r.own(p.Client)
	own := func(want bool) {
		t.Helper()
		if _, ok := client.PredictedState(p.Client, o); ok != want {
			t.Errorf("predicted %v, want %v", ok, want)
		}
		drawn, shown := client.View(p.Client, o)
		if want && drawn != r.server(p) || shown != o.Alive() {
			t.Errorf("drawn %v at %+v, the server has it at %+v", shown, drawn, r.server(p))
		}
	}
	own(true)
	var gone []bool
	client.Watch(p.Client, racers, client.Watcher[racer]{Despawn: func(_ *netloop.Tick, o *netloop.Object[racer], _ racer) {
		_, shown := client.View(p.Client, o)
		gone = append(gone, shown)
	}})
	give := func(to netloop.ClientID) {
		r.Tick(func(t *netloop.Tick) { r.mine[p.ID()].SetOwner(t, to) })
		r.Step(20)
	}
	give(0)
	own(false)
	give(p.ID())
	own(true)

	r.Break(p.Client)
	p.in.Thrust = 50
	r.Step(60)
	p.in = rudder{}
	r.Step(400)
	own(true)
	if p.Stats().Resumes != 1 {
		t.Errorf("%d resumes", p.Stats().Resumes)
	}

	r.Tick(func(t *netloop.Tick) { r.mine[p.ID()].Despawn(t) })
	r.Step(20)
	own(false)
	if !slices.Equal(gone, []bool{false}) {
		t.Errorf("drawn as it despawns: %v", gone)
	}
}

// A client step that computes another state than the server's is reported with its fields.
func TestMispredictionsAreCountedByField(t *testing.T) {
	r := newRace(t)
	c := r.Join("", nil, netlooptest.Link{Delay: 20 * time.Millisecond})
	client.Inputs(c, helm, func(*netloop.Tick) rudder { return rudder{Thrust: 20} })
	client.Predict(c, racers, helm, func(s *racer, t *netloop.Tick, in rudder) {
		s.steer(t, in)
		s.Angle += 0.01
	})
	r.Step(100)
	wrong := client.Mispredictions(c, racers)
	if !slices.ContainsFunc(wrong, func(m client.Misprediction) bool { return m.Field == "Angle" && m.Count > 20 }) {
		t.Errorf("%v", wrong)
	}
	if slices.ContainsFunc(wrong, func(m client.Misprediction) bool { return m.Count == 0 }) {
		t.Errorf("fields that were never wrong are reported: %v", wrong)
	}
	if all := c.Mispredictions(); !slices.Equal(all, wrong) || all[0].Class != racers.Name() {
		t.Errorf("of all classes %v", all)
	}
	if s := c.Stats(); s.BytesIn < 10*s.Snapshots || s.BytesOut < s.InputBytes || s.InputBytes == 0 {
		t.Errorf("%d bytes of %d snapshots in, %d out with %d of inputs", s.BytesIn, s.Snapshots, s.BytesOut, s.InputBytes)
	}
	if none := client.Mispredictions(c, shots); none != nil {
		t.Errorf("of a class that is not predicted %v", none)
	}
}

// A panic of a step function skips that object's step and has no other effect.
func TestAStepThatPanicsIsIsolated(t *testing.T) {
	r := newRace(t, netlooptest.AllowPanics())
	c := r.Join("", nil, perfect)
	client.Inputs(c, helm, func(*netloop.Tick) rudder { return rudder{} })
	client.Predict(c, racers, helm, func(s *racer, t *netloop.Tick, in rudder) {
		if t.FixedStep() == 50 {
			panic("a bad step")
		}
	})
	r.Step(100)
	if s := c.Stats(); s.Panics == 0 || s.Inputs < 50 {
		t.Errorf("%d panics, %d inputs", s.Panics, s.Inputs)
	}
}

// An object of Spawn is matched once. A game that gives two objects one spawn key, which is a
// bug, shows its players one shot more than they fired.
func TestASpawnKeyThatTheServerUsesTwiceIsMatchedOnce(t *testing.T) {
	r := newRace(t)
	g := r.shootingClient(farAway)
	r.duplicates = 1
	for range 2 {
		r.fire(g)
		r.Step(60)
	}
	r.deny = true
	r.fire(g)
	r.Step(60)
	if s := g.Stats().Prediction; s.SpawnsMatched != 2 || s.SpawnsWithdrawn != 1 || len(g.came) != 5 || len(g.went) != 1 {
		t.Errorf("%+v, %d spawned, %d despawned", s, len(g.came), len(g.went))
	}
}

// Misuse of a function panics with the remedy.
func TestMisusedPredictPanicsWithTheRemedy(t *testing.T) {
	r := newRace(t)
	c := r.Join("", nil, perfect)
	plain := netloop.NewClass[racer](netloop.NewSchema("elsewhere", 1, 0), "racer")
	step := func(*racer, *netloop.Tick, rudder) {}
	refuses := func(want string, fn func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if got, _ := recover().(string); !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}()
		fn()
	}
	refuses("another schema", func() { client.Predict(c, plain, helm, step) })
	refuses("call Inputs before", func() { client.Predict(c, racers, helm, step) })
	client.Inputs(c, helm, func(*netloop.Tick) rudder { return rudder{} })
	refuses("call Predict for it", func() { client.Spawn(c, shots, shot{}) })
	client.Predict(c, racers, helm, step)
	refuses("called twice", func() { client.Predict(c, racers, helm, step) })
	refuses("needs a field of the type netloop.SpawnKey", func() { client.Spawn(c, racers, racer{}) })
	client.Predict(c, shots, helm, func(*shot, *netloop.Tick, rudder) {})
	refuses("works in FixedUpdate only", func() { client.Spawn(c, shots, shot{}) })
	other := netlooptest.New(t, game{schema: predictedSchema}).Join("", nil, perfect)
	refuses("not declared as predicted", func() { client.Predict(other, plainDrifters, helm, func(*drifter, *netloop.Tick, rudder) {}) })
}

// A recording replays that has a predicted class with a rounded state and shots with spawn keys.
func TestARunWithPredictedObjectsReplays(t *testing.T) {
	var file bytes.Buffer
	r := newRace(t, netlooptest.Record(&file))
	c := r.Join("", nil, playing)
	client.Inputs(c, helm, func(t *netloop.Tick) rudder {
		in := racerAt(t.FixedStep())
		in.Fire = t.FixedStep()%8 == 0
		return in
	})
	r.Step(200)
	r.mine = map[netloop.ClientID]*netloop.Object[racer]{}
	p, err := netloop.NewReplay(netloop.Config{}, r.game, &file)
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for ; err == nil; ticks++ {
		_, err = p.Step() // Compares the digest of all sent bytes.
	}
	if !errors.Is(err, io.EOF) || ticks != 201 {
		t.Errorf("tick %d: %v", ticks, err)
	}
}
