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

// A room's goroutine may die or hang, and then nobody else would say so: the server that has
// started it looks at it now and then.

// life is the goroutine of a room, from Start on.
type life struct {
	over    atomic.Bool
	givenUp atomic.Bool // by GiveUp; its goroutine may still hang
	ended   func(error)
	stop    func() bool        // ends the watch of the context of Start
	ctx     context.Context    // ends once the room is told to end
	end     context.CancelFunc // of ctx
}

// End is how a room is brought to its end from outside.
type End struct {
	Why   transport.Closed
	Drain time.Duration // for how long its clients may go on
	By    time.Duration // when that time is over, on the room's clock; set by Room.End
}

// Start runs the room on a goroutine of its own, until ctx ends, the room closes itself, or End
// says so, and then brings it to its end. How that went it tells ended, once, on some goroutine:
// before the room's own has ended if the room is given up. The end of ctx leaves the clients
// Config.DrainTimeout, also where a longer drain runs.
func (r *Room) Start(ctx context.Context, ended func(error)) {
	r.life.ended = ended
	r.life.stop = context.AfterFunc(ctx, r.endWithServer)
	if ctx.Err() != nil {
		r.endWithServer() // Before the first tick.
	}
	go r.live(r.life.ctx)
}

// over says how the room has ended, unless somebody has.
func (r *Room) over(err error) {
	if r.life.over.CompareAndSwap(false, true) {
		r.life.stop()
		r.life.end()
		r.tally.Close(transport.CodeInternal.Name())
		r.endReel(r.seats.ended(), nil)
		r.life.ended(err)
	}
}

// End brings a room to its end from outside: it drains, and then its clients are told why. The
// first call decides the reason. A later one can only shorten the drain. Any goroutine may call it,
// also before Start.
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

// endWithServer ends the room because its server does.
func (r *Room) endWithServer() {
	r.End(End{Why: transport.Closed{Code: transport.CodeClosing, Text: "the server is closing"}, Drain: r.cfg.DrainTimeout})
}

// Ending returns how the room shall be brought to its end from outside; nil if nobody has said so.
// Any goroutine may ask.
func (r *Room) Ending() *End { return r.end.Load() }

// told is how the room ends if it does not close itself.
func (r *Room) told() *End {
	if r.end.Load() == nil {
		r.endWithServer()
	}
	return r.end.Load()
}

// EndAdmission refuses whoever comes from now on, and tells the server. Any goroutine may call it.
func (r *Room) EndAdmission(code transport.Code, text string) {
	r.refuse(code, text)
	r.cfg.Server.EndAdmission(code, text)
}

func (r *Room) refuse(code transport.Code, text string) {
	r.refusing.CompareAndSwap(nil, &transport.Closed{Code: code, Text: text})
}

// WatchEvery is after how long the watchdog looks again: ten times within its limit, and once a
// second at least.
func WatchEvery(limit time.Duration) time.Duration { return min(limit/10, time.Second) }

// Watch reports a tick or a hook at the end that hangs, and returns the error of one that does.
// One goroutine calls it, now and then.
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

// GiveUp leaves a room behind that hangs. Its clients are told at once. Work that was given to Go
// before is finished, for WorkGrace at most; then the room is over, and its name free, so that a
// successor loads what the room has saved. The goroutine that hangs cannot be stopped. If it ever
// returns from the game's function it ends without calling another one, and what it asks for until
// then (work, messages to rooms) is refused.
func (r *Room) GiveUp(err error) {
	if !r.life.givenUp.CompareAndSwap(false, true) {
		return
	}
	const text = "the server hangs"
	r.EndAdmission(transport.CodeInternal, text)
	r.seats.close(transport.CodeInternal, text)
	r.closePosts()
	go func() {
		r.async.quiet(WorkGrace)
		r.cancel()
		r.async.quiet(cancelGrace)
		r.leftBehind(r.async.close())
		r.over(fmt.Errorf("netloop: %w", err))
	}()
}

// GivenUp reports whether the room was given up. Any goroutine may ask.
func (r *Room) GivenUp() bool { return r.life.givenUp.Load() }

// goOn ends the goroutine of a room that was given up. The room calls it where no function of the
// game is on the stack.
func (r *Room) goOn() {
	if r.life.givenUp.Load() {
		runtime.Goexit()
	}
}

// LoopClock is the clock of the room's loop, which reads it after each system: there a room that
// was given up ends.
func (r *Room) LoopClock() time.Duration {
	r.goOn()
	return r.clock.Now()
}

// live runs the room to its end, whatever that is: nothing that the room's
// goroutine can do, short of crashing the process, keeps it from saying so.
func (r *Room) live(ctx context.Context) {
	err := errGone
	defer func() {
		if !r.life.givenUp.Load() { // Else GiveUp says so, once the saves are finished.
			r.over(err)
		}
	}()
	alive := true
	defer func() {
		if !alive {
			return
		}
		err = r.died(recover())
		if !r.life.givenUp.Load() {
			err = errors.Join(err, r.bury())
		}
	}()
	r.watchdog.Adopt()
	err = r.run(ctx)
	alive = false
}

// errGone is the error of a room whose goroutine has ended in the midst of its
// end.
var errGone = errors.New("netloop: the room's goroutine was ended by runtime.Goexit while the room was closing")

// died says what ended the room's goroutine: a panic outside of every system, or
// runtime.Goexit, which is what the FailNow of a test calls.
func (r *Room) died(panicked any) error {
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

// bury is the end of a room whose goroutine has died: as after the panic of a
// critical system clients are told and the game saves, whatever state that is.
func (r *Room) bury() error {
	_ = r.watchdog.End() // If it hung before it died, that is over.
	r.EndAdmission(transport.CodeInternal, "the server has failed")
	return r.Finish(transport.CodeInternal, "the server has failed") // Or the rest of it.
}
