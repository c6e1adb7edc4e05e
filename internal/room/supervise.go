package room

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// A room's goroutine may die or hang, and then nobody else would say so: the server that has
// started it looks at it now and then.

// life is the goroutine of a room, from Start on.
type life struct {
	over  atomic.Bool
	ended func(error)
	end   context.CancelFunc
}

// End is how a room is brought to its end from outside.
type End struct {
	Why   transport.Closed
	Drain time.Duration // for how long its clients may go on
}

// Start runs the room on a goroutine of its own, until ctx ends, the room closes itself, or End
// says so, and then brings it to its end. How that went it tells ended, once, on some goroutine:
// before the room's own has ended if the room is given up.
func (r *Room) Start(ctx context.Context, ended func(error)) {
	live, end := context.WithCancel(ctx)
	r.life.ended, r.life.end = ended, end
	if r.end.Load() != nil {
		end()
	}
	go r.live(live)
}

// over says how the room has ended, unless somebody has.
func (r *Room) over(err error) {
	if r.life.over.CompareAndSwap(false, true) {
		r.life.end() // A room that was left behind and comes back ends too.
		r.tally.Close(transport.CodeInternal.Name())
		r.endReel(r.seats.ended(), nil)
		r.life.ended(err)
	}
}

// End brings a room that was started to its end from outside: it drains, and then its clients are
// told why. The first to say so decides. Any goroutine may call it, once Start has returned.
func (r *Room) End(e End) {
	if r.end.CompareAndSwap(nil, &e) {
		r.rouse()
		r.life.end()
	}
}

// Ending returns how the room shall be brought to its end from outside; nil if nobody has said so.
// Any goroutine may ask.
func (r *Room) Ending() *End { return r.end.Load() }

// told is how the room ends if it does not close itself.
func (r *Room) told() End {
	if e := r.end.Load(); e != nil {
		return *e
	}
	return End{transport.Closed{Code: transport.CodeClosing, Text: "the server is closing"}, r.cfg.DrainTimeout}
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

// GiveUp leaves a room behind that hangs: its clients are told, and its goroutine, which cannot be
// stopped, ends by itself if it ever comes back.
func (r *Room) GiveUp(err error) {
	const text = "the server hangs"
	r.EndAdmission(transport.CodeInternal, text)
	r.seats.close(transport.CodeInternal, text)
	r.closePosts()
	r.over(fmt.Errorf("netloop: %w", err))
}

// live runs the room to its end, whatever that is: nothing that the room's
// goroutine can do, short of crashing the process, keeps it from saying so.
func (r *Room) live(ctx context.Context) {
	err := errGone
	defer func() { r.over(err) }()
	alive := true
	defer func() {
		if alive {
			err = r.died(recover())
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
	if r.finishAt.Load() != nil {
		return nil // It died of it.
	}
	return r.Finish(transport.CodeInternal, "the server has failed")
}
