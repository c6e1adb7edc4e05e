package room

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// A room's goroutine may die or hang without reporting it: the server that has started the room
// checks it at intervals.

// life is the state of a room's goroutine, from Start on.
type life struct {
	over    atomic.Bool
	givenUp atomic.Bool // set by GiveUp; its goroutine may still hang
	ended   func(error)
	stop    func() bool        // ends the watch of Start's context
	ctx     context.Context    // ends once the room has been told to end
	end     context.CancelFunc // cancels ctx
}

// End describes how the room is ended from outside.
type End struct {
	Why   transport.Closed
	Drain time.Duration // for how long the clients may play on
	By    time.Duration // end of the drain, on the room's clock; set by Room.End
}

// Start runs the room on a goroutine of its own, until ctx ends, the room closes itself, or End is
// called; then it closes the room. It calls ended once with the result, on some goroutine: if the
// room is given up, before the room's goroutine has ended. The end of ctx leaves the clients
// Config.DrainTimeout, even if a longer drain is running.
func (r *Room) Start(ctx context.Context, ended func(error)) {
	r.life.ended = ended
	r.life.stop = context.AfterFunc(ctx, r.endWithServer)
	if ctx.Err() != nil {
		r.endWithServer() // Before the first tick.
	}
	go r.live(r.life.ctx)
}

// over reports the end of the room, once.
func (r *Room) over(err error) {
	if r.life.over.CompareAndSwap(false, true) {
		r.life.stop()
		r.life.end()
		r.tally.Close(transport.CodeInternal.Name())
		r.endReel(r.seats.Ended(), nil)
		r.life.ended(err)
	}
}

// End ends a room from outside: the room drains, and then tells its clients the reason. The first
// call sets the reason. A later call can only shorten the drain. Any goroutine may call it, also
// before Start.
func (r *Room) End(e End) {
	e.By = r.clock.Now()
	e.By += min(max(e.Drain, 0), math.MaxInt64-e.By)
	for {
		was := r.end.Load()
		if was != nil {
			if was.By <= e.By {
				return
			}
			e.Why = was.Why
		}
		if r.end.CompareAndSwap(was, &e) {
			break
		}
	}
	r.rouse()
	r.life.end()
}

// endWithServer ends the room because its server ends.
func (r *Room) endWithServer() {
	r.End(End{Why: transport.Closed{Code: transport.CodeClosing, Text: "the server is closing"}, Drain: r.cfg.DrainTimeout})
}

// Ending returns the End that was set from outside; nil without one. Any goroutine may call it.
func (r *Room) Ending() *End { return r.end.Load() }

// endCause returns the End that ends the room: the one set from outside, or else the server's.
func (r *Room) endCause() *End {
	if r.end.Load() == nil {
		r.endWithServer()
	}
	return r.end.Load()
}

// EndAdmission rejects all joins from now on, and tells the server. Any goroutine may call it.
func (r *Room) EndAdmission(code transport.Code, text string) {
	r.refuse(code, text)
	r.cfg.Server.EndAdmission(code, text)
}

func (r *Room) refuse(code transport.Code, text string) {
	r.refusing.CompareAndSwap(nil, &transport.Closed{Code: code, Text: text})
}

// WatchEvery returns the interval of the watchdog's checks: a tenth of its limit, and at most a
// second.
func WatchEvery(limit time.Duration) time.Duration { return min(limit/10, time.Second) }

// Watch logs a tick or a closing hook that hangs, and returns the watchdog's error. One goroutine
// calls it at intervals.
func (r *Room) Watch() error {
	if h, hung := r.watchdog.Check(r.clock.Now()); hung {
		r.metrics.Hangs.Add(1)
		d := r.watchdog.Dump()
		rest := []any{"room", r.spec.Name, "for", h.For, "stack", d.Own, "goroutines", d.Others, "goroutines_omitted", d.Omitted}
		if h.Hook != "" {
			r.cfg.Log.Error("a hook hangs", append(rest, "hook", h.Hook)...)
		} else {
			r.cfg.Log.Error("a tick hangs", append(rest, "tick", h.Tick, "stage", h.Stage.String(), "in", d.Function)...)
		}
	}
	return r.watchdog.Err()
}

// GiveUp abandons a room that hangs. Its clients are told at once. Work that was started with Go
// is given WorkGrace to finish; then the room is over and its name is free, so that a successor
// loads the room's saved state. The goroutine that hangs cannot be stopped. If it ever returns
// from the game's function, it ends without calling another one, and its requests until then
// (work, messages to rooms) are rejected.
func (r *Room) GiveUp(err error) {
	if !r.life.givenUp.CompareAndSwap(false, true) {
		return
	}
	const text = "the server hangs"
	r.EndAdmission(transport.CodeInternal, text)
	r.seats.Close(transport.CodeInternal, text)
	r.closePosts()
	go func() {
		r.async.quiet(WorkGrace)
		r.cancel()
		r.async.quiet(cancelGrace)
		r.leftBehind(r.async.close())
		r.over(fmt.Errorf("netloop: %w", err))
	}()
}

// GivenUp reports whether the room was given up. Any goroutine may call it.
func (r *Room) GivenUp() bool { return r.life.givenUp.Load() }

// exitIfGivenUp ends the goroutine of a room that was given up. The room calls it only with no
// function of the game on the stack.
func (r *Room) exitIfGivenUp() {
	if r.life.givenUp.Load() {
		runtime.Goexit()
	}
}

// LoopClock is the clock of the room's loop. The loop reads it after each system, and a room that
// was given up ends there.
func (r *Room) LoopClock() time.Duration {
	r.exitIfGivenUp()
	return r.clock.Now()
}

// live runs the room to its end, and reports that end even if the room's goroutine panics or
// exits, unless the process crashes.
func (r *Room) live(ctx context.Context) {
	err := errGone
	defer func() {
		if !r.life.givenUp.Load() { // Otherwise GiveUp reports the end, after the saves.
			r.over(err)
		}
	}()
	alive := true
	defer func() {
		if !alive {
			return
		}
		err = r.failure(recover())
		if !r.life.givenUp.Load() {
			err = errors.Join(err, r.finishFailed())
		}
	}()
	r.watchdog.Adopt()
	err = r.run(ctx)
	alive = false
}

// errGone is the error of a room that lost its goroutine while closing.
var errGone = errors.New("netloop: the room's goroutine was ended by runtime.Goexit while the room was closing")

// failure logs and returns the cause of the goroutine's end: a panic outside of every system, or
// runtime.Goexit, which FailNow of a test calls.
func (r *Room) failure(panicked any) error {
	where := r.now.System
	if panicked != nil {
		r.log.Error("the room panicked", "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
		return fmt.Errorf("netloop: the room panicked: %v", panicked)
	}
	if err := r.loop.Err(); err != nil {
		return fmt.Errorf("netloop: the room's goroutine has ended: %w", err)
	}
	return fmt.Errorf("netloop: the room's goroutine has ended: system %q called runtime.Goexit", where)
}

// finishFailed closes a room after the death of its goroutine: as after the panic of a critical
// system, clients are told and the game saves its state in any condition.
func (r *Room) finishFailed() error {
	_ = r.watchdog.End() // Forget a hang before the death.
	r.EndAdmission(transport.CodeInternal, "the server has failed")
	// Finish continues with the steps that have not begun.
	return r.Finish(transport.CodeInternal, "the server has failed")
}
