package room

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/transport"
)

// A room with Spec.Sleep runs no ticks while there is no work to do. After each tick it checks
// whether it may fall asleep; then it sleeps until it is roused, or until the first tick with work
// due. The room skips the ticks in between, but counts their numbers, so that game time and the
// epoch, from which clients derive the time, continue as in a room that never sleeps.
//
//	tick ─▶ active? ──no, for a second──▶ asleep ──▶ roused, or due ──▶ the next tick of the epoch
//
// Repeated data does not rouse the room: acknowledgements, and idle inputs.

// Sleep is the sleep state of a room. Except for alarm it belongs to the room's goroutine.
type Sleep struct {
	alarm  chan struct{} // size 1, so that rouse never blocks; nil: the room never sleeps
	asleep bool
	looked bool          // the room was inspected from outside, and may have been changed
	moved  bool          // the running tick has handled more than acknowledgements and idle inputs
	none   []byte        // an idle input
	calm   time.Duration // game time of the last tick with activity
	awaits [2]instants   // moments that the game awaits, in game time and in scaled time
}

// sleepAfter is the game time without activity after which a room with connected clients sleeps. By
// then the clients have drawn all changes, and know the server's time.
const sleepAfter = time.Second

// openSleep lets the room sleep if its spec has Sleep.
func (r *Room) openSleep() {
	if !r.spec.Sleep {
		return
	}
	r.Sleep.alarm = make(chan struct{}, 1)
	r.Admission.inbox.Rouse = r.Sleep.rouse
	r.Admission.inbox.Idle = func([]byte) bool { return true } // Undeclared inputs are not read.
	if in := r.schema.Input(); in != nil {
		form, repeats := in.Form(), r.Inputs.repeats()
		r.Admission.inbox.Idle, r.Sleep.none = func(packet []byte) bool { return form.Idle(packet, repeats) }, form.None()
	}
}

// rouse ends the wait of a room that sleeps. Any goroutine may call it.
func (s *Sleep) rouse() {
	select {
	case s.alarm <- struct{}{}:
	default: // The room is already roused, or never sleeps.
	}
}

// markActive records that the running tick handles more than acknowledgements and idle inputs. The
// room does not sleep after such a tick.
func (s *Sleep) markActive() { s.moved = true }

// markArrival marks the tick as active, unless the arrival is an acknowledgement, a report of
// mispredictions or a packet of inputs. For inputs that are not idle, Inputs.apply marks the tick.
func (s *Sleep) markArrival(k transport.ArrivalKind) {
	switch k {
	case transport.Acks, transport.RecordsApplied, transport.Received, transport.Mispredicted, transport.Inputs:
	default:
		s.markActive()
	}
}

// Await makes a tick run when a clock has reached the time at, even if the room sleeps and no
// timer is due then. It is for systems that check the time themselves.
func (s *Sleep) Await(clock loop.TimerClock, at time.Duration) {
	if s.alarm != nil {
		s.awaits[clock].add(at)
	}
}

// trySleep puts the room to sleep after a tick, if permitted.
func (r *Room) trySleep() {
	s := &r.Sleep
	if s.alarm == nil {
		return
	}
	for clock, now := range [2]time.Duration{r.in.GameTime, r.loop.Scale().At(r.in.GameTime)} {
		s.moved = s.awaits[clock].pass(now) || s.moved
	}
	if s.moved || !r.idle() {
		s.calm = r.in.GameTime
	}
	s.moved = false
	alone := !slices.ContainsFunc(r.clients.list, func(c *Client) bool { return c.dropped == nil })
	if wait := r.in.GameTime - s.calm; wait == 0 || wait < sleepAfter && !alone || r.roused() || !r.Admission.inbox.Rest() {
		return
	}
	s.asleep = true
	r.Stats.report() // The last report may be up to a quarter of a second old.
	r.tally.Sleep(true)
}

// wake ends a sleep at the start of a tick.
func (r *Room) wake() {
	r.Sleep.looked = false
	if r.Sleep.asleep {
		r.Sleep.asleep = false
		r.tally.Sleep(false)
		r.Load.ladder.Restart()
	}
}

