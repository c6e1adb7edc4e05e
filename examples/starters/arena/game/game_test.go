package game

import (
	"math"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// pilot is a client with its next input.
type pilot struct {
	*client.Client
	next Control
}

func join(w *netlooptest.World, name string, l netlooptest.Link) *pilot {
	p := &pilot{Client: w.Join("", JoinParams{name}, l)}
	client.Inputs(p.Client, Controls, func(*netloop.Tick) Control { return p.next })
	client.Predict(p.Client, Ships, Controls, func(s *Ship, t *netloop.Tick, in Control) {
		if s.Step(t, in) {
			client.Spawn(p.Client, Beams, s.Beam(t))
		}
	})
	client.Predict(p.Client, Beams, Controls, func(*Beam, *netloop.Tick, Control) {})
	client.Interpolate(p.Client, Ships)
	w.Until(120, func() bool { return p.State().Phase == client.Playing })
	return p
}

// place puts a client's ship somewhere, without a shield.
func place(w *netlooptest.World, p *pilot, x, y float32) {
	w.Tick(func(t *netloop.Tick) {
		for o := range Ships.Owned(t, p.ID()) {
			s := o.Edit(t)
			s.X, s.Y, s.Shield = x, y, t.In(0)
			s.Leaps++
		}
	})
	w.Step(60)
}

// ship returns a client's ship, as the server has it.
func ship(w *netlooptest.World, p *pilot) (s Ship) {
	w.Tick(func(t *netloop.Tick) {
		for o := range Ships.Owned(t, p.ID()) {
			s = o.State()
		}
	})
	return s
}

// With a round trip of 100 ms a ship moves on its own page before the server has the input, and no
// prediction is wrong. A cheat is no faster.
func TestAShipMovesAtOnce(t *testing.T) {
	w := netlooptest.New(t, Game{})
	p := join(w, "ada", netlooptest.Link{Delay: 50 * time.Millisecond})
	place(w, p, 100, 100)
	wrong := p.Stats().Prediction.Mispredicted
	p.next = Control{DX: 100, DY: 1, Aim: 1}
	w.Step(4)
	seen := Ship{}
	w.Look(p.Client, func(tick *netloop.Tick) {
		for o := range Ships.Owned(tick, p.ID()) {
			seen, _ = client.PredictedState(p.Client, o)
		}
	})
	if is := ship(w, p); seen.X < 108 || is.X > 104 {
		t.Errorf("after four steps the page has %v, and the server %v", seen.X, is.X)
	}
	w.Step(600)
	if s := ship(w, p); s.X != Width-radius || s.Y != Height-radius || s.Aim != 1 {
		t.Errorf("the ship stopped at %+v, want the corner", s)
	}
	if n := p.Stats().Prediction.Mispredicted; n != wrong {
		t.Errorf("%d mispredictions", n-wrong)
	}
}

// A player with a slow link hits a ship where it was seen. The third hit scores.
func TestShotsHitWhatWasSeen(t *testing.T) {
	w := netlooptest.New(t, Game{})
	ada, bob := join(w, "ada", netlooptest.Link{Delay: 60 * time.Millisecond}), join(w, "bob", netlooptest.Link{})
	place(w, ada, 480, 100)
	place(w, bob, 400, 300)
	bob.next.DX = 1 // He flies past below her, at 240 units in a second.
	for range 60 {
		w.Step(1)
		w.Look(ada.Client, func(tick *netloop.Tick) { // She aims at what she sees.
			for o := range Ships.Owned(tick, bob.ID()) {
				if s, ok := client.View(ada.Client, o); ok {
					ada.next.Aim = float32(math.Atan2(float64(s.Y-100), float64(s.X-480)))
				}
			}
		})
		ada.next.Fire = true
	}
	if s := ship(w, ada); s.Score != 1 {
		t.Errorf("the score is %d after a second of fire: bob is %+v", s.Score, ship(w, bob))
	}
}
