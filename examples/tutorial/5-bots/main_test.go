package main

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	game "github.com/netloop/netloop/examples/tutorial/4-lobby"
	"github.com/netloop/netloop/loadtest"
	"github.com/netloop/netloop/netlooptest"
)

// Two bots go from the lobby to one arena, and each takes several coins there.
func TestBotsTakeCoins(t *testing.T) {
	w := netlooptest.New(t, game.Game{})
	var all []*client.Client
	for n := range 2 {
		c := w.Join("", bot{}.Join(n), netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.02})
		bot{}.Start(c, new(loadtest.Meter))
		all = append(all, c)
	}
	coins := func(c *client.Client) (score int32) {
		w.Look(c, func(t *netloop.Tick) {
			for own := range game.Dots.Owned(t, c.ID()) {
				score = own.State().Score
			}
		})
		return score
	}
	const want = 3 // A bot that stands still or flies straight on takes fewer.
	for range 1800 {
		if coins(all[0]) >= want && coins(all[1]) >= want && all[0].Room() == all[1].Room() {
			return
		}
		w.Step(1)
		w.Settle() // Rooms open outside of the ticks.
	}
	t.Errorf("in 30 s the bots have %d and %d coins, in the rooms %q and %q", coins(all[0]), coins(all[1]), all[0].Room(), all[1].Room())
}
