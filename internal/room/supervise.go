package room

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// A room's goroutine may die or hang, and then nobody else would say so: Run
// stands beside it and watches.

// Run runs the room on a goroutine of its own and returns how it ended. A
// room that hangs is left behind if the configuration says so, or when the server
// is told to end: its goroutine cannot be stopped, so the process should end.
func (r *Room) Run(ctx context.Context) error {
	ended := make(chan error, 1) // Size 1: a room that comes back later finds nobody.
	live, end := context.WithCancel(ctx)
	defer end() // A room that was left behind and comes back ends too.
	go r.live(live, ended)

	given := make(chan error, 1) // Size 1: so does giving up on it.
	watch, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { r.watch(watch, ctx, given) })
	defer watching.Wait()
	defer stop()

	select {
	case err := <-ended:
		return err
	case err := <-given:
		r.cfg.Server.EndAdmission(transport.CodeInternal, "the server hangs")
		return err
	}
}

// watchEvery is after how long the watchdog looks again: ten times within its limit, and once a
// second at least.
func watchEvery(limit time.Duration) time.Duration { return min(limit/10, time.Second) }

// watch reports a tick or a hook at the end that hangs, until its own context ends. It gives up on
// the room if it should, or once run has ended too.
func (r *Room) watch(ctx, run context.Context, given chan<- error) {
	if r.cfg.Watchdog < 0 {
		return
	}
	for pause(ctx, watchEvery(r.cfg.Watchdog)) {
		if h, hung := r.watchdog.Check(r.clock.Now()); hung {
			d := r.watchdog.Dump()
			rest := []any{"for", h.For, "stack", d.Own, "goroutines", d.Others, "goroutines_omitted", d.Omitted}
			if h.Hook != "" {
				r.cfg.Log.Error("a hook hangs", append(rest, "hook", h.Hook)...)
			} else {
				r.cfg.Log.Error("a tick hangs", append(rest, "tick", h.Tick, "stage", h.Stage.String(), "in", d.Function)...)
			}
		}
		if err := r.watchdog.Err(); err != nil && (r.cfg.WatchdogExit || run.Err() != nil) {
			given <- fmt.Errorf("netloop: %w", err)
			return
		}
	}
}

// pause waits for d, and reports false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-wait.Done()
	return ctx.Err() == nil
}

// live runs the room to its end, whatever that is: nothing that the room's
// goroutine can do, short of crashing the process, keeps it from saying so.
func (r *Room) live(ctx context.Context, ended chan<- error) {
	err := errGone
	defer func() { ended <- err }()
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
	r.cfg.Server.EndAdmission(transport.CodeInternal, "the server has failed")
	if r.finishAt.Load() != nil {
		return nil // It died of it.
	}
	return r.Finish(transport.CodeInternal, "the server has failed")
}
