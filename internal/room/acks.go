package room

import (
	"time"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// maxUnsentAcks is how many ranges of acknowledgements a client may send that name packets
// which were never sent to it, until it is kicked. An honest client sends none, because the
// connection guards every byte of a datagram; one whose build is broken plays for some
// seconds, in which it is seen in the metrics.
const maxUnsentAcks = 1000

// acknowledged takes the acknowledgements that a poll brought. What was never sent they
// cannot acknowledge: such a client is counted, harms its own state alone, and is kicked
// in the end.
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

// acknowledgedRecords is the same for the records that went over the stream.
func (c *Client) acknowledgedRecords(last uint64) {
	before := c.room.world.Stats().AckUnknown
	c.peer.AckLarge(last)
	c.countUnsent(before)
}

// countUnsent counts the acknowledgements of what was never sent, since there were so many.
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
