package e2e_test

import (
	"math"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// playing is a link that people play over, and farAway one of the other end of the world.
var (
	playing = netlooptest.Link{Delay: 75 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.05}
	farAway = netlooptest.Link{Delay: 125 * time.Millisecond, Jitter: 10 * time.Millisecond}
)

// helmsman is a client whose player does what the test says.
type helmsman struct {
	*client.Client
	in rudder
}

// helmsman lets a client in, and waits until its first inputs have come and been applied.
func (r *race) helmsman(l netlooptest.Link, o ...client.PredictOption) *helmsman {
	p := &helmsman{Client: r.Join("", nil, l, r.frames...)}
	client.Inputs(p.Client, helm, func(*netloop.Tick) rudder { return p.in })
	client.Predict(p.Client, racers, helm, func(s *racer, t *netloop.Tick, in rudder) {
		if s.steer(t, in) {
			client.Spawn(p.Client, shots, s.shot())
		}
	}, o...)
	client.Predict(p.Client, shots, helm, func(s *shot, t *netloop.Tick, _ rudder) { s.fly(t) })
	r.Step(200)
	return p
}

// touch changes a helmsman's racer on the server.
func (r *race) touch(p *helmsman, fn func(*racer)) {
	r.Tick(func(t *netloop.Tick) { fn(r.mine[p.ID()].Edit(t)) })
}

// view is the helmsman's racer as it is drawn, and as it is predicted.
func (r *race) view(t *testing.T, p *helmsman) (drawn, predicted racer) {
	t.Helper()
	o := r.own(p.Client)
	if o == nil {
		t.Fatal("the client has no racer")
	}
	drawn, shown := client.View(p.Client, o)
	predicted, ours := client.PredictedState(p.Client, o)
	if !shown || !ours {
		t.Fatalf("shown %v, predicted %v", shown, ours)
	}
	return drawn, predicted
}

// server is the racer that the server has.
func (r *race) server(p *helmsman) (s racer) {
	r.Tick(func(*netloop.Tick) { s = r.mine[p.ID()].State() })
	return s
}

// apart is how far two racers are from each other.
func apart(a, b racer) float64 { return math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)) }

// What the player does shows in the frame in which it is done, whatever the round trip, while the
// confirmed state goes on as it was.
func TestTheOwnShipReactsInTheSameFrame(t *testing.T) {
	r := newRace(t)
	p := r.helmsman(farAway)
	before, _ := r.view(t, p)
	p.in.Thrust = 100
	r.Step(1)
	after, predicted := r.view(t, p)
	if after.X <= before.X && predicted.X <= before.X {
		t.Errorf("drawn at %v and then at %v, predicted %v", before.X, after.X, predicted.X)
	}
	if confirmed := r.own(p.Client).State(); confirmed.VX != 0 {
		t.Errorf("the confirmed state is %+v", confirmed)
	}
	r.Step(40)
	if s := r.server(p); s.X <= before.X || p.Stats().Prediction.Replayed != 0 {
		t.Errorf("the server has it at %v; %+v", s.X, p.Stats().Prediction)
	}
}

// A ship that rests, or that the server stuns, is in no packet. Over a link that loses packets it
// is neither taken back to where it was, nor left wrong for long.
func TestAShipAtRestIsNeitherRewoundNorLeftWrong(t *testing.T) {
	r := newRace(t)
	p := r.helmsman(playing)
	wrong := p.Stats().Prediction.Mispredicted
	p.in = rudder{Thrust: 50} // It begins to move, goes, and stops: nobody touches it.
	r.Step(120)
	p.in = rudder{}
	r.Step(900)
	if s := p.Stats(); s.Prediction.Mispredicted-wrong > s.InputsMissed {
		t.Errorf("of a ship that nobody touched %+v, %d inputs missed", s.Prediction, s.InputsMissed)
	}

	// It turns now and then, each time in one step: packets that are lost must not turn it back.
	r.SetLink(p.Client, netlooptest.Link{Delay: 75 * time.Millisecond, Loss: 0.3})
	before := p.Stats()
	for range 60 {
		p.in = rudder{Turn: 100}
		r.Step(1)
		p.in = rudder{}
		r.Step(19)
	}
	after := p.Stats()
	wrong = after.Prediction.Mispredicted - before.Prediction.Mispredicted
	if late := after.Prediction.MispredictedLate - before.Prediction.MispredictedLate; wrong > late {
		t.Errorf("%d times wrong, %d inputs missed", wrong, after.InputsMissed-before.InputsMissed)
	}
	r.SetLink(p.Client, playing)

	// The server stuns it, which the client is told: it is wrong once, for each time.
	r.Step(60)
	wrong, missed := p.Stats().Prediction.Mispredicted, p.Stats().InputsMissed
	for range 5 {
		p.in = rudder{Thrust: 50}
		r.Step(20)
		r.touch(p, func(s *racer) { s.Stunned, s.VX, s.VY = 40, 0, 0 })
		r.Step(70)
	}
	s := p.Stats()
	if n := s.Prediction.Mispredicted - wrong - (s.InputsMissed - missed); n > 5 || n < 1 {
		t.Errorf("%d times wrong, want 5", n)
	}
}

