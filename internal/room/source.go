package room

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// source is the origin of a tick's outside facts. Only facts of the source and of the loop.Input
// may affect a decision of the room. There are three sources:
//
//	network    the arrivals from the network
//	*recorder  the same, and records them (record.go)
//	*replayer  the facts of a recording (replayer.go)
//
// The functions are in the order of the tick. All run on the room's goroutine.
type source interface {
	// begin is called before a tick, with its input.
	begin(in *loop.Input)
	// prices returns the changed costs of messages, which apply from this tick. The slice is valid
	// until the next call.
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
	// vacate makes a room that closes because it is empty refuse new clients, and reports whether
	// no seat is taken or reserved. A recording ends with that tick, so a replay returns false.
	vacate(why *transport.Closed) bool
	// slot returns the slot of a client's snapshot, nil while the last snapshot is in it.
	slot(c *Client) *transport.Slot
	// end is called after a tick.
	end()

	// drain is called between two ticks when the room is told of its end.
	drain(limit time.Duration)
	// unrecorded marks an effect on the room that a recording cannot contain; what names it.
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

// slot returns the slot for a client's next snapshot, or nil while the last snapshot is in it, or
// while the delay buffer of the spectator feed is full. The room calls it when it encodes the
// snapshot and not at the poll, so that the writer on a busy machine has more time to empty the
// slot.
func (n network) slot(c *Client) *transport.Slot {
	if c.IsFeed() && !n.r.feed.hasSpace() {
		return nil
	}
	return c.slot()
}
