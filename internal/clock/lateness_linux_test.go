package clock

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processTime returns the CPU time of this process.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timerfd makes a timerfd as the netpoller wants it.
func timerfd() *os.File {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		panic(err)
	}
	return os.NewFile(uintptr(fd), "timerfd")
}

func arm(f *os.File, value, interval time.Duration) {
	raw, err := f.SyscallConn()
	if err != nil {
		panic(err)
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(value)), Interval: unix.NsecToTimespec(int64(interval))}
	if err := raw.Control(func(fd uintptr) { err = unix.TimerfdSettime(int(fd), 0, &spec, nil) }); err != nil {
		panic(err)
	}
}

var systemWaits = []waiting{
	{"timerfd through the netpoller", func(s *System) (func(context.Context, time.Duration) error, func()) {
		f := timerfd()
		var b [8]byte
		return func(ctx context.Context, at time.Duration) error {
			if left := at - s.Now(); left > 0 {
				arm(f, left, 0)
				_, _ = f.Read(b[:])
			}
			return ctx.Err()
		}, func() { _ = f.Close() }
	}},
	{"timer, and a periodic timerfd beside", func(s *System) (func(context.Context, time.Duration) error, func()) {
		f := timerfd()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			var b [8]byte
			for {
				if _, err := f.Read(b[:]); err != nil {
					return
				}
			}
		}()
		armed := false
		return func(ctx context.Context, at time.Duration) error {
			left := at - s.Now()
			if !armed {
				arm(f, left, time.Second/60)
				armed = true
			}
			Sleep(ctx, left)
			return ctx.Err()
		}, func() { _ = f.Close(); <-ended }
	}},
	{"locked thread, clock_nanosleep", func(s *System) (func(context.Context, time.Duration) error, func()) {
		runtime.LockOSThread()
		return func(ctx context.Context, at time.Duration) error {
			nanosleep(at - s.Now())
			return ctx.Err()
		}, runtime.UnlockOSThread
	}},
	{"the same, 0.1 ms early, and a spin", func(s *System) (func(context.Context, time.Duration) error, func()) {
		runtime.LockOSThread()
		return func(ctx context.Context, at time.Duration) error {
			nanosleep(at - s.Now() - 100*time.Microsecond)
			for s.Now() < at {
			}
			return ctx.Err()
		}, runtime.UnlockOSThread
	}},
}

func nanosleep(d time.Duration) {
	if d <= 0 {
		return
	}
	spec := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &spec, nil)
}

// There is a wait per tick.
func TestWaitingAllocatesNothing(t *testing.T) {
	s := NewSystem()
	defer s.Close()
	ctx := t.Context()
	wait := func() {
		if err := s.WaitUntil(ctx, s.Now()+time.Microsecond); err != nil {
			t.Error(err)
		}
	}
	wait() // Makes the timer.
	if n := testing.AllocsPerRun(50, wait); n != 0 {
		t.Errorf("a wait allocates %v times", n)
	}
}
