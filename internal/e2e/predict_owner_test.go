package e2e_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// An object with a new owner changes between interpolation, in the past, and prediction, in the
// future. The drawn position moves there within the smoothing time, at any frame rate, even if
// the owner changes again meanwhile; or at once if Smoothing says so.
func TestAChangeOfOwnerIsDrawnSmoothly(t *testing.T) {
	seeds.OneGoroutine(t)
	const speed = 60.0
	// steps returns the drawn movement per frame while the ship's owner changes at the given
	// ticks.
	steps := func(fps int, hands []int, change func(*racer), o ...client.PredictOption) (all []float64) {
		r := newRace(t)
		r.frames = []netlooptest.ClientOption{netlooptest.FPS(fps)}
		p := r.steeringClient(netlooptest.Link{Delay: 75 * time.Millisecond}, o...)
		client.Interpolate(p.Client, racers)
		p.in.Thrust = speed * 0.6
		r.touch(p, func(s *racer) { s.VX = speed })
		r.Step(60)
		own, last := r.own(p.Client), 0.0
		p.On(netloop.PostLateUpdate, "draw", func(*netloop.Tick) {
			s, shown := client.View(p.Client, own)
			if !shown {
				t.Fatal("it is not drawn")
			}
			all = append(all, float64(s.X)-last)
			last = float64(s.X)
		})
		for tick := range 100 {
			if slices.Contains(hands, tick) {
				r.Tick(func(t *netloop.Tick) {
					o := r.mine[p.ID()]
					to := p.ID()
					if o.Owner() == to {
						to = 0
					}
					o.SetOwner(t, to)
					if change != nil {
						change(o.Edit(t))
					}
				})
			}
			r.Step(1)
		}
		if drawn, at := r.view(t, p); distance(drawn, at) > speed/60 {
			t.Errorf("in the end it is drawn at %v, and is at %v", drawn.X, at.X)
		}
		return all[1:]
	}
	// off returns the largest difference between the drawn and the real speed of all frames.
	off := func(fps int, steps []float64) (most float64) {
		for _, s := range steps {
			most = max(most, math.Abs(s-speed/float64(fps)))
		}
		return most
	}
	giveAndTake, toAndFro := []int{10, 60}, []int{10, 13, 16, 19}
	for _, fps := range []int{60, 144} {
		gap := off(fps, steps(fps, giveAndTake, nil, client.Smoothing(0)))
		most := gap/(0.1*float64(fps)) + speed/float64(fps)
		if gap < 10 {
			t.Errorf("%d frames: at once it jumps by %v", fps, gap)
		}
		for _, c := range []struct {
			name  string
			hands []int
			o     client.PredictOption
			by    func(*racer)
			jumps bool
		}{
			{"in 100 ms", giveAndTake, client.Smoothing(100 * time.Millisecond), nil, false},
			{"to and fro", toAndFro, client.Smoothing(100 * time.Millisecond), nil, false},
			{"too far", giveAndTake, client.Snap(func(was, is *racer) bool { return distance(*was, *is) > 5 }), nil, true},
			{"a teleport", giveAndTake, client.Smoothing(time.Second), func(s *racer) { s.Jumps++ }, true},
		} {
			t.Run(fmt.Sprint(c.name, fps), func(t *testing.T) {
				if got := off(fps, steps(fps, c.hands, c.by, c.o)); got > most != c.jumps {
					t.Errorf("the drawn speed differs by %v, want %v at most: %t", got, most, !c.jumps)
				}
			})
		}
	}
}

// Objects of a class are predicted in the order of their ids, as on the server, whatever the
// order in which the client became their owner.
func TestPredictedObjectsRunInTheServersOrder(t *testing.T) {
	const many = 6
	var ships []*netloop.Object[racer]
	r := newRace(t)
	c := r.Join("", nil, netlooptest.Link{})
	client.Inputs(c, helm, func(*netloop.Tick) rudder { return rudder{} })
	var ran []float32 // of a step, by Angle
	step := uint64(0)
	client.Predict(c, racers, helm, func(s *racer, t *netloop.Tick, _ rudder) {
		if t.FixedStep() != step {
			step, ran = t.FixedStep(), ran[:0]
		}
		ran = append(ran, s.Angle)
	})
	r.Step(60)
	r.Tick(func(tick *netloop.Tick) {
		r.mine[c.ID()].Despawn(tick)
		for range many {
			ships = append(ships, racers.Spawn(tick, racer{}))
		}
	})
	var want []float32
	r.Tick(func(tick *netloop.Tick) {
		for o := range racers.All(tick) {
			want = append(want, float32(len(want)))
			o.Edit(tick).Angle = float32(len(want) - 1)
		}
	})
	for _, i := range []int{3, 5, 0, 4, 1, 2} {
		r.Tick(func(tick *netloop.Tick) { ships[i].SetOwner(tick, c.ID()) })
		r.Step(10)
	}
	r.Step(60)
	if !slices.Equal(ran, want) {
		t.Errorf("objects run in the order %v, on the server in %v", ran, want)
	}
}
