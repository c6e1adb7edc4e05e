package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
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

// At any frame rate and on any playable link the server misses at most one input in a thousand.
// The lead is at most the delay, a few steps and twice the jitter.
func TestTheLeadKeepsInputsInTime(t *testing.T) {
	seeds.OneGoroutine(t)
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
			seeds.Each(t, 10, func(t *testing.T, seed uint64) {
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
			})
			if missed > 1+made/700 || made < 1150 {
				t.Errorf("%d inputs of %d are missed", missed, made)
			}
		})
	}
}

// A second of high jitter lengthens the lead a little; after five seconds the lead is as before.
func TestTheLeadShrinksAfterAJitterSpike(t *testing.T) {
	const ms = time.Millisecond
	seeds.Each(t, 20, func(t *testing.T, seed uint64) {
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
	})
}

// The lead follows a permanent change of the delay: gradually, or by a jump if the change is
// large. After five seconds inputs are in time.
func TestTheLeadFollowsTheRoundTrip(t *testing.T) {
	seeds.OneGoroutine(t)
	const ms = time.Millisecond
	for _, c := range []struct {
		from, to time.Duration
		jumps    uint64
	}{{20 * ms, 120 * ms, 0}, {20 * ms, 420 * ms, 1}, {120 * ms, 100 * ms, 0}, {400 * ms, 20 * ms, 1}} {
		w, cl := steered(t, netlooptest.Link{Delay: c.from, Jitter: 5 * ms}, 1, netlooptest.FPS(60))
		w.Step(900)
		w.SetLink(cl, netlooptest.Link{Delay: c.to, Jitter: 5 * ms})
		w.Step(300)
		before := cl.Stats()
		w.Step(300)
		after := cl.Stats()
		// The server's measurement equals the client's, except for the wait for a frame.
		w.Tick(func(tick *netloop.Tick) {
			for s := range tick.Clients() {
				if margin := s.Link().InputMargin; margin < after.InputMargin-3*ms || margin > after.InputMargin+20*ms {
					t.Errorf("to %v: a margin of %v, and of %v by the server", c.to, after.InputMargin, margin)
				}
			}
		})
		if most := c.to + 80*ms; after.LeadJumps != c.jumps || after.InputsMissed != before.InputsMissed || after.Lead > most {
			t.Errorf("from %v to %v: %d jumps, %d missed, a lead of %v", c.from, c.to, after.LeadJumps, after.InputsMissed-before.InputsMissed, after.Lead)
		}
	}
}

// After a server stall of any length, inputs take effect again within a round trip, 100 ms and
// four steps: from then on the server runs inputs made after the stall. Inputs for dropped time
// do not run, except for those that arrive before the client knows of the stall.
func TestControlsAreBackSoonAfterAStall(t *testing.T) {
	seeds.OneGoroutine(t)
	const way = 40 * time.Millisecond
	for _, hz := range []uint64{20, 60, 240} {
		for _, stall := range []time.Duration{200 * time.Millisecond, 330 * time.Millisecond, time.Second, 3 * time.Second, 8 * time.Second} {
			t.Run(fmt.Sprint(hz, stall), func(t *testing.T) {
				var w *netlooptest.World
				made := map[uint32]time.Duration{} // by number, which the input contains
				frame, last, stalled := time.Duration(0), uint32(0), false
				type ranInput struct{ at, age time.Duration }
				var ran []ranInput
				w = netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
					controls.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, in control) {
						if in.Step != last {
							last = in.Step
							ran = append(ran, ranInput{w.Now(), w.Now() - made[in.Step]})
						}
					})
					r.On(netloop.Update, "test.stall", func(*netloop.Tick) {
						if stalled {
							stalled = false
							w.Spend(stall)
						}
					})
				}}, netlooptest.Room(netloop.RoomSpec{FixedRate: netloop.Hz(hz)}))
				cl := w.Join("", nil, netlooptest.Link{Delay: way, Jitter: 2 * time.Millisecond}, netlooptest.FPS(60))
				client.Inputs(cl, controls, func(tick *netloop.Tick) control {
					n := uint32(len(made) + 1)
					made[n] = w.Now()
					return control{Step: n}
				})
				cl.On(netloop.Update, "test.frame", func(tick *netloop.Tick) {
					if tick.GameTime() < frame {
						t.Errorf("game time moves back from %v to %v", frame, tick.GameTime())
					}
					frame = tick.GameTime()
				})
				w.Step(600)
				before := cl.Stats()
				usual := time.Duration(0)
				for _, r := range ran[len(ran)-20:] {
					usual = max(usual, r.age)
				}
				stalled = true
				w.Step(1)
				end := w.Now()
				ran = nil
				w.Step(600)
				step := time.Second / time.Duration(hz)
				bound := end + 2*way + 4*time.Millisecond + 100*time.Millisecond + 4*max(step, time.Second/60)
				fresh := 0
				for _, r := range ran {
					if r.at > bound && r.age > usual+2*max(step, time.Second/60) {
						t.Fatalf("%v after the stall an input runs that was made %v ago, usual are %v", r.at-end, r.age, usual)
					}
					if r.at > bound {
						fresh++
					}
				}
				after := cl.Stats()
				if want := int((w.Now() - bound) / step); fresh < want*98/100 || after.LeadJumps > before.LeadJumps {
					t.Errorf("%d inputs ran once the controls were back, want %d; %d jumps", fresh, want, after.LeadJumps-before.LeadJumps)
				}
				if (after.Lead - before.Lead).Abs() > 10*time.Millisecond+step {
					t.Errorf("the lead was %v and is %v", before.Lead, after.Lead)
				}
			})
		}
	}
}

