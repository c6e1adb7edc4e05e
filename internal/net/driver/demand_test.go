package driver

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// All state that was set before an ask has been seen by work once it runs no more, and work never
// runs twice at the same time.
func TestWorkOnDemandSeesTheStateOfAnAsk(t *testing.T) {
	var there, seen, at, runs atomic.Int64
	d := &onDemand{work: func() bool {
		if at.Add(1) != 1 {
			t.Error("two work at once")
		}
		runs.Add(1)
		seen.Store(there.Load())
		runtime.Gosched()
		at.Add(-1)
		return true
	}}
	for range 50 {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 10 {
					there.Add(1)
					d.ask()
				}
			})
		}
		all.Wait()
		d.left.Wait() // No ask follows: this waits for the last run.
		if seen.Load() != there.Load() {
			t.Fatalf("%d of %d were seen", seen.Load(), there.Load())
		}
	}
	d.stop()
	before := runs.Load()
	if d.ask(); runs.Load() != before || d.running {
		t.Error("it works after its end")
	}
}

// After work has reported false it never runs again, even if asked during that run.
func TestWorkThatIsDoneIsNeverAskedForAgain(t *testing.T) {
	runs := 0
	var d onDemand
	d.work = func() bool {
		runs++
		d.ask()
		return runs < 3
	}
	d.ask()
	d.left.Wait()
	d.ask()
	if d.stop(); runs != 3 {
		t.Errorf("it ran %d times, want 3", runs)
	}
}
