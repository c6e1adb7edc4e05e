package room

import (
	"time"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// maxUnsentAcks is how many acknowledged ranges with packets that were never sent are accepted
// from a client before it is kicked. An honest client sends none, because the connection protects
// each byte of a datagram; a client with a broken build plays for some seconds, in which the
// metrics show it.
const maxUnsentAcks = 1000

// acknowledged handles the acknowledgements of a poll. Packets that were never sent cannot be
// acknowledged: a client that tries is counted, harms only its own state, and is kicked in the
// end.
func (c *Client) acknowledged(now time.Duration, ranges []transport.Range) {
	c.window.Acked(now, ranges)
	c.ranges = c.ranges[:0]
	for _, r := range ranges {
		c.ranges = append(c.ranges, netvar.Range(r))
	}
	before := c.room.world.Stats().AckUnknown
	c.peer.Ack(c.ranges)
	c.countUnsent(before)
}

// acknowledgedRecords is acknowledged for the records that were sent over the stream: the client
// has applied all up to the id last.
func (c *Client) acknowledgedRecords(last uint64) {
	before := c.room.world.Stats().AckUnknown
	c.peer.AckLarge(last)
	c.countUnsent(before)
}

// countUnsent counts new acknowledgements of unsent packets, given the counter's earlier value.
func (c *Client) countUnsent(before uint64) {
	n := c.room.world.Stats().AckUnknown - before
	if n == 0 {
		return
	}
	c.room.metrics.Drops.Add(n, "acks", "never_sent")
	if c.unsent += n; c.unsent > maxUnsentAcks {
		c.Kick(transport.CodeProtocol, "acknowledged packets that were never sent")
	}
}
