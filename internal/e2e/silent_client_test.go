package e2e_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/seeds"
)

// gaps counts the snapshots that a client missed between its first and its last one.
type gaps struct{ last, got, missed atomic.Uint64 }

func (g *gaps) watch(c *client.Client) {
	c.OnSnapshot(func(s client.Snapshot) {
		if last := g.last.Swap(s.Tick); last != 0 {
			g.missed.Add(s.Tick - last - 1)
		}
		g.got.Add(1)
	})
}

// busy is a game of 100 objects that all change in every tick.
func busy(r *netloop.Room) {
	r.OnStart(func(tick *netloop.Tick) {
		for range 100 {
			things.Spawn(tick, thing{})
		}
	})
	r.On(netloop.Update, "test.edit", func(tick *netloop.Tick) {
		for o := range things.All(tick) {
			o.Edit(tick).N++
		}
	})
}

// TestASilentClientDelaysNoSnapshotOfOthers lets one client vanish and another one stop reading
// its stream, which the server fills, and counts the snapshots of a healthy client. On a busy
// machine single snapshots are lost without silent clients too, so the test fails only if some
// are lost in every attempt.
func TestASilentClientDelaysNoSnapshotOfOthers(t *testing.T) {
	t.Parallel()
	const plays = 3
	quiet := 0
	for range plays {
		var missed uint64
		var worst netloop.Overload
		stall := longestStall(func() {
			t.Run("play", func(t *testing.T) { missed, worst = besideSilentClients(t) })
		})
		if t.Failed() || missed == 0 && worst == netloop.OverloadNone || seeds.Race { // It is slow.
			return
		}
		t.Logf("missed %d, overload %v; the machine stalled for %v", missed, worst, stall)
		if stall < 25*time.Millisecond { // Half a period.
			quiet++
		}
	}
	if quiet == plays {
		t.Fatal("the healthy client missed something in every attempt")
	}
	t.Skip("the machine is too busy to tell")
}

// longestStall returns the longest delay of a runnable goroutine while fn ran.
func longestStall(fn func()) (longest time.Duration) {
	const every = 5 * time.Millisecond
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		poll := time.NewTicker(every)
		defer poll.Stop()
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-poll.C:
				longest = max(longest, time.Since(last)-every)
			case <-end:
				return
			}
		}
	}()
	fn()
	close(end)
	<-ended
	return longest
}

// besideSilentClients returns the snapshots that a healthy client missed beside two silent ones,
// and the highest overload level that it got.
func besideSilentClients(t *testing.T) (missed uint64, worst netloop.Overload) {
	// The rate in Hz is low enough for a busy machine, and the snapshots take longer than idle.
	const rate, watched = 20, 16
	const idle = 750 * time.Millisecond // A healthy client sends more often.
	var spam atomic.Uint64              // the client that gets the spam
	// Size 3: the healthy client leaves too, after the last receive.
	ended := make(chan netloop.Code, 3)
	s, _ := serveAs(t, script(func(r *netloop.Room) {
		busy(r)
		r.On(netloop.Update, "test.spam", func(tick *netloop.Tick) {
			if to := netloop.ClientID(spam.Load()); to != 0 { // 80 kB/s of reliable data.
				for range 50 {
					told.Send(tick, netloop.To(to), text{S: "a line that is sixty-four bytes long, as long as a line may be"})
				}
			}
		})
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { ended <- why.Code })
	}), netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(rate)}}, func(s *netloop.Server) { bridge.Netloop.Server(s).SetIdleTimeout(idle) })

	var healthy gaps
	var level atomic.Uint32 // the highest level of overload
	dial(t, s.Addr().String(), func(c *client.Client) {
		healthy.watch(c)
		c.OnOverload(func(o netloop.Overload) { level.Store(max(level.Load(), uint32(o))) })
	})
	vanish := connectToVanish(t, s.Addr().String())
	ignoreErrors := connect(t, s.Addr().String())

	for ignoreErrors.State().Phase != client.Playing {
		ignoreErrors.Step(time.Second / rate) // From now on the test does not step it.
	}
	waitFor(t, func() bool { return healthy.got.Load() > rate/4 })
	spam.Store(uint64(ignoreErrors.ID()))
	vanish()
	missedBefore, from := healthy.missed.Load(), healthy.got.Load()
	waitFor(t, func() bool { return healthy.got.Load() >= from+watched })
	missed, worst = healthy.missed.Load()-missedBefore, netloop.Overload(level.Load())
	// The server detects both, with the right codes.
	codes := map[netloop.Code]bool{}
	for range 2 {
		select {
		case code := <-ended:
			codes[code] = true
		case <-time.After(60 * time.Second):
			t.Fatal("the server did not drop them")
		}
	}
	if !codes[netloop.CodeLost] {
		t.Errorf("they left with %v", codes)
	}
	return missed, worst
}

// connectToVanish connects a client and runs it on its own goroutine until its network is cut:
// then both sides receive no data.
func connectToVanish(t *testing.T, addr string) (vanish func()) {
	t.Helper()
	way, err := netem.Dial(netem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := bridge.Client.NewDialer(way).(*client.Dialer)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := d.Dial(ctx, addr, client.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	start(t, c, nil)
	cut := netem.Way{Link: netem.Link{Loss: 1}}
	return func() { way.Set(netem.Spec{Ways: [2]netem.Way{cut, cut}}) }
}

// intervals collects the times between snapshots of many clients.
type intervals struct {
	mu  sync.Mutex
	all []time.Duration // guarded by mu
}

func (i *intervals) watch(c *client.Client) {
	var last time.Duration
	c.OnSnapshot(func(s client.Snapshot) {
		if last != 0 {
			i.mu.Lock()
			i.all = append(i.all, s.At-last)
			i.mu.Unlock()
		}
		last = s.At
	})
}

// p99 waits for n intervals, takes them, and returns their 99th percentile.
func (i *intervals) p99(t *testing.T, n int) time.Duration {
	t.Helper()
	i.mu.Lock()
	i.all = nil
	i.mu.Unlock()
	waitFor(t, func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return len(i.all) >= n
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	slices.Sort(i.all)
	return i.all[len(i.all)*99/100]
}

// TestASilentClientDoesNotChangeOthersSnapshotIntervals compares the intervals of healthy clients
// before and after one client vanished and another one stopped.
func TestASilentClientDoesNotChangeOthersSnapshotIntervals(t *testing.T) {
	verifyOnly(t)
	const healthy, window = 20, 20 * 60 * 8 // clients; intervals of eight seconds
	s, _ := serve(t, script(busy), 60)
	var gaps intervals
	for range healthy {
		dial(t, s.Addr().String(), gaps.watch)
	}
	vanish := connectToVanish(t, s.Addr().String())
	ignoreErrors := connect(t, s.Addr().String())
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		frames := time.NewTicker(time.Second / 60)
		defer frames.Stop()
		for {
			select {
			case <-stop:
				return
			case <-frames.C:
				ignoreErrors.Step(time.Second / 60)
			}
		}
	}()
	gaps.p99(t, window/4) // All clients have warmed up.
	before := gaps.p99(t, window)
	vanish()
	close(stop)
	<-stopped
	after := gaps.p99(t, window)
	t.Logf("p99 of the interval: %v before, %v after", before, after)
	if moved := after - before; moved > 2*time.Millisecond {
		t.Errorf("the healthy clients' p99 moved by %v", moved)
	}
}