// A ship in motion is put right by the first packet that has it, even where so many are lost that
// no snapshot proves anything else.
func TestAPushIsSeenWithTheFirstPacketThatHasIt(t *testing.T) {
	r := newRace(t)
	p := r.helmsman(netlooptest.Link{Delay: 75 * time.Millisecond, Loss: 0.4})
	waited := 0
	for range 10 {
		r.touch(p, func(s *racer) { s.VX = 60 })
		for _, predicted := r.view(t, p); predicted.VX < 10 && waited < 600; _, predicted = r.view(t, p) {
			r.Step(1)
			waited++
		}
		r.Step(20)
		r.touch(p, func(s *racer) { s.VX = 0 })
		r.Step(60)
	}
	if waited > 90 { // Five ticks are the way, and each packet in between may be lost.
		t.Errorf("ten pushes were seen after %d ticks in all", waited)
	}
}

// What the server does to a ship in secret makes no packet at all when it only holds it: the client
// sees itself go, and has to notice by a snapshot that says that there is nothing to say.
func TestAShipThatTheServerHoldsIsHeldByTheClientToo(t *testing.T) {
	r := newRace(t)
	p := r.helmsman(playing)
	r.Step(10)
	r.hold = true
	place := r.server(p)
	p.in = rudder{Thrust: 100}
	r.Step(20)
	if _, predicted := r.view(t, p); apart(predicted, place) == 0 {
		t.Error("the client did not go")
	}
	p.in = rudder{}
	for range 60 {
		r.Step(1)
	}
	if _, predicted := r.view(t, p); predicted != place {
		t.Errorf("a second later it is predicted at %+v, the server has it at %+v", predicted, place)
	}
}

// A correction is right in the state at once, and goes into the picture in a straight line.
func TestACorrectionIsDrawnInTime(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      []client.PredictOption
		jumps  bool
		change func(*racer)
	}{
		{"100 ms", nil, false, func(s *racer) { s.X += 5; s.Angle += 6 }},
		{"at once", []client.PredictOption{client.Smoothing(0)}, true, func(s *racer) { s.X += 5 }},
		{"too far", []client.PredictOption{client.Snap(func(was, is *racer) bool { return apart(*was, *is) > 4 })}, true, func(s *racer) { s.X += 5 }},
		{"a teleport", nil, true, func(s *racer) { s.X += 5; s.Jumps++ }},
	} {
		r := newRace(t)
		p := r.helmsman(netlooptest.Link{Delay: 30 * time.Millisecond}, c.o...)
		start, _ := r.view(t, p)
		r.touch(p, c.change)
		var steps []float64
		var wrong float64
		at := start
		for range 30 {
			r.Step(1)
			drawn, predicted := r.view(t, p)
			steps = append(steps, float64(drawn.X-at.X))
			wrong = max(wrong, math.Abs(float64(predicted.X-at.X)))
			at = drawn
		}
		most := 0.0
		for _, s := range steps {
			most = max(most, s)
		}
		if jumps := most > 4.9; jumps != c.jumps || wrong < 4.9 {
			t.Errorf("%s: the picture goes %v in a frame, the state %v", c.name, steps, wrong)
		}
		// six frames are 100 ms
		if want := 5.0 / 6; !c.jumps && (most > want+0.1 || most < want-0.1) {
			t.Errorf("%s: the picture goes %v in a frame, want %v", c.name, most, want)
		}
		if got, _ := r.view(t, p); got != r.server(p) {
			t.Errorf("%s: drawn at %+v in the end, the server has it at %+v", c.name, got, r.server(p))
		}
	}
}

// At 144 frames a second a ship moves evenly, though it is predicted 60 times.
func TestAPredictedShipMovesEvenlyAtAnyFrameRate(t *testing.T) {
	r := newRace(t)
	r.frames = []netlooptest.ClientOption{netlooptest.FPS(144)}
	p := r.helmsman(netlooptest.Link{Delay: 30 * time.Millisecond})
	r.touch(p, func(s *racer) { s.VX = 60 })
	r.Step(60)
	var xs []float64
	p.On(netloop.PostLateUpdate, "draw", func(t2 *netloop.Tick) {
		for o := range racers.Owned(t2, p.ID()) {
			s, _ := client.View(p.Client, o)
			xs = append(xs, float64(s.X))
		}
	})
	r.Step(30)
	least, most := math.Inf(1), 0.0
	for i := 2; i < len(xs); i++ {
		least, most = min(least, xs[i]-xs[i-1]), max(most, xs[i]-xs[i-1])
	}
	if len(xs) < 60 || least <= 0 || most > least*1.5 {
		t.Errorf("%d frames: it goes from %v to %v in one", len(xs), least, most)
	}
}
