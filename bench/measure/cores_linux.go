package measure

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// TwoCores returns a core for servers and one for clients.
func TwoCores() (server, player int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, 0, fmt.Errorf("the cores of this program: %w", err)
	}
	var cores []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cores = append(cores, cpu)
		}
	}
	if len(cores) < 2 {
		return 0, 0, errors.New("two cores are needed: one for the server, one for its clients")
	}
	return cores[0], cores[1], nil
}

// Pinned returns a function that starts a program on one core alone, which is the only one that the
// program's runtime sees.
func Pinned(core int) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var before, one unix.CPUSet
		if err := unix.SchedGetaffinity(0, &before); err != nil {
			return fmt.Errorf("the cores of this thread: %w", err)
		}
		one.Set(core)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return fmt.Errorf("pin to core %d: %w", core, err)
		}
		started := cmd.Start() // The child inherits the cores of the thread that starts it.
		return errors.Join(started, unix.SchedSetaffinity(0, &before))
	}
}

// CPUTime returns the processor time of a process, on all cores.
func CPUTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED of a whole process
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("the processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// Now returns the time of the machine's monotonic clock, which all processes and namespaces share.
func Now() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // Linux always has that clock.
	return time.Duration(t.Nano())
}

// The signals of a measurement. Stall makes a server run one long tick; servers do not use this
// signal otherwise. Pause suspends a program, and Resume continues it.
const (
	Stall  = unix.SIGIO
	Pause  = unix.SIGSTOP
	Resume = unix.SIGCONT
)
