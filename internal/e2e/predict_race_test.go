package e2e_test

import (
	"math"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// playing is a link with usual delay, jitter and loss; farAway has a long delay.
var (
	playing = netlooptest.Link{Delay: 75 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.05}
	farAway = netlooptest.Link{Delay: 125 * time.Millisecond, Jitter: 10 * time.Millisecond}
)

// steeringClient is a client with inputs set by the test.
type steeringClient struct {
	*client.Client
	in rudder
}

// steeringClient joins a client, and waits until its first inputs have run.
func (r *race) steeringClient(l netlooptest.Link, o ...client.PredictOption) *steeringClient {
	p := &steeringClient{Client: r.Join("", nil, l, r.frames...)}
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

// touch changes a client's racer on the server.
func (r *race) touch(p *steeringClient, fn func(*racer)) {
	r.Tick(func(t *netloop.Tick) { fn(r.mine[p.ID()].Edit(t)) })
}

// view returns the client's own racer as drawn and as predicted.
func (r *race) view(t *testing.T, p *steeringClient) (drawn, predicted racer) {
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

// server returns the server's state of the racer.
func (r *race) server(p *steeringClient) (s racer) {
	r.Tick(func(*netloop.Tick) { s = r.mine[p.ID()].State() })
	return s
}

// distance returns the distance between two racers.
func distance(a, b racer) float64 { return math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)) }

// An input changes the drawn state in its own frame, at any round trip, while the confirmed state
// is unchanged.
func TestOwnObjectsReactInTheSameFrame(t *testing.T) {
	r := newRace(t)
	p := r.steeringClient(farAway)
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

// A ship without changes, at rest or stunned, is in no packet. Over a link with loss it is
// neither reset to an earlier state nor wrong for long.
func TestUnsentUnchangedObjectsArePredictedCorrectly(t *testing.T) {
	r := newRace(t)
	p := r.steeringClient(playing)
	wrong := p.Stats().Prediction.Mispredicted
	p.in = rudder{Thrust: 50} // It starts, moves and stops without a change by the server.
	r.Step(120)
	p.in = rudder{}
	r.Step(900)
	if s := p.Stats(); s.Prediction.Mispredicted-wrong > s.InputsMissed {
		t.Errorf("without a change by the server %+v, %d inputs missed", s.Prediction, s.InputsMissed)
	}

	// It turns sometimes, each time in one step: lost packets must not undo the turn.
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

	// The server stuns it and sends that: one misprediction each time.
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

// The first packet with a moving ship corrects its prediction, even if so many packets are lost
// that no whole snapshot arrives.
func TestTheFirstPacketWithAServerChangeCorrectsThePrediction(t *testing.T) {
	r := newRace(t)
	p := r.steeringClient(netlooptest.Link{Delay: 75 * time.Millisecond, Loss: 0.4})
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
	if waited > 90 { // Five ticks are the delay; any packet in between may be lost.
		t.Errorf("ten pushes arrived after %d ticks in all", waited)
	}
}

// A server that only holds a ship sends no record of it: the client predicts motion, and is
// corrected by a snapshot without a record.
func TestASnapshotWithoutARecordCorrectsThePrediction(t *testing.T) {
	r := newRace(t)
	p := r.steeringClient(playing)
	r.Step(10)
	r.hold = true
	place := r.server(p)
	p.in = rudder{Thrust: 100}
	r.Step(20)
	if _, predicted := r.view(t, p); distance(predicted, place) == 0 {
		t.Error("the client predicted no motion")
	}
	p.in = rudder{}
	for range 60 {
		r.Step(1)
	}
	if _, predicted := r.view(t, p); predicted != place {
		t.Errorf("a second later it is predicted at %+v, the server has it at %+v", predicted, place)
	}
}

// A correction changes the predicted state at once, and the drawn state linearly.
func TestCorrectionsAreSmoothedLinearly(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      []client.PredictOption
		jumps  bool
		change func(*racer)
	}{
		{"100 ms", nil, false, func(s *racer) { s.X += 5; s.Angle += 6 }},
		{"at once", []client.PredictOption{client.Smoothing(0)}, true, func(s *racer) { s.X += 5 }},
		{"too far", []client.PredictOption{client.Snap(func(was, is *racer) bool { return distance(*was, *is) > 4 })}, true, func(s *racer) { s.X += 5 }},
		{"a teleport", nil, true, func(s *racer) { s.X += 5; s.Jumps++ }},
	} {
		r := newRace(t)
		p := r.steeringClient(netlooptest.Link{Delay: 30 * time.Millisecond}, c.o...)
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
			t.Errorf("%s: drawn steps %v, state step %v", c.name, steps, wrong)
		}
		// six frames are 100 ms
		if want := 5.0 / 6; !c.jumps && (most > want+0.1 || most < want-0.1) {
			t.Errorf("%s: the largest drawn step is %v, want %v", c.name, most, want)
		}
		if got, _ := r.view(t, p); got != r.server(p) {
			t.Errorf("%s: drawn at %+v in the end, the server has it at %+v", c.name, got, r.server(p))
		}
	}
}

// At 144 frames per second a ship is drawn evenly, though it is predicted 60 times.
func TestPredictedMotionIsEvenAtAnyFrameRate(t *testing.T) {
	r := newRace(t)
	r.frames = []netlooptest.ClientOption{netlooptest.FPS(144)}
	p := r.steeringClient(netlooptest.Link{Delay: 30 * time.Millisecond})
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
		t.Errorf("%d frames: steps from %v to %v", len(xs), least, most)
	}
}
