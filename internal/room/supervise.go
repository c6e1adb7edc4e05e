package room

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// A room's goroutine may die or hang without a report. The server that has started the room checks
// it at intervals.

// Supervisor starts and ends a room, and checks its goroutine.
type Supervisor struct {
	*core
	room   *Room
	end    atomic.Pointer[End] // set by End
	over   atomic.Bool
	report func(error)        // the function ended of Start
	stop   func() bool        // stops the reaction to the end of Start's context
	told   context.Context    // ends once the room has been told to end
	tell   context.CancelFunc // cancels told
}

// End describes how the room is ended from outside.
type End struct {
	Why   transport.Closed
	Drain time.Duration // time for which clients may continue to play
	By    time.Duration // end of the drain, on the room's clock; set by Supervisor.End
}

// Start runs the room on its own goroutine until ctx ends, the room closes itself, or End is
// called; then it closes the room. It calls ended once with the result, on any goroutine. If the
// room is given up, this happens before the room's goroutine has ended. After the end of ctx the
// room drains for at most Config.DrainTimeout, even if a longer drain is running.
func (v *Supervisor) Start(ctx context.Context, ended func(error)) {
	v.report = ended
	v.stop = context.AfterFunc(ctx, v.endWithServer)
	if ctx.Err() != nil {
		v.endWithServer() // The context has ended before the first tick.
	}
	go v.live(v.told)
}

// finished reports the end of the room, once.
func (v *Supervisor) finished(err error) {
	if v.over.CompareAndSwap(false, true) {
		v.stop()
		v.tell()
		v.tally.Close(transport.CodeInternal.Name())
		v.room.feed.end(v.room.Admission.seats.Ended(), nil)
		v.report(err)
	}
}

// End ends a room from outside: the room drains, and then sends its clients the reason. The first
// call sets the reason. A later call can only shorten the drain. Any goroutine may call it, also
// before Start.
func (v *Supervisor) End(e End) {
	e.By = v.clock.Now()
	e.By += min(max(e.Drain, 0), math.MaxInt64-e.By)
	for {
		was := v.end.Load()
		if was != nil {
			if was.By <= e.By {
				return
			}
			e.Why = was.Why
		}
		if v.end.CompareAndSwap(was, &e) {
			break
		}
	}
	v.Sleep.rouse()
	v.tell()
}

// endWithServer ends the room because its server ends.
func (v *Supervisor) endWithServer() {
	v.End(End{Why: transport.Closed{Code: transport.CodeClosing, Text: "the server is closing"}, Drain: v.cfg.DrainTimeout})
}

// Ending returns the End that was passed to Supervisor.End, or nil without one. Any goroutine may
// call it.
func (v *Supervisor) Ending() *End { return v.end.Load() }

// Told returns a context that ends once the room has been told to end, or has ended. Any goroutine
// may call it.
func (v *Supervisor) Told() context.Context { return v.told }

// endCause returns the End that ends the room: the End that was passed to Supervisor.End, or else
// the End of the server.
func (v *Supervisor) endCause() *End {
	if v.end.Load() == nil {
		v.endWithServer()
	}
	return v.end.Load()
}

// WatchEvery returns the interval of the watchdog's checks: a tenth of its limit, and at most a
// second.
func WatchEvery(limit time.Duration) time.Duration { return min(limit/10, time.Second) }

// Watch checks the room for a tick or a closing hook that hangs, logs it, and returns the
// watchdog's error. One goroutine calls it at intervals.
func (v *Supervisor) Watch() error {
	if h, hung := v.watchdog.Check(v.clock.Now()); hung {
		v.metrics.Hangs.Add(1)
		d := v.watchdog.Dump()
		rest := []any{"room", v.spec.Name, "for", h.For, "stack", d.Own, "goroutines", d.Others, "goroutines_omitted", d.Omitted}
		if h.Hook != "" {
			v.cfg.Log.Error("a hook hangs", append(rest, "hook", h.Hook)...)
		} else {
			v.cfg.Log.Error("a tick hangs", append(rest, "tick", h.Tick, "stage", h.Stage.String(), "in", d.Function)...)
		}
	}
	return v.watchdog.Err()
}

// GiveUp abandons a room that hangs. It tells the room's clients at once. Work that was started
// with Go gets WorkGrace to finish. Then the room is over and its name is free, so that a successor
// can load the room's saved state. The hanging goroutine cannot be stopped: if it ever returns from
// the game's function, it ends without calling another function of the game, and its requests until
// then (work, messages to rooms) are rejected.
func (v *Supervisor) GiveUp(err error) {
	if !v.givenUp.CompareAndSwap(false, true) {
		return
	}
	const text = "the server hangs"
	v.room.Admission.End(transport.CodeInternal, text)
	v.room.Admission.seats.Close(transport.CodeInternal, text)
	v.room.Mailbox.close()
	go func() {
		v.room.Async.quiet(WorkGrace)
		v.room.Async.cancel()
		v.room.Async.quiet(cancelGrace)
		v.room.Async.leftBehind(v.room.Async.close())
		v.finished(fmt.Errorf("netloop: %w", err))
	}()
}

// live runs the room to its end, and reports that end even if the room's goroutine panics or
// exits, unless the process crashes.
func (v *Supervisor) live(ctx context.Context) {
	err := errGone
	defer func() {
		if !v.givenUp.Load() { // Otherwise GiveUp reports the end.
			v.finished(err)
		}
	}()
	alive := true
	defer func() {
		if !alive {
			return
		}
		err = v.failure(recover())
		if !v.givenUp.Load() {
			err = errors.Join(err, v.finishFailed())
		}
	}()
	v.watchdog.SetGoroutine()
	err = v.room.run(ctx)
	alive = false
}

// errGone is the error of a room that lost its goroutine while closing.
var errGone = errors.New("netloop: the room's goroutine was ended by runtime.Goexit while the room was closing")

// failure logs and returns the cause of the goroutine's end: a panic outside of every system, or
// runtime.Goexit, which FailNow of a test calls.
func (v *Supervisor) failure(panicked any) error {
	where := v.now.System
	if panicked != nil {
		v.log.Error("the room panicked", "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
		return fmt.Errorf("netloop: the room panicked: %v", panicked)
	}
	if err := v.loop.Err(); err != nil {
		return fmt.Errorf("netloop: the room's goroutine has ended: %w", err)
	}
	return fmt.Errorf("netloop: the room's goroutine has ended: system %q called runtime.Goexit", where)
}

// finishFailed closes a room after the death of its goroutine. As after the panic of a critical
// system, it sends clients the reason, and the game saves its state as it is.
func (v *Supervisor) finishFailed() error {
	_ = v.watchdog.End() // Forget a hang that was detected before the goroutine died.
	v.room.Admission.End(transport.CodeInternal, "the server has failed")
	// Finish continues with the steps that have not begun.
	return v.room.Shutdown.Finish(transport.CodeInternal, "the server has failed")
}
