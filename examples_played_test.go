package netloop_test

import (
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// TestTheExampleOfTheDocsPlays checks the statements of the example's comments.
func TestTheExampleOfTheDocsPlays(t *testing.T) {
	w := netlooptest.New(t, cardGame{})
	a, b := w.Join("", nil, netlooptest.Link{Loss: 0.1}), w.Join("", nil, netlooptest.Link{})
	var mine netloop.Ref[Card]
	client.Handle(a, dealt, func(tick *netloop.Tick, m Dealt) {
		if _, ok := m.Card.Get(tick); !ok {
			t.Error("the message came before the card")
		}
		mine = m.Card
	})
	heard := 0
	client.Handle(b, says, func(*netloop.Tick, Say) { heard++ })
	w.Until(300, func() bool { return !mine.IsZero() && b.State().Phase == client.Playing })

	for range 6 {
		client.Send(a, says, Say{"hello"})
	}
	client.Send(b, plays, Play{mine}) // It is not b's.
	w.Step(30)
	if heard != 4 {
		t.Errorf("heard %d, want the burst of 4", heard)
	}
	there := func() (ok bool) {
		w.Tick(func(tick *netloop.Tick) { _, ok = mine.Get(tick) })
		return ok
	}
	if !there() {
		t.Error("somebody else has played the card")
	}
	client.Send(a, plays, Play{mine})
	won := map[int]bool{} // Two banks may answer in any order.
	var refused *netloop.Refusal
	for _, coins := range []int{5, 20} {
		client.Call(a, bids, Bid{coins}, func(_ *netloop.Tick, r Answer, err error) {
			if err != nil {
				t.Error(err)
			}
			won[coins] = r.Won
		})
	}
	client.Call(a, bids, Bid{}, func(_ *netloop.Tick, _ Answer, err error) { _ = errors.As(err, &refused) })
	w.Step(30) // Long enough for a message that was lost.
	w.Settle()
	w.Step(30)
	if there() || len(won) != 2 || !won[5] || won[20] || refused == nil || refused.Code != netloop.CodeGame {
		t.Errorf("card there: %v, bids %v, refused %v", there(), won, refused)
	}
}

// TestTheExampleOfSlowMotionPlays checks the statements of the example's comments about time.
func TestTheExampleOfSlowMotionPlays(t *testing.T) {
	w := netlooptest.New(t, skyGame{})
	c := w.Join("", nil, netlooptest.Link{})
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
	state := func() (n int, x float64, bomb time.Duration) {
		w.Step(1)
		w.Look(c, func(tick *netloop.Tick) {
			n = asteroids.Len(tick)
			for a := range asteroids.All(tick) {
				x = max(x, a.State().X)
			}
			for b := range bombs.All(tick) {
				bomb = b.State().At.Left(tick)
			}
		})
		return n, x, bomb
	}
	passed := func(what string, ticks int, n int, x float64, bomb time.Duration) {
		t.Helper()
		n0, x0, bomb0 := state()
		w.Step(ticks - 1)
		n1, x1, bomb1 := state()
		if d := bomb0 - bomb1 - bomb; n1-n0 != n || x1-x0 < x-0.5 || x1-x0 > x+0.5 || d < -60*time.Millisecond || d > 60*time.Millisecond {
			t.Errorf("%s: %d asteroids, the first moved by %.2f, %v went by for the bomb; want %d, %.2f, %v", what, n1-n0, x1-x0, bomb0-bomb1, n, x, bomb)
		}
	}
	passed("a second", 60, 0, 8, time.Second)
	client.Send(c, hourglass, Hourglass{})
	w.Step(2)
	passed("slow motion", 114, 0, 7.6, 950*time.Millisecond)
	w.Step(8) // The slow motion is over: at about 2.2 s of scaled time.
	client.Send(c, truce, Truce{Agreed: true})
	w.Step(2)
	passed("a truce", 300, 0, 0, 5*time.Second)
	client.Send(c, truce, Truce{})
	w.Step(2)
	passed("after it", 60, 1, 8, time.Second)
}
