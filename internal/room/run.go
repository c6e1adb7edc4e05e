package room

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// One tick is Step; what comes below paces it and ends it.

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

// Close ends the room after this tick, for the reason that comes first.
func (r *Room) Close(code transport.Code, text string) {
	if r.closing == nil {
		r.closing = &transport.Closed{Code: code, Text: text}
	}
}

// begin tells everybody whom a tick concerns that it begins, and with what input.
func (r *Room) begin(in loop.Input) {
	r.wake()
	r.observeStall(&in, r.in.Start)
	r.in = in
	r.feed.begin(&r.in)
	if in.Epoch != *r.epoch.Load() {
		r.epoch.Store(new(in.Epoch))
	}
	r.beginOverload(&in)
	r.rpcs.Begin(in.Tick, in.GameTime)
	r.rpcs.SetPrices(r.feed.prices())
	r.watchdog.Begin(in.Tick, in.Start)
}

// account takes what a tick cost and what went wrong in it to whoever wants to know.
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
	r.cfg.Server.Ticked()
	r.answer(rec.Tick)
	if rec.Tick%r.reportEvery() == 0 {
		r.report()
	}
	r.settle()
}

// paced runs a tick that the pacer found due: with what else enters it.
func (r *Room) paced(in loop.Input) error {
	in.Overload = r.NextOverload()
	return r.Step(in)
}

// Timeline returns the room's rates.
func (r *Room) Timeline() loop.Timeline {
	return loop.Timeline{Rate: r.spec.Rate, Fixed: r.spec.Fixed}
}

// run ticks the room until ctx ends or the room closes itself, and then brings
// it to its end.
func (r *Room) run(ctx context.Context) error {
	clock, schedule := r.paces()
	err := loop.Run(ctx, clock, schedule, r.paced)
	end := r.told()
	r.EndAdmission(end.Why.Code, end.Why.Text)
	if err == nil {
		err = r.drain(schedule, end.Drain)
	}
	why := cmp.Or(r.closing, &end.Why)
	closeErr := r.Finish(why.Code, why.Text)
	if r.closing != nil && r.closing.Code == transport.CodeClosing {
		err = nil
	}
	return errors.Join(err, closeErr)
}

// byClock lets the room run the ticks of its rate, from now on.
func (r *Room) byClock() (loop.Clock, loop.Schedule) {
	pacer := &loop.Pacer{Timeline: r.Timeline()}
	pacer.Start(r.clock.Now(), firstTick)
	return &sleeper{r.clock, r, pacer}, pacer
}

// Schedule returns the schedule of a screening, for who drives it on a goroutine of its own.
func (r *Room) Schedule() loop.Schedule {
	_, schedule := r.paces()
	return schedule
}

// firstTick is the number of a room's first tick.
const firstTick = 1

// WorkGrace is how long a drain waits for work given to Go, at least.
const WorkGrace = 5 * time.Second

// errDrained ends the last ticks of a room.
var errDrained = errors.New("netloop: drained")

// drain goes on ticking while clients may finish, and while work is under way.
func (r *Room) drain(schedule loop.Schedule, limit time.Duration) error {
	start := r.clock.Now()
	if r.in.Tick == 0 {
		return nil // Told to end before its first tick: there is nothing to finish.
	}
	if err := r.Drain(limit); err != nil {
		return err
	}
	err := loop.Run(context.Background(), r.clock, schedule, func(in loop.Input) error {
		if err := r.paced(in); err != nil {
			return err
		}
		if r.Lingers(in.Start-start, limit) {
			return nil
		}
		return errDrained
	})
	if errors.Is(err, errDrained) {
		return nil
	}
	return err
}

// Lingers reports whether a drain has something to wait for.
func (r *Room) Lingers(elapsed, limit time.Duration) bool {
	return len(r.clients.list) > 0 && elapsed < limit || r.async.pending > 0 && elapsed < max(limit, WorkGrace)
}

// Drain tells the game and the clients that the room ends, within a time at the latest.
func (r *Room) Drain(limit time.Duration) error {
	r.feed.drain(limit)
	r.ending, r.closesAt = true, r.in.Start+limit
	return r.Inspect(func() {
		for _, c := range slices.Clone(r.clients.list) {
			switch {
			case c.dropped != nil: // It cannot come back any more.
				r.leave(c, c.dropped)
			case limit > 0:
				c.session.PublishClosing(limit)
			}
		}
		r.game.Drain(limit)
	})
}

// Finish lets every client leave, tells it why, removes all systems, and lets the game save.
func (r *Room) Finish(code transport.Code, text string) error {
	r.ending = true
	r.refuse(code, text)
	r.finishAt.Store(new(r.clock.Now()))
	waited := r.async.pending
	err := r.Inspect(func() {
		for len(r.clients.list) > 0 {
			c := r.clients.list[0]
			ended := r.Watched("OnLeave", 0)
			r.leave(c, &transport.Closed{Code: code, Text: text})
			ended()
		}
		r.closeCamera(&transport.Closed{Code: code, Text: text})
	})
	r.seats.close(code, text)
	r.tellStall()
	ended := r.Watched("Go", WorkGrace)
	// What OnLeave has just asked for: to save a player, mostly.
	r.endWork(r.async.pending > waited)
	err = errors.Join(err, r.Inspect(r.takeResults))
	r.closePosts()
	r.dropLetters()
	r.async.wait.Wait() // What the results asked for sees a context that has ended.
	ended()
	r.endSystems()
	ctx, cancel := context.WithTimeout(context.Background(), SaveTimeout)
	defer cancel()
	err = errors.Join(err, r.game.Close(ctx))
	r.report()
	r.tally.Close(code.Name())
	return err
}

// endSystems tells every system that is left that it goes.
func (r *Room) endSystems() {
	ended := r.Watched("OnRemove", WorkGrace)
	rec := r.loop.End()
	ended()
	for i := range rec.Panics {
		r.metrics.Panics.Add(1, rec.Panics[i].System)
	}
	r.reportFaults(rec)
}

// endWork ends the context of the room's work, after the grace if it has any, and
// returns when all of it is done.
func (r *Room) endWork(grace bool) {
	idle := r.async.idle()
	if grace {
		ctx, cancel := context.WithTimeout(context.Background(), WorkGrace)
		defer cancel()
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
	r.cancel()
	<-idle
}

// SaveTimeout bounds OnClose: as long as service managers wait before they kill.
const SaveTimeout = 60 * time.Second

// Watched lets the watchdog report a hook of the end that does not return, and that may
// take so much longer than a tick. What it returns says that the hook has.
func (r *Room) Watched(hook string, allowed time.Duration) (ended func()) {
	r.watchdog.BeginHook(hook, allowed, r.clock.Now())
	return func() {
		if h := r.watchdog.End(); h != nil {
			r.log.Warn("a hook that hung has returned", "hook", hook)
		}
	}
}

// Inspect calls fn between two ticks, as if it ran in one.
func (r *Room) Inspect(fn func()) error {
	r.now.Stage, r.now.System = loop.Update, "room.inspect"
	defer func() { r.now.Stage, r.now.System = 0, "" }()
	return r.Call("room.inspect", func() error { fn(); return nil })
}

// Look is Inspect for somebody who may change the state, which a recording does not hold.
func (r *Room) Look(fn func()) error {
	r.feed.unrecorded("a look between two ticks, which may change the state")
	r.sleep.looked = true
	return r.Inspect(fn)
}
