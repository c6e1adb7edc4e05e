package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// steered is a world in which a client makes inputs.
func steered(t *testing.T, l netlooptest.Link, seed uint64, o ...netlooptest.ClientOption) (*netlooptest.World, *client.Client) {
	t.Helper()
	w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
		controls.Handle(r, func(*netloop.Tick, *netloop.Client, control) {})
	}}, netlooptest.Seed(seed))
	c := w.Join("", nil, l, o...)
	client.Inputs(c, controls, func(t *netloop.Tick) control { return control{Step: uint32(t.FixedStep())} })
	return w, c
}

// At any frame rate and on any link that can be played on, the server misses at most one input of a
// thousand, with a lead that is no longer than the way, a few steps and twice the jitter.
func TestTheLeadHoldsInputsInTime(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		link netlooptest.Link
		fps  int
		most time.Duration // of the lead
	}{
		{netlooptest.Link{}, 60, 60 * ms},
		{netlooptest.Link{}, 240, 60 * ms},
		{netlooptest.Link{Delay: 30 * ms, Jitter: 5 * ms, Loss: 0.01}, 144, 100 * ms},
		{netlooptest.Link{Delay: 75 * ms, Jitter: 20 * ms, Loss: 0.05}, 60, 170 * ms},
		{netlooptest.Link{Delay: 75 * ms, Jitter: 20 * ms, Loss: 0.05}, 24, 220 * ms},
		{netlooptest.Link{Delay: 125 * ms, Jitter: 20 * ms, Loss: 0.05}, 61, 220 * ms},
		{netlooptest.Link{Delay: 125 * ms, Jitter: 40 * ms, Loss: 0.10}, 60, 250 * ms},
	} {
		t.Run(fmt.Sprint(2*c.link.Delay, c.fps), func(t *testing.T) {
			missed, made := uint64(0), uint64(0)
			for seed := range seeds.Of(t, 10) {
				w, cl := steered(t, c.link, seed, netlooptest.FPS(c.fps), netlooptest.ClientClock(time.Hour, 200*int(seed%3)-200))
				w.Step(600)
				before := cl.Stats()
				for range 20 {
					w.Step(60)
					if lead := cl.Stats().Lead; lead > c.most {
						t.Errorf("seed %d: a lead of %v, want %v at most", seed, lead, c.most)
					}
				}
				after := cl.Stats()
				missed, made = missed+after.InputsMissed-before.InputsMissed, made+after.Inputs-before.Inputs
				if after.LeadJumps > 0 || after.Jumped > before.Jumped || after.InputMargin < 10*ms {
					t.Errorf("seed %d: %d jumps, %d steps left out, a margin of %v", seed, after.LeadJumps, after.Jumped-before.Jumped, after.InputMargin)
				}
			}
			if missed > 1+made/700 || made < 1150 {
				t.Errorf("%d inputs of %d are missed", missed, made)
			}
		})
	}
}

// A second of bad jitter lengthens the lead by little, and five seconds later the lead is back.
func TestASpikeOfJitterIsPaidBack(t *testing.T) {
	const ms = time.Millisecond
	for seed := range seeds.Of(t, 20) {
		l := netlooptest.Link{Delay: 20 * ms, Jitter: 2 * ms}
		w, c := steered(t, l, seed, netlooptest.FPS(60))
		w.Step(900)
		before := c.Stats().Lead
		bad := l
		bad.Jitter = 150 * ms
		w.SetLink(c, bad)
		w.Step(60)
		w.SetLink(c, l)
		grown := c.Stats().Lead
		w.Step(300)
		if after := c.Stats(); (after.Lead-before).Abs() > before/10 || after.LeadJumps > 0 || grown <= before {
			t.Errorf("seed %d: the lead was %v, then %v, and after 5 s %v, with %d jumps", seed, before, grown, after.Lead, after.LeadJumps)
		}
	}
}

// A way that has become longer for good is followed by a jump within three seconds, and one that
// has become shorter gradually, or by a jump if by much; then inputs are in time.
func TestTheLeadFollowsAnotherWay(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		from, to time.Duration
		jumps    uint64
	}{{20 * ms, 120 * ms, 1}, {120 * ms, 100 * ms, 0}, {400 * ms, 20 * ms, 1}} {
		w, cl := steered(t, netlooptest.Link{Delay: c.from, Jitter: 5 * ms}, 1, netlooptest.FPS(60))
		w.Step(900)
		w.SetLink(cl, netlooptest.Link{Delay: c.to, Jitter: 5 * ms})
		w.Step(300)
		before := cl.Stats()
		w.Step(300)
		after := cl.Stats()
		if most := c.to + 80*ms; after.LeadJumps != c.jumps || after.InputsMissed != before.InputsMissed || after.Lead > most {
			t.Errorf("from %v to %v: %d jumps, %d missed, a lead of %v", c.from, c.to, after.LeadJumps, after.InputsMissed-before.InputsMissed, after.Lead)
		}
	}
}