// idle reports whether a tick without new arrivals would have no work to do.
func (r *Room) idle() bool {
	if r.Shutdown.ending || r.Shutdown.closing != nil || len(r.requests.waiting) > 0 || !r.feed.settled() || r.Load.Level() != overload.Normal || r.Load.Next() != 0 || !r.world.Still() {
		return false
	}
	for _, stage := range loop.Stages() {
		if r.Messages.queue.Depth(stage) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(r.clients.list, func(c *Client) bool {
		inputs := c.inputs != nil && !c.inputs.Still(r.now.FixedStep, r.Sleep.none)
		return c.kicked != nil || inputs || c.dropped == nil && (c.due || c.toTell || !c.peer.Settled())
	})
}

// roused reports whether work waits for the room.
func (r *Room) roused() bool {
	return r.Sleep.looked || r.Shutdown.ending || r.Supervisor.end.Load() != nil || r.Admission.seats.Changed() || r.Admission.inbox.Roused() || r.Mailbox.posts.some() || r.Async.some() || r.Questions.some() || r.Commands.some() || r.Transfer.asked.Load() != nil
}

// nextDue returns the first tick from next on that has to run.
func (r *Room) nextDue(next uint64) uint64 {
	if !r.Sleep.asleep || r.roused() {
		return next
	}
	due := r.loop.Due(next)
	line := r.Timeline()
	by := func(at time.Duration) {
		if at < math.MaxInt64 {
			due = min(due, line.TickFrom(at))
		}
	}
	by(r.game.TimersDue(r.loop.Scale()))
	by(r.Sleep.awaits[loop.GameClock].next())
	by(r.loop.Scale().Until(r.Sleep.awaits[loop.ScaledClock].next()))
	if r.spec.CloseEmpty > 0 && len(r.clients.list) == 0 {
		by(r.connections.emptySince + r.spec.CloseEmpty)
	}
	// The tick shows others that the seat of an expired ticket is free.
	if at := r.Admission.seats.Expiry(); at < math.MaxInt64 {
		due = min(due, line.Due(r.in.Epoch, at)+1)
	}
	for _, c := range r.clients.list {
		switch last := c.lastArrival(); {
		case c.dropped != nil:
			by(c.until)
		case last == c.link.LastArrival:
			by(c.heard + r.spec.LostAfter)
		default: // The tick that is due then records the arrival time.
			due = min(due, line.Due(r.in.Epoch, last+r.spec.LostAfter)+1)
		}
	}
	return max(due, next)
}

// lastArrival returns the time of the client's last arrival until now, not until the last poll,
// because a sleeping room must detect silence without polls.
func (c *Client) lastArrival() time.Duration {
	if c.dropped != nil {
		return 0
	}
	return c.session.LinkFacts().LastArrival
}

// heardAt returns the game time of an arrival since the last tick: the time of this tick, or the
// earlier time of the arrival itself if the room has slept since the last tick.
func (c *Client) heardAt(arrival time.Duration) time.Duration {
	r := c.room
	if r.in.Slept == 0 {
		return r.now.GameTime
	}
	return r.now.GameTime - max(r.in.Start-arrival, 0)
}

// Sleeps reports whether the room skips tick, which is the next one, because it has no work to do.
// It belongs to the room's goroutine.
func (r *Room) Sleeps(tick uint64) bool { return r.Sleep.asleep && r.nextDue(tick) > tick }

// Asleep reports whether the room sleeps. It belongs to the room's goroutine.
func (s *Sleep) Asleep() bool { return s.asleep }

// sleeper is the clock of a room. While the room sleeps, WaitUntil skips ticks without work, and
// waits for the next tick that has to run.
type sleeper struct {
	loop.Clock
	r     *Room
	pacer *loop.Pacer
}

// WaitUntil implements loop.Clock.
func (s *sleeper) WaitUntil(ctx context.Context, at time.Duration) error {
	r := s.r
	for r.Sleep.asleep && ctx.Err() == nil {
		now := s.Now()
		next := s.pacer.Upcoming(now)
		due := r.nextDue(next)
		if due <= next {
			s.pacer.SkipTo(next)
			return s.Clock.WaitUntil(ctx, s.pacer.Due())
		}
		wait := longestSleep
		if due != loop.Never {
			wait = min(r.Timeline().Deadline(s.pacer.Epoch(), due-1)-now, wait)
		}
		r.Sleep.waitForWork(ctx, max(wait, 0))
	}
	if r.Sleep.asleep { // The room was told to end, so it skips the ticks until now.
		s.pacer.SkipTo(s.pacer.Upcoming(s.Now()))
	}
	return s.Clock.WaitUntil(ctx, at)
}

// longestSleep is the interval after which a room without any deadline checks again.
const longestSleep = time.Hour

// waitForWork waits until the room is roused, but not longer than d.
func (s *Sleep) waitForWork(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-s.alarm:
	case <-ctx.Done():
	}
}

// instants holds the moments of a clock that a game awaits: at most maxInstants of them in a list,
// and the latest of all others.
type instants struct {
	list []time.Duration // sorted, without duplicates
	last time.Duration   // the latest moment outside of list; the room does not sleep before it
}

const maxInstants = 64

func (in *instants) add(at time.Duration) {
	i, there := slices.BinarySearch(in.list, at)
	switch {
	case there:
	case len(in.list) < maxInstants:
		in.list = slices.Insert(in.list, i, at)
	default:
		in.last = max(in.last, at)
	}
}

// pass removes past moments, and reports whether later ones exist that are not in the list.
func (in *instants) pass(now time.Duration) (more bool) {
	n, there := slices.BinarySearch(in.list, now)
	if there {
		n++
	}
	in.list = slices.Delete(in.list, 0, n)
	return now < in.last
}

// next returns the first moment in the list, or math.MaxInt64 if the list is empty.
func (in *instants) next() time.Duration {
	if len(in.list) == 0 {
		return math.MaxInt64
	}
	return in.list[0]
}
