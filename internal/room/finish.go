package room

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// The end of a room, from its last tick on. Each end (by Close, CloseEmpty, an operator, the end of
// the server, a panic, runtime.Goexit) runs these steps. Only a room that hangs does not: it is
// given up (supervise.go). Each wait has a bound:
//
//	drain           ticks continue while clients are there: for the time of End
//	refuseMessages  no wait: messages that no tick takes are refused, their senders told
//	leaveAll        OnLeave of each client: the watchdog's limit for each
//	finishAll       work given to Go and its results: WorkGrace for all of it, with a live
//	                context; then cancelGrace for the rest, then it is abandoned
//	endSystems      OnRemove: WorkGrace, and the watchdog's limit
//	saveAll         OnClose: SaveTimeout, and the watchdog's limit

const (
	// WorkGrace is the time for which the end of a room waits for work that was given to Go, before
	// it cancels the work's context.
	WorkGrace = 5 * time.Second
	// cancelGrace is the time that work has to return after its context has ended. Work that takes
	// longer is abandoned.
	cancelGrace = time.Second
	// SaveTimeout bounds OnClose. It is as long as service managers wait before they kill a
	// process.
	SaveTimeout = 60 * time.Second
)

// Shutdown ends a room.
type Shutdown struct {
	*core
	room     *Room
	closing  *transport.Closed                // the reason, set by Room.Close or a critical panic
	ending   bool                             // dropped clients can no longer resume
	closesIn time.Duration                    // a drain announced since the last tick; 0: none
	closesAt time.Duration                    // latest time of the room's end, set while ending
	begun    int                              // number of steps of Finish that have begun
	ended    atomic.Pointer[transport.Closed] // reason for the end, set when it begins
	finishAt atomic.Pointer[time.Duration]    // time at which Finish began; nil: not yet
}

// Ended returns the reason for the room's end once its last tick has run, and nil before. Any
// goroutine may call it.
func (d *Shutdown) Ended() *transport.Closed { return d.ended.Load() }

// errDrained ends the loop of a room once its drain is over.
var errDrained = errors.New("netloop: drained")

// drain runs further ticks while clients or running work remain, until End.By at the latest. If
// another End shortens that time, drain informs the game and the clients again.
func (d *Shutdown) drain(schedule loop.Schedule) error {
	if d.in.Tick == 0 {
		return nil // The room was told to end before its first tick: there is no work to finish.
	}
	by := time.Duration(math.MaxInt64)
	tell := func() error {
		e := d.room.Supervisor.end.Load()
		if e.By >= by {
			return nil
		}
		by = e.By
		return d.Drain(max(by-d.clock.Now(), 0))
	}
	if err := tell(); err != nil {
		return err
	}
	err := loop.Run(context.Background(), d.clock, schedule, func(in loop.Input) error {
		if err := tell(); err != nil {
			return err
		}
		if err := d.room.paced(in); err != nil {
			return err
		}
		if d.Lingers(in.Start) {
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
func (d *Shutdown) Lingers(now time.Duration) bool {
	return now < d.room.Supervisor.end.Load().By && (len(d.clients.list) > 0 || d.room.Async.pending > 0)
}

// Drain tells the game and the clients that the room ends within limit. It may be called again
// with a shorter time.
func (d *Shutdown) Drain(limit time.Duration) error {
	d.source.drain(limit)
	d.ending, d.closesIn, d.closesAt = true, limit, d.in.Start+limit
	return d.Inspect(func() {
		for _, c := range slices.Clone(d.clients.list) {
			switch {
			case c.dropped != nil: // A dropped client can no longer resume.
				d.room.connections.leave(c, c.dropped)
			case limit > 0:
				c.session.PublishClosing(limit)
			}
		}
		d.game.Drain(limit)
	})
}

// begin is called at the start of a tick. The duration of a drain that was announced since the last
// tick counts from that start.
func (d *Shutdown) begin(start time.Duration) {
	if d.closesIn > 0 {
		d.closesIn, d.closesAt = 0, start+d.closesIn
	}
}

// Finish ends a room that runs no more ticks: each client leaves and is sent the reason, work is
// finished, all systems are removed, and the game saves its state. If a step ends its goroutine, a
// second call runs the remaining steps.
func (d *Shutdown) Finish(code transport.Code, text string) (err error) {
	d.ending = true
	d.room.Admission.refuse(code, text)
	if d.ended.CompareAndSwap(nil, &transport.Closed{Code: code, Text: text}) {
		d.finishAt.Store(new(d.clock.Now()))
	}
	steps := [...]func() error{
		d.refuseMessages, d.leaveAll, d.closeSessions, d.room.Async.finishAll, d.endSystems, d.saveAll,
	}
	for d.begun < len(steps) {
		step := steps[d.begun]
		d.begun++
		err = errors.Join(err, step())
		d.exitIfGivenUp()
	}
	d.room.Stats.report()
	d.tally.Close(code.Name())
	return err
}

// refuseMessages drops the messages that wait for a tick, and refuses later ones.
func (d *Shutdown) refuseMessages() error {
	d.room.Mailbox.close()
	d.room.Mailbox.dropQueued()
	return nil
}

// leaveAll lets each client leave.
func (d *Shutdown) leaveAll() error {
	return d.Inspect(func() {
		for len(d.clients.list) > 0 {
			ended := d.Watched("OnLeave", 0)
			d.room.connections.leave(d.clients.list[0], d.ended.Load())
			ended()
		}
	})
}

// closeSessions sends the reason for the end to all connections of the room, and closes them.
func (d *Shutdown) closeSessions() error {
	err := d.Inspect(func() { d.room.feed.leave(d.ended.Load()) })
	why := d.ended.Load()
	d.room.Admission.seats.Close(why.Code, why.Text)
	d.room.stall.report()
	return err
}

// endSystems tells each remaining system that it is removed.
func (d *Shutdown) endSystems() error {
	ended := d.Watched("OnRemove", WorkGrace)
	rec := d.loop.End()
	ended()
	for i := range rec.Panics {
		d.metrics.Panics.Add(1, rec.Panics[i].System)
	}
	d.room.Faults.report(rec)
	return nil
}

// saveAll lets the game save its state.
func (d *Shutdown) saveAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), SaveTimeout)
	defer cancel()
	return d.game.Close(ctx)
}

// Finishing returns the time, on the room's clock, since Finish began; ends is false before. Any
// goroutine may call it.
func (d *Shutdown) Finishing() (since time.Duration, ends bool) {
	at := d.finishAt.Load()
	if at == nil {
		return 0, false
	}
	return d.clock.Now() - *at, true
}
