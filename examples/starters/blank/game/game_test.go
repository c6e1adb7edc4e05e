package game

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A player on a bad link walks to the coin. It runs in memory and in virtual time.
func TestADotTakesTheCoin(t *testing.T) {
	w := netlooptest.New(t, Game{})
	c := w.Join("", nil, netlooptest.Link{Delay: 30 * time.Millisecond, Loss: 0.1})
	w.Until(120, func() bool { return c.State().Phase == client.Playing })
	w.Tick(func(tick *netloop.Tick) { // The coin is two seconds to the right.
		for o := range Dots.Owned(tick, c.ID()) {
			*o.Edit(tick) = Dot{X: 10, Y: 50}
		}
		for o := range Coins.All(tick) {
			*o.Edit(tick) = Coin{X: 90, Y: 50}
		}
	})
	client.Send(c, Moves, Move{DX: 127}) // A cheat is no faster.
	w.Step(60)
	if x := dot(w, c).X; x < 40 || x > 51 {
		t.Errorf("after a second at 40 units a second the dot is at %v", x)
	}
	w.Step(90)
	if got := dot(w, c); got.X < 88 || got.Score != 1 {
		t.Errorf("the client sees %+v, want the score of the coin at 90", got)
	}
}

// dot returns the client's own dot, as the client sees it.
func dot(w *netlooptest.World, c *client.Client) (dot Dot) {
	w.Look(c, func(t *netloop.Tick) {
		for o := range Dots.Owned(t, c.ID()) {
			dot = o.State()
		}
	})
	return dot
}
