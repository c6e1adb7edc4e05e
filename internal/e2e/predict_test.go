package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// The game of these tests: ships steered by their owners, which fire shots.
var (
	racing = netloop.NewSchema("racing", 1, 0)
	helm   = netloop.NewInput(racing, func(last rudder, missed int) rudder {
		last.Fire = false
		return last
	})
	racers = netloop.NewClass[racer](racing, "racer", netloop.Predicted())
	shots  = netloop.NewClass[shot](racing, "shot", netloop.Predicted())
)

type rudder struct {
	Turn, Thrust int8
	Fire         bool
}

type racer struct {
	X, Y    float32 `net:"quant=1/256"`
	VX, VY  float32 `net:"quant=1/256"`
	Angle   float32 `net:"quant=1/1024,lerp=angle"`
	Stunned uint16
	Jumps   uint8 `net:"teleport"`
}

type shot struct {
	X, Y   float32 `net:"quant=1/256"`
	VX, VY float32 `net:"quant=1/256"`
	Born   netloop.SpawnKey
}

// steer runs one step of a racer on either side. It reports whether the racer fires.
func (s *racer) steer(t *netloop.Tick, in rudder) (fires bool) {
	dt := float32(t.Delta().Seconds())
	if s.Stunned > 0 {
		s.Stunned--
		return false
	}
	s.Angle += float32(in.Turn) * dt / 10
	s.VX += float32(in.Thrust) * dt * (1 - s.Angle*s.Angle/2)
	s.VY += float32(in.Thrust) * dt * s.Angle
	s.VX, s.VY = s.VX*0.99, s.VY*0.99
	if in.Thrust == 0 && s.VX*s.VX+s.VY*s.VY < 0.5 {
		s.VX, s.VY = 0, 0 // It stops.
	}
	s.X, s.Y = s.X+s.VX*dt, s.Y+s.VY*dt
	return in.Fire
}

// shot returns the shot that the racer fires.
func (s *racer) shot() shot { return shot{X: s.X, Y: s.Y, VX: 60 + s.VX, VY: s.VY} }

func (s *shot) fly(t *netloop.Tick) {
	dt := float32(t.Delta().Seconds())
	s.X, s.Y = s.X+s.VX*dt, s.Y+s.VY*dt
}

// race is a server where each client gets a racer in OnJoin.
type race struct {
	*netlooptest.World
	mine       map[netloop.ClientID]*netloop.Object[racer]
	frames     []netlooptest.ClientOption // of the next client
	hold       bool                       // the server ignores all inputs
	deny       bool                       // the server spawns no shots
	duplicates int                        // further shots with the same spawn key
	game       game
}

func newRace(t *testing.T, o ...netlooptest.Option) *race {
	t.Helper()
	r := &race{mine: map[netloop.ClientID]*netloop.Object[racer]{}}
	r.game = game{racing, func(room *netloop.Room) {
		room.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
			r.mine[c.ID()] = racers.Spawn(t, racer{X: float32(c.ID())}, netloop.OwnedBy(c.ID()))
			return nil
		})
		helm.Handle(room, func(t *netloop.Tick, from *netloop.Client, in rudder) {
			o := r.mine[from.ID()]
			if !o.Alive() || r.hold {
				return
			}
			s := o.Edit(t)
			if s.steer(t, in) && !r.deny {
				one := s.shot()
				one.Born = t.SpawnKey(from)
				for range 1 + r.duplicates {
					shots.Spawn(t, one, netloop.OwnedBy(from.ID()))
				}
			}
		})
		room.On(netloop.FixedUpdate, "shots", func(t *netloop.Tick) {
			for o := range shots.All(t) {
				o.Edit(t).fly(t)
			}
		})
	}}
	r.World = netlooptest.New(t, r.game, o...)
	return r
}

// racerAt returns a player's input for a step.
func racerAt(step uint64) rudder {
	return rudder{Turn: int8(step/16%5) - 2, Thrust: int8(step / 64 % 3 * 20)}
}

// join joins a client that steers and predicts.
func (r *race) join(l netlooptest.Link, o ...client.PredictOption) *client.Client {
	c := r.Join("", nil, l)
	client.Inputs(c, helm, func(t *netloop.Tick) rudder { return racerAt(t.FixedStep()) })
	client.Predict(c, racers, helm, func(s *racer, t *netloop.Tick, in rudder) { s.steer(t, in) }, o...)
	return c
}

// own returns the client's own racer.
func (r *race) own(c *client.Client) (own *netloop.Object[racer]) {
	r.Look(c, func(t *netloop.Tick) {
		for o := range racers.Owned(t, c.ID()) {
			own = o
		}
	})
	return own
}

// A ship that only its owner changes is predicted correctly except for missed inputs, also in
// steps that are replayed after the server has dropped many ticks.
func TestOnlyMissedInputsCauseMispredictions(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, x := range []struct {
		stall time.Duration
		netlooptest.Link
	}{
		{},
		{Link: netlooptest.Link{Delay: 30 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01}},
		{Link: netlooptest.Link{Delay: 75 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.05}},
		{Link: netlooptest.Link{Delay: 125 * time.Millisecond, Jitter: 40 * time.Millisecond, Loss: 0.1, Duplicate: 0.05, Reorder: 0.05}},
		{500 * time.Millisecond, netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 5 * time.Millisecond}},
		{3 * time.Second, netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 5 * time.Millisecond}},
	} {
		t.Run(fmt.Sprint(x.Delay, x.stall), func(t *testing.T) {
			r := newRace(t)
			c := r.join(x.Link)
			r.Step(240)
			before := c.Stats()
			if n := before.Prediction.Mispredicted; n > before.InputsMissed {
				t.Errorf("%d objects predicted wrongly after the join, %d inputs missed", n, before.InputsMissed)
			}
			r.Spend(x.stall)
			r.Step(1200)
			s := c.Stats()
			wrong, missed := s.Prediction.Mispredicted-before.Prediction.Mispredicted, s.InputsMissed-before.InputsMissed
			late := s.Prediction.MispredictedLate - before.Prediction.MispredictedLate
			if wrong != late || wrong > missed || s.Inputs < 1300 || (s.StepsSetBack > 0) != (x.stall > 0) {
				t.Errorf("%d objects predicted wrongly, %d after missed inputs, of which there were %d: %v", wrong, late, missed, client.Mispredictions(c, racers))
			}
		})
	}
}
