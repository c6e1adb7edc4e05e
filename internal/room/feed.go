package room

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// feed is where the outside facts of a tick come from. What a room is not told
// through its feed, or through the loop.Input, must not decide anything in it. There are
// three:
//
//	network    what has arrived meanwhile
//	*recorder  the same, and writes it down (record.go)
//	*replayer  what a recording holds (replay.go)
//
// The functions stand in the order of the tick. All run on the room's goroutine.
type feed interface {
	// begin comes before a tick, and knows its input.
	begin(in *loop.Input)
	// prices returns what messages are taken to cost from this tick on, as far as that has
	// changed. The slice is valid until the next call.
	prices() []rpcqueue.Price
	// link returns what a client's link does; once per client and tick, in poll.
	link(c *Client) transport.LinkFacts
	// arrivals takes what has arrived. Each is valid during its call.
	arrivals(fn func(*transport.Arrival))
	// posts and results take what other goroutines of the server bring in. The
	// slices are valid until the next call.
	posts() []rpcqueue.Item
	results() []result
	// vacate ends the seats of a room that closes because it is empty, and reports whether none is
	// taken or reserved. A recording ends with that tick, so in a replay it is never so.
	vacate(why *transport.Closed) bool
	// slot returns where a client's snapshot goes, nil while the last one is there.
	slot(c *Client) *transport.Slot
	// end comes after a tick.
	end()

	// drain says, between two ticks, that the room is told of its end.
	drain(limit time.Duration)
	// unrecorded names what entered the room besides.
	unrecorded(what string)
}

// network is the feed of a room that plays.
type network struct{ r *Room }

func (network) begin(*loop.Input)   {}
func (network) end()                {}
func (network) drain(time.Duration) {}
func (network) unrecorded(string)   {}

func (network) link(c *Client) transport.LinkFacts { return c.session.LinkFacts() }

func (n network) prices() []rpcqueue.Price {
	n.r.prices = n.r.tariff.Changes(n.r.prices[:0])
	return n.r.prices
}

func (n network) arrivals(fn func(*transport.Arrival)) {
	n.r.inbox.LimitJoins(entering(n.r.world.Slots()))
	n.r.inbox.Each(fn)
}

func (n network) vacate(why *transport.Closed) bool {
	if shown := n.r.shown; shown != nil {
		if _, _, reserved := shown.Places(); reserved > 0 {
			return false
		}
	}
	return n.r.seats.vacate(n.r.clock.Now(), why)
}

func (n network) posts() []rpcqueue.Item { return n.r.queued.take() }
func (n network) results() []result      { return n.r.async.take() }

// slot is asked when the snapshot is cut and not at the poll: a busy machine's writer has
// had the tick's time.
func (n network) slot(c *Client) *transport.Slot {
	if l := n.r.camera.reel; l != nil && c.Camera() && !l.takes(0) {
		return nil
	}
	return c.slot()
}
