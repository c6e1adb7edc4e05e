package room

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// The end of a room, from its last tick on. Each end (by Close, CloseEmpty, an operator, the end
// of the server, a panic, runtime.Goexit) runs these steps; only a room that hangs is given up
// instead (supervise.go). Each wait has a bound:
//
//	drain           ticks continue while clients are there: for the time of End
//	refuseMessages  no wait: messages that no tick takes are refused, their senders told
//	leaveAll        OnLeave of each client: the watchdog's limit for each
//	finishAll       work given to Go and its results: WorkGrace for all of it, with a live
//	                context; then cancelGrace for the rest, then it is abandoned
//	endSystems      OnRemove: WorkGrace, and the watchdog's limit
//	saveAll         OnClose: SaveTimeout, and the watchdog's limit

const (
	// WorkGrace is how long the end of a room waits for work given to Go before it cancels it.
	WorkGrace = 5 * time.Second
	// cancelGrace is how long work may take to return once its context has ended. Work that takes
	// longer ignores its context.
	cancelGrace = time.Second
	// SaveTimeout bounds OnClose: as long as service managers wait before they kill.
	SaveTimeout = 60 * time.Second
)

// Ended returns why the room ends, once its last tick has run; nil before. Any goroutine may call
// it.
func (r *Room) Ended() *transport.Closed { return r.ended.Load() }

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
		e := r.Supervisor.end.Load()
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
	return now < r.Supervisor.end.Load().By && (len(r.clients.list) > 0 || r.Async.pending > 0)
}

// Drain tells the game and the clients that the room ends within limit. It may be called again
// with a shorter time.
func (r *Room) Drain(limit time.Duration) error {
	r.source.drain(limit)
	r.ending, r.closesIn, r.closesAt = true, limit, r.in.Start+limit
	return r.Inspect(func() {
		for _, c := range slices.Clone(r.clients.list) {
			switch {
			case c.dropped != nil: // It can no longer resume.
				r.connections.leave(c, c.dropped)
			case limit > 0:
				c.session.PublishClosing(limit)
			}
		}
		r.game.Drain(limit)
	})
}

// Finish ends a room that runs no more ticks: each client leaves and is told why, work is
// finished, all systems are removed, and the game saves. A second call runs the steps that the
// first did not begin because a step ended its goroutine.
func (r *Room) Finish(code transport.Code, text string) (err error) {
	r.ending = true
	r.Admission.refuse(code, text)
	if r.ended.CompareAndSwap(nil, &transport.Closed{Code: code, Text: text}) {
		r.finishAt.Store(new(r.clock.Now()))
	}
	steps := [...]func() error{
		r.refuseMessages, r.leaveAll, r.closeSessions, r.Async.finishAll, r.endSystems, r.saveAll,
	}
	for r.finished < len(steps) {
		step := steps[r.finished]
		r.finished++
		err = errors.Join(err, step())
		r.exitIfGivenUp()
	}
	r.Stats.report()
	r.tally.Close(code.Name())
	return err
}

// refuseMessages drops the messages that wait for a tick, and refuses later ones.
func (r *Room) refuseMessages() error {
	r.Mailbox.close()
	r.Mailbox.dropQueued()
	return nil
}

// leaveAll lets each client leave.
func (r *Room) leaveAll() error {
	return r.Inspect(func() {
		for len(r.clients.list) > 0 {
			ended := r.Watched("OnLeave", 0)
			r.connections.leave(r.clients.list[0], r.ended.Load())
			ended()
		}
	})
}

// closeSessions tells all connections of the room why it ends.
func (r *Room) closeSessions() error {
	err := r.Inspect(func() { r.feed.leave(r.ended.Load()) })
	why := r.ended.Load()
	r.Admission.seats.Close(why.Code, why.Text)
	r.stall.report()
	return err
}

// endSystems tells each remaining system that it is removed.
func (r *Room) endSystems() error {
	ended := r.Watched("OnRemove", WorkGrace)
	rec := r.loop.End()
	ended()
	for i := range rec.Panics {
		r.metrics.Panics.Add(1, rec.Panics[i].System)
	}
	r.Faults.report(rec)
	return nil
}

// saveAll lets the game save.
func (r *Room) saveAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), SaveTimeout)
	defer cancel()
	return r.game.Close(ctx)
}

// Finishing returns for how long the room has been ending, by its clock, once it has run its last
// tick. Any goroutine may call it.
func (r *Room) Finishing() (since time.Duration, ends bool) {
	at := r.finishAt.Load()
	if at == nil {
		return 0, false
	}
	return r.clock.Now() - *at, true
}
