package room

import (
	"cmp"
	"context"
	"errors"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// paced runs a tick that is due, with the current overload level.
func (r *Room) paced(in loop.Input) error {
	in.Overload = r.Load.Next()
	return r.Step(in)
}

// run ticks the room until ctx ends or the room closes itself, and then ends it.
func (r *Room) run(ctx context.Context) error {
	clock, schedule := r.newSchedule()
	err := loop.Run(ctx, clock, schedule, r.paced)
	end := r.Supervisor.endCause()
	r.Admission.End(end.Why.Code, end.Why.Text)
	if err == nil {
		err = r.Shutdown.drain(schedule)
	}
	why := cmp.Or(r.Shutdown.closing, &end.Why)
	closeErr := r.Shutdown.Finish(why.Code, why.Text)
	if r.Shutdown.closing != nil && r.Shutdown.closing.Code == transport.CodeClosing {
		err = nil
	}
	return errors.Join(err, closeErr)
}

// Close ends the room after this tick. Only the first call sets the reason.
func (r *Room) Close(code transport.Code, text string) {
	if r.Shutdown.closing == nil {
		r.Shutdown.closing = &transport.Closed{Code: code, Text: text}
	}
}

// byClock returns the room's clock, and a schedule that runs ticks at the room's rate from now on.
func (r *Room) byClock() (loop.Clock, loop.Schedule) {
	pacer := &loop.Pacer{Timeline: r.Timeline()}
	pacer.Start(r.clock.Now(), firstTick)
	return &sleeper{r.clock, r, pacer}, pacer
}

// Schedule returns the schedule of a spectator room, for a caller that drives it on its own
// goroutine.
func (r *Room) Schedule() loop.Schedule {
	_, schedule := r.newSchedule()
	return schedule
}

// firstTick is the number of a room's first tick.
const firstTick = 1

// Look is Inspect for a function that may change the state. It marks the tick in a recording as not
// replayable, because the recording does not contain the change.
func (r *Room) Look(fn func()) error {
	r.source.unrecorded("a look between two ticks, which may change the state")
	r.Sleep.looked = true
	return r.Inspect(fn)
}
