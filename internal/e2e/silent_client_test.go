package e2e_test

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/relay"
)

// verifyOnly skips what depends on the machine's timing unless the long proofs
// were asked for.
func verifyOnly(t *testing.T) {
	t.Helper()
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it depends on timing: make verify runs it")
	}
}

// intervals collects the times between snapshots of many clients.
type intervals struct {
	mu  sync.Mutex
	all []time.Duration // under mu
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

// TestSilentClientMovesNobodysInterval compares the intervals of healthy clients
// before and after one client vanished and another stopped being stepped.
func TestSilentClientMovesNobodysInterval(t *testing.T) {
	verifyOnly(t)
	const healthy, window = 20, 20 * 60 * 8 // clients; intervals of eight seconds
	s, _ := serve(t, script(busy), 60)
	var gaps intervals
	for range healthy {
		dial(t, s.Addr().String(), gaps.watch)
	}
	way, err := relay.Listen(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dial(t, way.Addr().String(), nil)
	deaf := connect(t, s.Addr().String())
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
				deaf.Step(time.Second / 60)
			}
		}
	}()
	gaps.p99(t, window/4) // Everybody has warmed up.
	before := gaps.p99(t, window)
	if err := way.Close(); err != nil {
		t.Fatal(err)
	}
	close(stop)
	<-stopped
	after := gaps.p99(t, window)
	t.Logf("p99 of the interval: %v before, %v after", before, after)
	if moved := after - before; moved > 2*time.Millisecond {
		t.Errorf("the healthy clients' p99 moved by %v", moved)
	}
}
