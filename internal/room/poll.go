package room

import (
	"slices"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// takeArrival handles one arrival.
func (r *Room) takeArrival(a *transport.Arrival) {
	r.arrived++
	r.Sleep.markArrival(a.Kind)
	if a.Kind == transport.Joined {
		r.connections.enter(a.Decoded.(*admitted), a.Session)
		return
	}
	if a.Kind == transport.Gone {
		r.Admission.seats.RemoveSession(a.Session)
	}
	c, ok := r.clients.get(a.Session.ID())
	if !ok || c.session != a.Session || c.dropped != nil {
		return // The client has left or was dropped: later arrivals are ignored.
	}
	switch a.Kind {
	case transport.Acks:
		c.acknowledged(r.in.Start, a.Acks)
	case transport.RecordsApplied:
		c.acknowledgedRecords(a.Value)
	case transport.Inputs:
		if !c.plays() {
			r.metrics.Drops.Add(1, "input", "spectator")
			return
		}
		c.countArrival(a)
		r.Inputs.take(c, a)
	case transport.MessageArrived, transport.NoRoom:
		c.countArrival(a)
		c.arrivedReliable(a)
		r.Messages.receive(c, a)
	case transport.Received:
		if c.backlog != nil && !c.backlog.Confirm(a.Value) {
			c.Kick(transport.CodeProtocol, "has had messages that were never sent")
		}
	case transport.Mispredicted:
		r.Inputs.mispredicted(c, a.Value)
	case transport.Discarded:
		r.Messages.charge(c, a.Value)
	case transport.DigestRequest:
		r.requests.digest(c, a.Value)
	case transport.FullStateRequest:
		r.requests.full(c)
	case transport.Moved:
		c.join.Addr = a.Message.Text
		r.game.Move(c)
	case transport.MoveAsked:
		if r.connections.mayAskMove(c) {
			c.asked = a.Message.Text
			c.Move(c.asked)
		}
	case transport.Gone:
		r.connections.lost(c, a.Closed)
	}
}

// Limits of joins in a tick. A join or resume is the most expensive request: the room sends the
// client the whole state.
const (
	maxEntering = 4 // clients that join or resume in a tick
	// enteringSlots limits the number of clients that enter in a tick times the objects in the
	// world, but one client may always enter: the cost of a join grows with the world.
	enteringSlots = 5120 * maxEntering
)

// entering returns the number of clients that may join or resume in one tick, in a world with this
// number of objects.
func entering(slots int) int {
	return min(max(enteringSlots/max(slots, 1), 1), maxEntering)
}

// Limits of clients' requests about their state. A digest costs a pass over all objects, and the
// data in flight is sent again with it. The full state costs a pass over all objects, and then the
// sending of all objects.
const (
	askEvery   = time.Second      // game time between two requests of one kind
	askSeldom  = 32 * time.Second // for repeated requests for the full state
	maxDigests = 4                // snapshots with a digest per request
	maxFulls   = 1                // full states started in a tick, of all clients
)

// requests are the clients' requests for digests and full states.
type requests struct {
	*core
	waiting []*Client // for a full state, oldest request first
}

// digest adds digests to a client's next snapshots, unless the client has requested them within
// askEvery.
func (q *requests) digest(c *Client, snapshots uint64) {
	if q.mayAsk("digest", c.digestFrom) {
		c.digestFrom = q.now.GameTime + askEvery
		c.peer.RequestDigest(int(min(snapshots, maxDigests)))
	}
}

// full queues a client for a full state, unless the client has got one recently. Each repeated
// request doubles the time until the next one is permitted.
func (q *requests) full(c *Client) {
	if !q.mayAsk("full_state", c.fullFrom) {
		return
	}
	now := q.now.GameTime
	if now >= c.fullFrom+c.fullGap {
		c.fullGap = max(c.fullGap/2, askEvery)
	} else {
		c.fullGap = min(2*c.fullGap, askSeldom)
	}
	c.fullFrom = now + c.fullGap
	q.waiting = append(q.waiting, c)
}

// start starts the full states of the next clients, in the order of their requests.
func (q *requests) start() {
	n := 0
	for left := maxFulls; n < len(q.waiting) && left > 0; n++ {
		if c := q.waiting[n]; c.joined { // Otherwise the client has left.
			c.peer.RequestFull()
			left--
		}
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
}

// mayAsk reports whether a client may make a request now: the game time has reached from. It
// counts the rejected requests.
func (q *requests) mayAsk(what string, from time.Duration) bool {
	if q.now.GameTime < from {
		q.metrics.Drops.Add(1, what, "too_often")
		return false
	}
	return true
}
