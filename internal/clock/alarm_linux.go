package clock

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxAlarms bounds the unused timerfds that are kept. Each waiting goroutine, one per room, uses
// one, and rooms wait at different times.
const maxAlarms = 64

// alarms are the timerfds of a clock. The runtime waits for its timers in epoll with a timeout of
// whole milliseconds (golang/go#53824), so that they are up to a millisecond late. The expiry of a
// timerfd ends that wait on time.
type alarms struct {
	mu     sync.Mutex
	closed bool
	free   []*alarm
}

// newWaiter returns the waiter of this system.
func newWaiter() waiter { return new(alarms) }

func (a *alarms) wait(ctx context.Context, d time.Duration) {
	al := a.take()
	if al == nil {
		Sleep(ctx, d)
		return
	}
	if !al.wait(ctx, d) {
		_ = al.close() // closing a timerfd loses no data
		Sleep(ctx, d)
		return
	}
	a.put(al)
}

// take returns an unused alarm, or nil if the system provides none.
func (a *alarms) take() *alarm {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	if n := len(a.free); n > 0 {
		al := a.free[n-1]
		a.free = a.free[:n-1]
		return al
	}
	return newAlarm()
}

func (a *alarms) put(al *alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(a.free) >= maxAlarms {
		_ = al.close()
		return
	}
	a.free = append(a.free, al)
}

func (a *alarms) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var errs []error
	for _, al := range a.free {
		errs = append(errs, al.close())
	}
	a.free = nil
	return errors.Join(errs...)
}

// alarm is one timerfd, used by one goroutine at a time.
type alarm struct {
	file *os.File
	// set arms the timerfd; all waits use the same closure, because a closure per wait would
	// allocate memory in each tick.
	set  func(fd uintptr)
	spec unix.ItimerSpec
	err  error
	raw  rawControl
	buf  [8]byte
	// ended is the Done channel of the context that stops the wait, and forget unregisters from
	// that context. Both are kept between waits, because a room has one context, and a registration
	// for each wait would allocate memory in each tick.
	ended  <-chan struct{}
	forget func() bool
}

type rawControl interface {
	Control(f func(fd uintptr)) error
}

func newAlarm() *alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil // out of descriptors, or forbidden: runtime timers are used instead
	}
	al := &alarm{file: os.NewFile(uintptr(fd), "timerfd")}
	al.raw, _ = al.file.SyscallConn() // It does not fail for an open file.
	al.set = func(fd uintptr) { al.err = unix.TimerfdSettime(int(fd), 0, &al.spec, nil) }
	return al
}

// wait reads the timerfd and also sets a read deadline, so that either the kernel or the runtime
// ends the wait, whichever is earlier. It reports whether the alarm is still usable.
//
// The end of ctx moves the deadline into the past. If that happens after the wait, the next user of
// the alarm returns early once, which callers expect.
func (al *alarm) wait(ctx context.Context, d time.Duration) bool {
	if done := ctx.Done(); done != al.ended {
		al.follow(ctx, done)
	}
	_ = al.file.SetReadDeadline(time.Now().Add(d)) // Without one the read fails.
	if ctx.Err() != nil {
		return true // It may have ended before the deadline was set, which then outlived it.
	}
	al.spec.Value = unix.NsecToTimespec(int64(d))
	if al.raw.Control(al.set) != nil || al.err != nil {
		return false
	}
	_, err := al.file.Read(al.buf[:])
	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// follow makes the end of ctx stop the wait, in place of the end of the previous wait's context.
func (al *alarm) follow(ctx context.Context, done <-chan struct{}) {
	if al.forget != nil {
		al.forget()
	}
	al.ended, al.forget = done, nil
	if done != nil {
		al.forget = context.AfterFunc(ctx, al.cancel)
	}
}

func (al *alarm) cancel() { _ = al.file.SetReadDeadline(time.Unix(1, 0)) }

func (al *alarm) close() error {
	if al.forget != nil {
		al.forget()
	}
	return al.file.Close()
}
