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
		r.Inputs.take(c, a)
	case transport.MessageArrived, transport.NoRoom:
		c.arrivedReliable(a)
		r.Messages.receive(c, a)
	case transport.Received:
		if c.backlog != nil && !c.backlog.Confirm(a.Value) {
			c.Kick(transport.CodeProtocol, "has had messages that were never sent")
		}
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
		c.Move(a.Message.Text)
	case transport.Gone:
		r.connections.lost(c, a.Closed)
	}
}

// Limits of joins in a tick. A join or resume is the most expensive request: the client is sent the
// whole state.
const (
	maxEntering = 4 // clients that join or resume in a tick
	// enteringSlots limits the number of clients that enter in a tick times the objects in the
	// world, but one client may always enter: the cost of a join grows with the world.
	enteringSlots = 5120 * maxEntering
)

// entering returns how many clients may join or resume in a tick of a world with so many objects.
func entering(slots int) int {
	return min(max(enteringSlots/max(slots, 1), 1), maxEntering)
}

// Limits of clients' requests about their state. A digest costs a pass over all objects, and data
// under way is sent again with it; the full state costs such a pass too, and then the objects.
const (
	askEvery   = time.Second      // game time between two requests of one kind
	askSeldom  = 32 * time.Second // for repeated requests of the full state
	maxDigests = 4                // snapshots with a digest per request
	maxFulls   = 1                // full states started in a tick, of all clients
)

// requests are the clients' requests for digests and full states.
type requests struct {
	*core
	waiting []*Client // for a full state, oldest request first
}

// digest adds digests to a client's next snapshots, unless it has just asked.
func (q *requests) digest(c *Client, snapshots uint64) {
	if q.mayAsk("digest", c.digestFrom) {
		c.digestFrom = q.now.GameTime + askEvery
		c.peer.RequestDigest(int(min(snapshots, maxDigests)))
	}
}

// full queues a client for a full state, unless it has just had one. Each request that
// follows soon doubles the time until the next.
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
		if c := q.waiting[n]; c.joined { // Otherwise it has left.
			c.peer.RequestFull()
			left--
		}
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
}

// mayAsk reports whether a client may make a request, which is permitted from a game time on. It
// counts rejected requests.
func (q *requests) mayAsk(what string, from time.Duration) bool {
	if q.now.GameTime < from {
		q.metrics.Drops.Add(1, what, "too_often")
		return false
	}
	return true
}
