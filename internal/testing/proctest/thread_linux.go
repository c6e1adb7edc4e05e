package proctest

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the CPU time of the calling thread, without the time of other programs.
func ThreadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // It never fails.
	return time.Duration(t.Nano())
}
