package room

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// Step runs one tick; the other functions pace and end the ticks.

// Step runs one tick and accounts for it.
func (r *Room) Step(in loop.Input) error {
	r.begin(in)
	end := traced(in.Tick)
	rec, err := r.loop.Step(in)
	end()
	r.account(rec)
	if err != nil {
		r.closing = &transport.Closed{Code: transport.CodeInternal, Text: err.Error()}
	}
	if r.closing != nil {
		return r.cfg.Closed(r.closing.Code, r.closing.Text)
	}
	return nil
}

// Close ends the room after this tick. The first reason counts.
func (r *Room) Close(code transport.Code, text string) {
	if r.closing == nil {
		r.closing = &transport.Closed{Code: code, Text: text}
	}
}

// begin passes the input of a tick to the parts of the room that depend on it.
func (r *Room) begin(in loop.Input) {
	r.wake()
	r.observeStall(&in, r.in.Start)
	r.in = in
	if r.closesIn > 0 {
		r.closesIn, r.closesAt = 0, in.Start+r.closesIn
	}
	r.feed.begin(&r.in)
	if in.Epoch != *r.epoch.Load() {
		r.epoch.Store(new(in.Epoch))
	}
	r.beginOverload(&in)
	r.rpcs.Begin(in.Tick, in.GameTime)
	r.rpcs.SetPrices(r.feed.prices())
	r.watchdog.Begin(in.Tick, in.Start)
}

// account reports the cost and the faults of a tick.
func (r *Room) account(rec *loop.Record) {
	if h := r.watchdog.End(); h != nil {
		r.log.Warn("a tick that hung has returned", "tick", h.Tick, "took", rec.Duration)
	}
	for _, name := range rec.Cancelled {
		r.feed.unrecorded("the end of the context of system " + name)
	}
	r.feed.end()
	r.tally.ObserveTick(rec, r.spec.Rate.Period())
	r.observeLoad(rec)
	r.observeTick(rec)
	r.reportFaults(rec)
	r.seats.Ticked(r.clock.Now())
	r.cfg.Server.Ticked()
	r.answer(rec.Tick)
	if rec.Tick%r.reportEvery() == 0 {
		r.report()
	}
	r.trySleep()
}

// paced runs a tick that is due, with the overload level that enters it.
func (r *Room) paced(in loop.Input) error {
	in.Overload = r.NextOverload()
	return r.Step(in)
}

// Timeline returns the room's rates.
func (r *Room) Timeline() loop.Timeline {
	return loop.Timeline{Rate: r.spec.Rate, Fixed: r.spec.Fixed}
}

// run ticks the room until ctx ends or the room closes itself, and then ends it.
func (r *Room) run(ctx context.Context) error {
	clock, schedule := r.newSchedule()
	err := loop.Run(ctx, clock, schedule, r.paced)
	end := r.endCause()
	r.EndAdmission(end.Why.Code, end.Why.Text)
	if err == nil {
		err = r.drain(schedule)
	}
	why := cmp.Or(r.closing, &end.Why)
	closeErr := r.Finish(why.Code, why.Text)
	if r.closing != nil && r.closing.Code == transport.CodeClosing {
		err = nil
	}
	return errors.Join(err, closeErr)
}

// byClock starts the schedule of the room's rate.
func (r *Room) byClock() (loop.Clock, loop.Schedule) {
	pacer := &loop.Pacer{Timeline: r.Timeline()}
	pacer.Start(r.clock.Now(), firstTick)
	return &sleeper{r.clock, r, pacer}, pacer
}

// Schedule returns the schedule of a screening, for a caller that drives it on its own goroutine.
func (r *Room) Schedule() loop.Schedule {
	_, schedule := r.newSchedule()
	return schedule
}

// firstTick is the number of a room's first tick.
const firstTick = 1

// errDrained ends the last ticks of a room.
var errDrained = errors.New("netloop: drained")

// drain continues the ticks while clients or work are there, until the time of the End is over. If
// another End shortens that time, game and clients are told again.
func (r *Room) drain(schedule loop.Schedule) error {
	if r.in.Tick == 0 {
		return nil // Told to end before its first tick: there is no work to finish.
	}
	by := time.Duration(math.MaxInt64)
	tell := func() error {
		e := r.end.Load()
		if e.By >= by {
			return nil
		}
		by = e.By
		return r.Drain(max(by-r.clock.Now(), 0))
	}
	if err := tell(); err != nil {
		return err
	}
	err := loop.Run(context.Background(), r.clock, schedule, func(in loop.Input) error {
		if err := tell(); err != nil {
			return err
		}
		if err := r.paced(in); err != nil {
			return err
		}
		if r.Lingers(in.Start) {
			return nil
		}
		return errDrained
	})
	if errors.Is(err, errDrained) {
		return nil
	}
	return err
}

// Lingers reports whether a drain still has clients or work to wait for. Finish waits for running
// work too.
func (r *Room) Lingers(now time.Duration) bool {
	return now < r.end.Load().By && (len(r.clients.list) > 0 || r.async.pending > 0)
}

// Drain tells the game and the clients that the room ends within limit. It may be called again
// with a shorter time.
func (r *Room) Drain(limit time.Duration) error {
	r.feed.drain(limit)
	r.ending, r.closesIn, r.closesAt = true, limit, r.in.Start+limit
	return r.Inspect(func() {
		for _, c := range slices.Clone(r.clients.list) {
			switch {
			case c.dropped != nil: // It can no longer resume.
				r.leave(c, c.dropped)
			case limit > 0:
				c.session.PublishClosing(limit)
			}
		}
		r.game.Drain(limit)
	})
}

// Inspect calls fn between two ticks, as if it ran in one.
func (r *Room) Inspect(fn func()) error {
	r.now.Stage, r.now.System = loop.Update, "room.inspect"
	defer func() { r.now.Stage, r.now.System = 0, "" }()
	return r.Call("room.inspect", func() error { fn(); return nil })
}

// Look is Inspect for a caller that may change the state, which a recording does not hold.
func (r *Room) Look(fn func()) error {
	r.feed.unrecorded("a look between two ticks, which may change the state")
	r.sleep.looked = true
	return r.Inspect(fn)
}
