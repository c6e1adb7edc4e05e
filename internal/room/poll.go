package room

import (
	"slices"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// poll is the system transport.poll: it takes everything that has arrived since
// the last tick, in the order of arrival, and nothing that arrives meanwhile.
func (r *Room) poll() {
	for _, c := range r.clients.list {
		c.observeLink()
	}
	r.arrived = 0
	r.openCamera()
	r.feed.arrivals(r.arrive)
	r.startAnew()
	r.overdue()
	r.takePosts()
	r.takeResults()
	r.closeEmpty()
}

// closeEmpty closes a room that nobody has been in for as long as its spec says. While a seat is
// reserved, or a client is on its way in, the time begins anew.
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
	r.echo(a.Kind)
	if a.Kind == transport.Joined {
		r.enter(a.Decoded.(*entrance), a.Session)
		return
	}
	if a.Kind == transport.Gone {
		r.seats.gone(a.Session)
	}
	c, ok := r.clients.get(a.Session.ID())
	if !ok || c.session != a.Session || c.dropped != nil {
		return // It has left, or been lost; what it had sent before counts with that.
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

// Limits of what clients may ask about their state. A digest costs a pass over all
// objects, and what is in flight goes again with it; the full state costs such a
// pass too, and then the objects. A client that joins, or comes back, is the dearest.
const (
	askEvery    = time.Second      // game time between two requests of one kind
	askSeldom   = 32 * time.Second // for the full state, of who asks again and again
	maxDigests  = 4                // snapshots with a digest per request
	maxFulls    = 1                // full states that begin in a tick, of all clients
	maxEntering = 4                // clients that come in, or back, in a tick
	// enteringSlots is how many objects the worlds of those may have, together, if it is more than
	// one: what a join costs grows with the world.
	enteringSlots = 5120 * maxEntering
)

// entering is how many clients may come in, or back, in a tick of a world with so many objects.
func entering(slots int) int {
	return min(max(enteringSlots/max(slots, 1), 1), maxEntering)
}

// requestDigest gives a client's next snapshots digests, unless it has just asked.
func (r *Room) requestDigest(c *Client, snapshots uint64) {
	if r.mayAsk("digest", c.digestFrom) {
		c.digestFrom = r.now.GameTime + askEvery
		c.peer.RequestDigest(int(min(snapshots, maxDigests)))
	}
}

// requestFull lets a client start anew when its turn comes, unless it has just done so. Each
// request that follows soon doubles the time until the next.
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
	r.anew = append(r.anew, c)
}

// startAnew lets the next clients start anew, in the order in which they have asked.
func (r *Room) startAnew() {
	n := 0
	for left := maxFulls; n < len(r.anew) && left > 0; n++ {
		if c := r.anew[n]; c.joined { // Else it has left.
			c.peer.RequestFull()
			left--
		}
	}
	r.anew = slices.Delete(r.anew, 0, n)
}

// mayAsk reports whether the game time has come from which on a client may ask for something
// again.
func (r *Room) mayAsk(what string, from time.Duration) bool {
	if r.now.GameTime < from {
		r.metrics.Drops.Add(1, what, "too_often")
		return false
	}
	return true
}
