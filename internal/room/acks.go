package room

import (
	"time"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// maxUnsentAcks is the number of acknowledged ranges with unsent packets after which a client is
// kicked. An honest client sends none, because the connection protects each byte of a datagram. A
// client with a broken build can play for some seconds, and the metrics show its faults.
const maxUnsentAcks = 1000

// acknowledged handles the acknowledgements of a poll. A client that acknowledges unsent packets is
// counted, harms only its own state, and is kicked after maxUnsentAcks.
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

// acknowledgedRecords handles the acknowledgement of records that were sent over the stream: the
// client has applied all records up to the id last.
func (c *Client) acknowledgedRecords(last uint64) {
	before := c.room.world.Stats().AckUnknown
	c.peer.AckLarge(last)
	c.countUnsent(before)
}

// countUnsent counts new acknowledgements of unsent packets; before is the earlier value of their
// counter.
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
