package e2e_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A link of 40 kbit/s has both a room's state and unreliable messages that fill it more than three
// times: neither excludes the other, and the queue remains short.
func TestStateAndMessagesShareASlowLink(t *testing.T) {
	type noise struct{ Values [24]uint32 }
	type chatter struct {
		Text string `net:"max=300"`
	}
	own := netloop.NewSchema("noise", 1, 0)
	noises := netloop.NewClass[noise](own, "noise")
	chatters := netloop.NewRPC[chatter](own, "chatter", netloop.Unreliable(), netloop.AtStage(netloop.Update))

	rng := rand.New(rand.NewPCG(1, 2))
	talking := false
	w := netlooptest.New(t, game{own, func(r *netloop.Room) {
		r.On(netloop.Update, "change", func(t *netloop.Tick) {
			for o := range noises.All(t) {
				for i := range o.Edit(t).Values {
					o.Edit(t).Values[i] = rng.Uint32()
				}
			}
			if talking {
				chatters.Send(t, netloop.Everyone(), chatter{strings.Repeat("a", 300)})
			}
		})
	}})
	w.Tick(func(t *netloop.Tick) {
		for range 9 {
			noises.Spawn(t, noise{})
		}
	})
	heard := 0
	c := w.JoinAs(client.Config{Schema: own}, netlooptest.Link{Delay: 50 * time.Millisecond, Bandwidth: 40_000, Buffer: 500 * time.Millisecond})
	client.Handle(c, chatters, func(*netloop.Tick, chatter) { heard++ })
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
	w.Advance(5 * time.Second)

	before := c.Stats()
	w.Advance(20 * time.Second)
	alone := c.Stats().Snapshots - before.Snapshots
	talking, before = true, c.Stats()
	w.Advance(20 * time.Second)
	beside, lost := c.Stats().Snapshots-before.Snapshots, c.Stats().Lost-before.Lost
	t.Logf("in 20 s: %d snapshots alone; %d beside %d messages, %d packets of state lost, age %v", alone, beside, heard, lost, c.Stats().Age)
	if alone < 150 || beside < 60 || heard < 60 || lost > 10 {
		t.Errorf("in 20 s: %d snapshots alone, want 150; %d beside %d messages, want 60 of each; %d packets lost", alone, beside, heard, lost)
	}
}
