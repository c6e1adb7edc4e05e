package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// longestInputGap plays over a link that changes, and returns the longest time in which the server
// ran no new input.
func longestInputGap(t *testing.T, seed uint64, change func(w *netlooptest.World, c *client.Client)) (dead time.Duration, presses, heard int) {
	t.Helper()
	var w *netlooptest.World
	last, newest := time.Duration(0), uint32(0)
	w = netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
		controls.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, in control) {
			if in.Step > newest {
				dead = max(dead, w.Now()-last)
				last, newest = w.Now(), in.Step
			}
			if in.Fire {
				heard++
			}
		})
	}}, netlooptest.Seed(seed))
	c := w.Join("", nil, netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 2 * time.Millisecond}, netlooptest.FPS(60))
	client.Inputs(c, controls, func(tick *netloop.Tick) control {
		fire := tick.FixedStep()%7 == 0
		if fire {
			presses++
		}
		return control{Step: uint32(tick.FixedStep()), Fire: fire}
	})
	w.Step(600)
	dead, presses, heard = 0, 0, 0
	change(w, c)
	return dead, presses, heard
}

// If the delay of a path grows, for good or for a while, the server runs no new input for at most
// that growth and one flush: late inputs run. Each press runs, in time or late.
func TestLateInputsRun(t *testing.T) {
	seeds.OneGoroutine(t)
	const ms = time.Millisecond
	usual := netlooptest.Link{Delay: 40 * ms, Jitter: 2 * ms}
	longer := func(by, span time.Duration) func(w *netlooptest.World, c *client.Client) {
		return func(w *netlooptest.World, c *client.Client) {
			link := usual
			link.Delay += by
			w.SetLink(c, link)
			if span > 0 {
				w.Step(int(span * 60 / time.Second))
				w.SetLink(c, usual)
			}
			w.Step(600)
		}
	}
	for name, x := range map[string]struct {
		change func(w *netlooptest.World, c *client.Client)
		most   time.Duration
	}{
		"+30 ms": {longer(30*ms, 0), 80 * ms}, "+50 ms": {longer(50*ms, 0), 100 * ms}, "+100 ms": {longer(100*ms, 0), 150 * ms},
		"−30 ms": {longer(-30*ms, 0), 50 * ms}, "80 ms for 600 ms": {longer(80*ms, 600*ms), 130 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			seeds.Each(t, 5, func(t *testing.T, seed uint64) {
				dead, presses, heard := longestInputGap(t, seed, x.change)
				if dead > x.most || heard < presses-2 || heard > presses+2 {
					t.Errorf("seed %d: no new input for %v, want %v at most; of %d presses %d ran", seed, dead, x.most, presses, heard)
				}
			})
		})
	}
}

// The first input that is not idle wakes a sleeping room and runs in its step: after any time, at
// any rate, and also if its client has reconnected or was replaced by another program of the
// player.
func TestAnInputWakesASleepingRoom(t *testing.T) {
	seeds.OneGoroutine(t)
	type play struct {
		w   *netlooptest.World
		c   *client.Client
		key int8
		ran map[int8]int // how often inputs ran, by Turn
	}
	input := func(p *play) {
		client.Inputs(p.c, controls, func(*netloop.Tick) control { return control{Turn: p.key} })
	}
	ways := map[string]func(p *play){
		"awake":   func(*play) {},
		"a break": func(p *play) { p.w.Break(p.c); p.w.Step(100) },
		"a hole":  func(p *play) { p.w.Cut(p.c); p.w.Step(120); p.w.Heal(p.c); p.w.Step(400) },
		"another program": func(p *play) {
			p.c = p.w.JoinAs(client.Config{Token: "ann"}, netlooptest.Link{Delay: 30 * time.Millisecond})
			input(p)
			p.w.Step(120)
		},
	}
	for name, way := range ways {
		for _, hz := range []uint64{20, 60, 240} {
			for _, idle := range []int{200, 2000} {
				t.Run(fmt.Sprint(name, " ", hz, " ", idle), func(t *testing.T) {
					p := &play{ran: map[int8]int{}}
					p.w = netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
						r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
						controls.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, in control) { p.ran[in.Turn]++ })
					}}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(20), FixedRate: netloop.Hz(hz), Sleep: true, KeepDropped: 30 * time.Second}))
					p.c = p.w.JoinAs(client.Config{Token: "ann"}, netlooptest.Link{Delay: 30 * time.Millisecond})
					input(p)
					p.w.Step(120)
					way(p)
					p.w.Until(400, p.w.Room("").Asleep)
					p.w.Step(idle * 20 / int(hz))
					if !p.w.Room("").Asleep() || len(p.ran) > 1 {
						t.Fatalf("the room is awake, and %v ran", p.ran)
					}
					for key := int8(1); key < 5; key++ {
						p.key = key
						p.w.Step(4)
					}
					p.key = 0
					p.w.Step(20)
					for key := int8(1); key < 5; key++ {
						if n, want := p.ran[key], int(hz)/5; n < want*3/4-1 || n > want*5/4+1 {
							t.Errorf("key %d ran in %d steps, want %d", key, n, want)
						}
					}
					p.w.Until(400, p.w.Room("").Asleep)
				})
			}
		}
	}
}
