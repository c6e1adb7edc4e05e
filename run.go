package netloop

import (
	"context"
	"errors"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// One tick is r.step; what comes below paces it and ends it.

// step runs one tick and accounts for it.
func (r *Room) step(in loop.Input) error {
	r.begin(in)
	end := traced(in.Tick)
	rec, err := r.loop.Step(in)
	end()
	r.account(rec)
	if err != nil {
		r.closing = &Closed{CodeInternal, err.Error()}
	}
	if r.closing != nil {
		return r.closing
	}
	return nil
}

// begin tells everybody whom a tick concerns that it begins, and with what input.
func (r *Room) begin(in loop.Input) {
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
	r.server.metrics.ObserveTick(rec, r.spec.Rate.Period())
	r.observeLoad(rec)
	r.observeTick(rec)
	r.reportFaults(rec)
	r.answer(rec.Tick)
	if rec.Tick%r.reportEvery() == 0 {
		r.report()
	}
}

// paced runs a tick that the pacer found due: with what else enters it.
func (r *Room) paced(in loop.Input) error {
	in.Overload = r.nextOverload()
	return r.step(in)
}

// timeline returns the room's rates.
func (r *Room) timeline() loop.Timeline {
	return loop.Timeline{Rate: loop.Rate(r.spec.Rate), Fixed: loop.Rate(r.spec.FixedRate)}
}

// run ticks the room until ctx ends or the room closes itself, and then brings
// it to its end.
func (r *Room) run(ctx context.Context) error {
	pacer := &loop.Pacer{Timeline: r.timeline()}
	pacer.Start(r.server.clock.Now(), firstTick)
	err := loop.Run(ctx, r.server.clock, pacer, r.paced)
	r.server.endAdmission(CodeClosing, "the server is closing")
	if err == nil {
		err = r.drain(pacer)
	}
	why := LeaveReason{CodeClosing, "the server is closing"}
	if r.closing != nil {
		why = LeaveReason{r.closing.Code, r.closing.Text}
	}
	closeErr := r.finish(why)
	if r.closing != nil && r.closing.Code == CodeClosing {
		err = nil
	}
	return errors.Join(err, closeErr)
}

// firstTick is the number of a room's first tick.
const firstTick = 1

// workGrace is how long a drain waits for work given to Go, at least.
const workGrace = 5 * time.Second

// errDrained ends the last ticks of a room.
var errDrained = errors.New("netloop: drained")

// drain goes on ticking while clients may finish, and while work is under way.
func (r *Room) drain(pacer *loop.Pacer) error {
	start := r.server.clock.Now()
	limit := r.server.cfg.DrainTimeout
	if r.in.Tick == 0 {
		return nil // Told to end before its first tick: there is nothing to finish.
	}
	if err := r.tellDrain(limit); err != nil {
		return err
	}
	err := loop.Run(context.Background(), r.server.clock, pacer, func(in loop.Input) error {
		if err := r.paced(in); err != nil {
			return err
		}
		if r.lingers(in.Start-start, limit) {
			return nil
		}
		return errDrained
	})
	if errors.Is(err, errDrained) {
		return nil
	}
	return err
}

// lingers reports whether a drain has something to wait for.
func (r *Room) lingers(elapsed, limit time.Duration) bool {
	return len(r.clients.list) > 0 && elapsed < limit || r.async.pending > 0 && elapsed < max(limit, workGrace)
}

// tellDrain tells the game that the room ends.
func (r *Room) tellDrain(limit time.Duration) error {
	r.feed.drain(limit)
	return r.inspect(func(t *Tick) {
		for _, fn := range r.onDrain {
			ended := r.watched("OnDrain", 0)
			_ = r.call("OnDrain", func() error { fn(t, limit); return nil }) // The log knows.
			ended()
		}
	})
}

// finish lets every client leave, tells it why, removes all systems, and lets the game save.
func (r *Room) finish(why LeaveReason) error {
	r.finishAt.Store(int64(max(r.server.clock.Now(), 1)))
	waited := r.async.pending
	err := r.inspect(func(t *Tick) {
		for len(r.clients.list) > 0 {
			c := r.clients.list[0]
			ended := r.watched("OnLeave", 0)
			r.leave(t, c, why)
			ended()
			c.session.Close(why.Code, why.Text)
		}
	})
	r.tellStall()
	ended := r.watched("Go", workGrace)
	r.endWork(r.async.pending > waited) // What OnLeave has just asked for: to save a player, mostly.
	err = errors.Join(err, r.inspect(r.takeResults))
	if n := r.queued.close(); n > 0 {
		r.server.metrics.AddDrop("post", "closed", uint64(n))
	}
	r.async.wait.Wait() // What the results asked for sees a context that has ended.
	ended()
	r.endSystems()
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	for _, fn := range r.onClose {
		ended := r.watched("OnClose", saveTimeout)
		err = errors.Join(err, r.call("OnClose", func() error { return fn(ctx) }))
		ended()
	}
	r.report()
	return err
}

// endSystems tells every system that is left that it goes.
func (r *Room) endSystems() {
	ended := r.watched("OnRemove", workGrace)
	rec := r.loop.End()
	ended()
	for i := range rec.Panics {
		r.server.metrics.AddPanic(rec.Panics[i].System)
	}
	r.reportFaults(rec)
}

// endWork ends the context of the room's work, after the grace if it has any, and
// returns when all of it is done.
func (r *Room) endWork(grace bool) {
	idle := r.async.idle()
	if grace {
		ctx, cancel := context.WithTimeout(context.Background(), workGrace)
		defer cancel()
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
	r.cancel()
	<-idle
}

// saveTimeout bounds OnClose: as long as service managers wait before they kill.
const saveTimeout = 60 * time.Second

// watched lets the watchdog report a hook of the end that does not return, and that may
// take so much longer than a tick. What it returns says that the hook has.
func (r *Room) watched(hook string, allowed time.Duration) (ended func()) {
	r.watchdog.BeginHook(hook, allowed, r.server.clock.Now())
	return func() {
		if h := r.watchdog.End(); h != nil {
			r.log.Warn("a hook that hung has returned", "hook", hook)
		}
	}
}

// inspect calls fn with a live tick between two ticks.
func (r *Room) inspect(fn func(*Tick)) error {
	r.now.Stage, r.now.System = Update, "room.inspect"
	defer func() { r.now.Stage, r.now.System = 0, "" }()
	return r.call("room.inspect", func() error { fn(&r.tick); return nil })
}
