package room

import (
	"slices"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// poll is the system transport.poll: it takes all arrivals since the last tick, in their order,
// and none that arrive meanwhile.
func (r *Room) poll() {
	for _, c := range r.clients.list {
		c.observeLink()
	}
	r.arrived = 0
	r.openCamera()
	r.feed.arrivals(r.arrive)
	r.startFull()
	r.overdue()
	r.takePosts()
	r.takeResults()
	r.closeEmpty()
}

// closeEmpty closes a room that has been empty for the time of its spec. The time restarts while a
// seat is reserved or a client is being admitted.
func (r *Room) closeEmpty() {
	if r.spec.CloseEmpty <= 0 || len(r.clients.list) > 0 {
		r.emptySince = r.now.GameTime
		return
	}
	if r.now.GameTime-r.emptySince < r.spec.CloseEmpty {
		return
	}
	why := &transport.Closed{Code: transport.CodeClosing, Text: "nobody is in the room"}
	if !r.feed.vacate(why) {
		r.emptySince = r.now.GameTime
		return
	}
	r.Close(why.Code, why.Text)
}

// takeArrival handles one arrival.
func (r *Room) takeArrival(a *transport.Arrival) {
	r.arrived++
	r.markArrival(a.Kind)
	if a.Kind == transport.Joined {
		r.enter(a.Decoded.(*admitted), a.Session)
		return
	}
	if a.Kind == transport.Gone {
		r.seats.RemoveSession(a.Session)
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
		if c.join.Spectator {
			r.metrics.Drops.Add(1, "input", "spectator")
			return
		}
		r.takeInputs(c, a)
	case transport.MessageArrived:
		c.arrivedReliable(a)
		r.receive(c, a)
	case transport.NoRoom:
		c.arrivedReliable(a)
		r.receive(c, a)
	case transport.Received:
		if c.backlog != nil && !c.backlog.Confirm(a.Value) {
			c.Kick(transport.CodeProtocol, "has had messages that were never sent")
		}
	case transport.Discarded:
		r.charge(c, a.Value)
	case transport.DigestRequest:
		r.requestDigest(c, a.Value)
	case transport.FullStateRequest:
		r.requestFull(c)
	case transport.Moved:
		c.join.Addr = a.Message.Text
		r.game.Move(c)
	case transport.MoveAsked:
		c.Move(a.Message.Text)
	case transport.Gone:
		r.lost(c, a.Closed)
	}
}

// Limits of clients' requests about their state. A digest costs a pass over all objects, and data
// under way is sent again with it; the full state costs such a pass too, and then the objects. A
// client that joins or resumes is the most expensive.
const (
	askEvery    = time.Second      // game time between two requests of one kind
	askSeldom   = 32 * time.Second // for repeated requests of the full state
	maxDigests  = 4                // snapshots with a digest per request
	maxFulls    = 1                // full states started in a tick, of all clients
	maxEntering = 4                // clients that join or resume in a tick
	// enteringSlots limits the objects of their worlds, together, unless it is only one client:
	// the cost of a join grows with the world.
	enteringSlots = 5120 * maxEntering
)

// entering returns how many clients may join or resume in a tick of a world with so many objects.
func entering(slots int) int {
	return min(max(enteringSlots/max(slots, 1), 1), maxEntering)
}

// requestDigest adds digests to a client's next snapshots, unless it has just asked.
func (r *Room) requestDigest(c *Client, snapshots uint64) {
	if r.mayAsk("digest", c.digestFrom) {
		c.digestFrom = r.now.GameTime + askEvery
		c.peer.RequestDigest(int(min(snapshots, maxDigests)))
	}
}

// requestFull queues a client for a full state, unless it has just had one. Each request that
// follows soon doubles the time until the next.
func (r *Room) requestFull(c *Client) {
	if !r.mayAsk("full_state", c.fullFrom) {
		return
	}
	now := r.now.GameTime
	if now >= c.fullFrom+c.fullGap {
		c.fullGap = max(c.fullGap/2, askEvery)
	} else {
		c.fullGap = min(2*c.fullGap, askSeldom)
	}
	c.fullFrom = now + c.fullGap
	r.fullRequests = append(r.fullRequests, c)
}

// startFull starts the full states of the next clients, in the order of their requests.
func (r *Room) startFull() {
	n := 0
	for left := maxFulls; n < len(r.fullRequests) && left > 0; n++ {
		if c := r.fullRequests[n]; c.joined { // Otherwise it has left.
			c.peer.RequestFull()
			left--
		}
	}
	r.fullRequests = slices.Delete(r.fullRequests, 0, n)
}

// mayAsk reports whether a client may make a request, which is permitted from a game time on. It
// counts rejected requests.
func (r *Room) mayAsk(what string, from time.Duration) bool {
	if r.now.GameTime < from {
		r.metrics.Drops.Add(1, what, "too_often")
		return false
	}
	return true
}
