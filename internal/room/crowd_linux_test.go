package room_test

import (
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/proctest"
)

// Twenty hostile clients of a hundred, over 10 000 objects, move the 99th percentile of what ticks
// take of a core by at most a millisecond with what they acknowledge and ask. Clients that join, or
// start anew, are sent the world, which takes its time however few they are: the most that 4 of
// them in every tick may take is less than a tick.
func TestHostileClientsDoNotMoveTheTick(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it depends on timing: make verify runs it")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p99 := func(attack func(*crowd, *guest)) time.Duration {
		c := newCrowd(t, 10_000, 100, 20)
		for range 200 {
			c.play(nil)
		}
		c.clock = proctest.ThreadTime
		for range 600 {
			c.play(attack)
		}
		slices.Sort(c.took)
		return c.took[len(c.took)*99/100]
	}
	for name, attack := range attacksOnTheTick {
		limit := time.Millisecond
		if name == "joins" || name == "full states" {
			limit = 50 * time.Millisecond
		}
		least := time.Hour
		for range 2 {
			calm, hostile := p99(nil), p99(attack)
			t.Logf("%-16s p99 %v, calm %v", name, hostile, calm)
			least = min(least, hostile-calm)
		}
		if least > limit {
			t.Errorf("%s: the 99th percentile moves by %v", name, least)
		}
	}
}