// On any link a player's steps run at the server's speed, except for the slew: a tenth of a
// second in 10 s, until the lead jumps.
func TestStepsRunAsFastAsTheServers(t *testing.T) {
	seeds.Each(t, 10, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 9))
		w, c := steered(t, netlooptest.Link{Delay: 30 * time.Millisecond}, seed, netlooptest.FPS(100), netlooptest.ClientClock(0, 200))
		w.Step(600)
		type moment struct {
			now   time.Duration
			step  uint64
			jumps uint64
		}
		var all []moment
		c.On(netloop.Update, "test.frame", func(tick *netloop.Tick) {
			all = append(all, moment{w.Now(), tick.FixedStep(), c.Stats().LeadJumps})
		})
		for range 40 {
			w.SetLink(c, netlooptest.Link{
				Delay: 30*time.Millisecond + time.Duration(rng.Int64N(int64(20*time.Millisecond))), Jitter: time.Duration(rng.Int64N(int64(60 * time.Millisecond))), Loss: rng.Float64() / 5,
			})
			w.Step(60)
		}
		for i, from := 0, 0; i < len(all); i++ {
			for all[i].now-all[from].now > 10*time.Second {
				from++
			}
			passed, steps := all[i].now-all[from].now, float64(all[i].step-all[from].step)
			if most := passed.Seconds()*60*1.0102 + 1; all[i].jumps == all[from].jumps && steps > most {
				t.Fatalf("seed %d: %v steps in %v, want %v at most", seed, steps, passed, most)
			}
		}
	})
}

// A client that reconnects, to its old seat, a new one or another server, soon has the same lead
// as before.
func TestTheLeadIsRestoredAfterReconnecting(t *testing.T) {
	seeds.OneGoroutine(t)
	for name, breaks := range map[string]func(w *netlooptest.World, c *client.Client){
		"its place":      func(w *netlooptest.World, c *client.Client) { w.Break(c) },
		"a hole of 15 s": func(w *netlooptest.World, c *client.Client) { w.Cut(c); w.Step(900); w.Heal(c) },
		"a new place":    func(w *netlooptest.World, c *client.Client) { w.Cut(c); w.Step(2400); w.Heal(c) },
		"another server": func(w *netlooptest.World, c *client.Client) {
			w.Restart(game{schema: steering, script: func(r *netloop.Room) {
				controls.Handle(r, func(*netloop.Tick, *netloop.Client, control) {})
			}})
		},
		"a pause": func(w *netlooptest.World, c *client.Client) {
			w.Tick(func(tick *netloop.Tick) { tick.Room().SetTimeScale(tick, 0, 1) })
		},
		"a program that hung": func(w *netlooptest.World, c *client.Client) { w.Freeze(c); w.Step(120); w.Thaw(c) },
	} {
		t.Run(name, func(t *testing.T) {
			w, c := steered(t, netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 4 * time.Millisecond}, 1, netlooptest.FPS(60))
			w.Step(600)
			before := c.Stats()
			breaks(w, c)
			w.Until(600, func() bool { return c.State().Phase == client.Playing })
			w.Step(240)
			soon := c.Stats()
			w.Step(600)
			after := c.Stats()
			if (after.Lead-before.Lead).Abs() > 10*time.Millisecond || after.LeadJumps > 0 {
				t.Errorf("the lead was %v and is %v, after %d jumps", before.Lead, after.Lead, after.LeadJumps)
			}
			if after.Inputs < soon.Inputs+599 || after.InputsMissed > soon.InputsMissed {
				t.Errorf("%d inputs in 10 s, %d of them missed", after.Inputs-soon.Inputs, after.InputsMissed-soon.InputsMissed)
			}
		})
	}
}

// A client that has read nothing for a while reconnects. The inputs that it made without sending
// them do not lengthen its lead.
func TestTheLeadIsRestoredAfterASilence(t *testing.T) {
	// Every second tick without arrivals has no flush: the break follows one with and one without.
	for _, lost := range []time.Duration{time.Second, 1050 * time.Millisecond} {
		w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
			controls.Handle(r, func(*netloop.Tick, *netloop.Client, control) {})
		}}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(20)}))
		c := w.JoinAs(client.Config{LostAfter: lost}, netlooptest.Link{})
		client.Inputs(c, controls, func(t *netloop.Tick) control { return control{Step: uint32(t.FixedStep())} })
		w.Step(100)
		before := c.Stats()
		w.Stall(c, true)
		w.Step(60)
		w.Stall(c, false)
		w.Step(100)
		soon := c.Stats()
		w.Step(100)
		after := c.Stats()
		if after.Resumes == 0 || after.Lead > before.Lead+20*time.Millisecond || after.LeadJumps > 0 || after.InputsMissed > soon.InputsMissed {
			t.Errorf("lost after %v: %d resumes, a lead of %v, and then of %v, %d jumps, %d inputs missed", lost, after.Resumes, before.Lead, after.Lead, after.LeadJumps, after.InputsMissed-soon.InputsMissed)
		}
	}
}
