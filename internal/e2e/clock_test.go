package e2e_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// A client knows the server's game time to a millisecond in 99 of 100 frames, over a link with
// jitter and with a clock as bad as they come, ten seconds after it has joined.
func TestAClientKnowsTheServersClockToAMillisecond(t *testing.T) {
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

// Over real sockets of one machine a client's clock is that of the server, but for how late threads
// wake: usually by 0.1 ms, and by much more on a machine that is busy.
func TestAClientKnowsTheServersClockOverLoopback(t *testing.T) {
	began := time.Now()
	var least atomic.Int64 // how long after its game time a tick runs, by the clock of this test
	least.Store(int64(time.Hour))
	s, _ := serve(t, script(func(r *netloop.Room) {
		r.On(netloop.EarlyUpdate, "test.tick", func(tick *netloop.Tick) {
			least.Store(min(least.Load(), int64(time.Since(began)-tick.GameTime())))
		})
	}), 60)
	var after []time.Duration
	enough := make(chan struct{})
	dial(t, s.Addr().String(), func(c *client.Client) {
		c.On(netloop.EarlyUpdate, "test.frame", func(tick *netloop.Tick) {
			if !c.Stats().Synced || len(after) == 60 {
				return
			}
			if after = append(after, time.Since(began)-tick.GameTime()); len(after) == 60 {
				close(enough)
			}
		})
	})
	<-enough
	slices.Sort(after)
	// A frame may be late, as a tick may: the least says what the clocks differ by.
	off, median := after[0]-time.Duration(least.Load()), after[len(after)/2]-time.Duration(least.Load())
	t.Logf("off by %v in the best of 60 frames, %v in the median", off, median)
	if off.Abs() > 20*time.Millisecond {
		t.Errorf("off by %v", off)
	}
}
