package room_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// Clients that join and leave, or drop and resume, leave no resources behind: no goroutine, and
// less than 100 bytes each, which is the variance of reused memory.
func TestComingAndGoingLeavesNothingBehind(t *testing.T) {
	rounds := 300
	if os.Getenv("NETLOOP_VERIFY") != "" {
		rounds = 10_000
	}
	w := newReturns(t, netloop.Config{})
	stays, welcome := w.arrive("somebody", newcomer())
	came := 0
	joinAndLeave := func() {
		came++
		g, _ := w.arrive(fmt.Sprint("player ", came), newcomer())
		g.End(transport.Closed{Code: transport.CodeLeft})
		w.step()
	}
	sent := uint64(0)
	dropAndResume := func() {
		w.send("to be kept")
		sent++
		stays.End(lostLink)
		w.step()
		stays, welcome = w.arrive("somebody", with(welcome, sent))
		w.step()
		stays.AppendStream(nil, 1<<20)
	}
	for name, c := range map[string]struct {
		round  func()
		rounds int
	}{"joins and leaves": {joinAndLeave, rounds}, "drops and resumes": {dropAndResume, rounds / 10}} {
		for range 200 { // One-time allocations, and growth to the final size.
			c.round()
		}
		w.told = nil
		goroutines := runtime.NumGoroutine()
		// A leak grows each time; a map that doubles, or a pool that the race detector empties,
		// grows once.
		left := math.Inf(1)
		for range 3 {
			heap := inUse()
			for range c.rounds {
				c.round()
				w.told = w.told[:0]
			}
			left = min(left, float64(inUse()-heap)/float64(c.rounds))
		}
		if noise := 20_000 / float64(c.rounds); left > 100+noise {
			t.Errorf("%s: each of %d leaves %.0f bytes", name, c.rounds, left)
		}
		if len(w.room.Clients()) != 1 || w.room.Admission.Seats() != 1 {
			t.Errorf("%s: %d clients on %d seats", name, len(w.room.Clients()), w.room.Admission.Seats())
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%s: %d goroutines more", name, n-goroutines)
		}
		t.Logf("%s: %.1f bytes each", name, left)
	}
}

func inUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
