package room

import (
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// poll is the system transport.poll: it takes everything that has arrived since
// the last tick, in the order of arrival, and nothing that arrives meanwhile.
func (r *Room) poll() {
	for _, c := range r.clients.list {
		c.observeLink()
	}
	r.arrivals = r.feed.arrivals(r.arrivals)
	for i := range r.arrivals {
		r.arrive(&r.arrivals[i])
	}
	clear(r.arrivals)
	r.overdue()
	r.takePosts()
	r.takeResults()
}

// arrive handles one arrival.
func (r *Room) arrive(a *transport.Arrival) {
	if a.Kind == transport.Joined {
		r.enter(a.Decoded.(*entrance), a.Session)
		return
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
	case transport.MessageArrived:
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
	case transport.Gone:
		r.lost(c, a.Closed)
	}
}

// Limits of what a client may ask about its state. A digest costs a pass over all
// objects, and what is in flight goes again with it; the full state costs such a
// pass too, and then the objects.
const (
	askEvery   = time.Second // game time between two requests of one kind
	maxDigests = 4           // snapshots with a digest per request
)

// requestDigest gives a client's next snapshots digests, unless it has just asked.
func (r *Room) requestDigest(c *Client, snapshots uint64) {
	if r.mayAsk("digest", &c.digestFrom) {
		c.peer.RequestDigest(int(min(snapshots, maxDigests)))
	}
}

// requestFull lets a client start anew, unless it has just done so.
func (r *Room) requestFull(c *Client) {
	if r.mayAsk("full_state", &c.fullFrom) {
		c.peer.RequestFull()
	}
}

// mayAsk reports whether the game time has come from which on a client may ask
// for something again, and then moves it.
func (r *Room) mayAsk(what string, from *time.Duration) bool {
	if r.now.GameTime < *from {
		r.metrics.Drops.Add(1, what, "too_often")
		return false
	}
	*from = r.now.GameTime + askEvery
	return true
}
