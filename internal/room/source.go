package room

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// source is the origin of a tick's outside facts. No other fact but those of the source and the
// loop.Input may affect a decision of the room. There are three sources:
//
//	network    the arrivals from the network
//	*recorder  the same, and records them (record.go)
//	*replayer  the facts of a recording (replayer.go)
//
// The functions are in the order of the tick. All run on the room's goroutine.
type source interface {
	// begin is called before a tick, with its input.
	begin(in *loop.Input)
	// prices returns the changed costs of messages, which hold from this tick on. The slice is
	// valid until the next call.
	prices() []rpcqueue.Price
	// link returns the facts of a client's link; it is called once per client and tick, in poll.
	link(c *Client) transport.LinkFacts
	// arrivals calls fn for each arrival. An arrival is valid during its call.
	arrivals(fn func(*transport.Arrival))
	// posts and results return the messages and results of the server's other goroutines. The
	// slices are valid until the next call.
	posts() []rpcqueue.Item
	results() []result
	// commands returns the commands of operators.
	commands() []command
	// vacate stops a room that closes because it is empty from giving seats, and reports whether
	// none is taken or reserved. A recording ends with that tick, so a replay returns false.
	vacate(why *transport.Closed) bool
	// slot returns the slot of a client's snapshot, nil while the last snapshot is in it.
	slot(c *Client) *transport.Slot
	// end is called after a tick.
	end()

	// drain is called between two ticks when the room is told of its end.
	drain(limit time.Duration)
	// unrecorded names an effect on the room that no recording holds.
	unrecorded(what string)
}

// network is the source of a room that clients play in, as opposed to a replayed one.
type network struct{ r *Room }

func (network) begin(*loop.Input)   {}
func (network) end()                {}
func (network) drain(time.Duration) {}
func (network) unrecorded(string)   {}

func (network) link(c *Client) transport.LinkFacts { return c.session.LinkFacts() }

func (n network) prices() []rpcqueue.Price {
	return n.r.Messages.priceChanges()
}

func (n network) arrivals(fn func(*transport.Arrival)) {
	n.r.Admission.inbox.LimitJoins(entering(n.r.world.Slots()))
	n.r.Admission.inbox.Each(fn)
}

func (n network) vacate(why *transport.Closed) bool { return n.r.Admission.vacate(why) }

func (n network) posts() []rpcqueue.Item { return n.r.Mailbox.posts.take() }
func (n network) results() []result      { return n.r.Async.take() }
func (n network) commands() []command    { return n.r.Commands.take() }

// slot returns the slot for a client's next snapshot; nil while the last snapshot is in it, or
// while the delay buffer of the spectator feed is full. It is called when the snapshot is encoded
// and not at the poll, so that a busy machine's writer has the tick's time to empty the slot.
func (n network) slot(c *Client) *transport.Slot {
	if c.IsFeed() && !n.r.feed.hasSpace() {
		return nil
	}
	return c.slot()
}
