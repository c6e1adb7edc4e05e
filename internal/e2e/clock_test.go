package e2e_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// Ten seconds after the join a client estimates the server's game time to a millisecond in 99 of
// 100 frames, over a link with jitter and with the worst clock drift.
func TestAClientKnowsTheServersClockToAMillisecond(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, ppm := range []int{0, 200, -200} {
		t.Run(fmt.Sprint(ppm), func(t *testing.T) {
			var errors []time.Duration
			seeds.Each(t, 20, func(t *testing.T, seed uint64) {
				w := open(t, func(*netloop.Room) {}, netlooptest.Seed(seed))
				c := w.Join("", nil, netlooptest.Link{Delay: 30 * time.Millisecond, Jitter: 5 * time.Millisecond},
					netlooptest.FPS(60), netlooptest.ClientClock(time.Hour, ppm))
				w.Step(600)
				c.On(netloop.Update, "test.clock", func(tick *netloop.Tick) {
					errors = append(errors, (tick.GameTime() - w.GameTime()).Abs())
				})
				w.Step(900)
			})
			slices.Sort(errors)
			if p99 := errors[len(errors)*99/100]; p99 > time.Millisecond {
				t.Errorf("off by %v in the median, %v in the worst of 100", errors[len(errors)/2], p99)
			}
		})
	}
}

// On loopback the client's clock equals the server's, except for late wake-ups of threads. Frames
// and ticks may be late: the difference between the smallest latenesses in a window of half a
// second is the clock error. On a busy machine ticks are dropped, which moves game time within a
// window, so the best of several windows counts.
func TestAClientKnowsTheServersClockOverLoopback(t *testing.T) {
	const window, windows, most = 30, 20, 2 * time.Millisecond
	began := time.Now()
	var mu sync.Mutex
	var ticks, frames []time.Duration // Lateness after game time.
	s, _ := serve(t, script(func(r *netloop.Room) {
		r.On(netloop.EarlyUpdate, "test.tick", func(tick *netloop.Tick) {
			mu.Lock()
			defer mu.Unlock()
			ticks = append(ticks, time.Since(began)-tick.GameTime())
		})
	}), 60)
	var off []time.Duration // In each window.
	enough := make(chan struct{})
	dial(t, s.Addr().String(), func(c *client.Client) {
		done := false
		c.On(netloop.EarlyUpdate, "test.frame", func(tick *netloop.Tick) {
			mu.Lock()
			defer mu.Unlock()
			if done || !c.Stats().Synced {
				return
			}
			frames = append(frames, time.Since(began)-tick.GameTime())
			if len(frames) < window || len(ticks) < window {
				return
			}
			off = append(off, slices.Min(frames)-slices.Min(ticks))
			ticks, frames = nil, nil
			if done = off[len(off)-1].Abs() <= most || len(off) == windows; done {
				close(enough)
			}
		})
	})
	<-enough
	t.Logf("off by %v", off)
	if last := off[len(off)-1]; last.Abs() > most {
		t.Errorf("off by %v in %d windows", last, windows)
	}
}
