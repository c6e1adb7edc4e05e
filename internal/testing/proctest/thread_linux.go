package proctest

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is what the thread has had of a core: what other programs take does not count.
func ThreadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // It never fails.
	return time.Duration(t.Nano())
}
