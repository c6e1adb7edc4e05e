package room

import (
	"time"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// OnSnapshot calls fn right after each snapshot, once the views and read rights have been
// evaluated. It must not change the state.
func (r *Room) OnSnapshot(fn func()) { r.onSnapshot = append(r.onSnapshot, fn) }

// Limits of one snapshot to one client. The connection's pacing would hold back more packets; a
// probe only tests whether the client answers.
var (
	wholeSnapshot = netvar.Limit{Packets: transport.MaxStatePackets, PacketSize: transport.MaxStatePacket}
	probe         = netvar.Limit{Packets: 1, PacketSize: 100}
)

// encode encodes the client's snapshot, if its slot is free and its window is open. A snapshot
// that cannot be sent is not encoded, and remains due.
func (c *Client) encode(tick uint64, now time.Duration) {
	c.due = true
	slot := c.room.source.slot(c)
	if slot == nil {
		c.waits = WaitsForSlot
		c.room.metrics.Deferred.Add(1, "slot_busy")
		return
	}
	c.waits = WaitsForWindow
	send, asProbe := c.window.Open(now)
	if !send && !asProbe {
		c.room.metrics.Deferred.Add(1, "window_closed")
		return
	}
	limit := wholeSnapshot
	limit.Reliable = c.link.StreamFree
	if asProbe {
		limit = probe
	}
	var first uint64
	slot.Packets, first = c.peer.AppendSnapshot(slot.Packets[:0], tick, limit)
	c.window.Sent(now, first, first+uint64(len(slot.Packets))-1, asProbe)
	c.due = asProbe
	c.room.sent.packets(c.id, slot.Packets)
	for _, record := range c.peer.Large() {
		c.session.SendRecord(record)
		c.room.sent.record(c.id, record)
	}
}

// flush passes the client's batch to its writer, with the changes of the room that it has to know.
func (c *Client) flush(now time.Duration, rescaled bool) {
	r := c.room
	c.tellInputs()
	if r.in.EpochMoved {
		c.session.PublishEpoch(transport.Epoch(r.in.Epoch))
	}
	if rescaled {
		c.session.PublishTimeScale(r.Scale.message())
	}
	if c.kicked != nil {
		r.sent.closed(c.id, c.kicked)
		c.session.Close(c.kicked.Code, c.kicked.Text)
	}
	c.session.Flush(now)
	if c.moving != "" && c.kicked == nil {
		r.connections.depart(c)
	}
}

// slot returns the slot of the client's snapshot, of its connection.
func (c *Client) slot() *transport.Slot {
	if c.IsFeed() {
		return &c.room.feed.slot
	}
	return c.session.Slot()
}

// Captured returns the last tick with captured state.
func (r *Room) Captured() uint64 { return r.captured }

// StateTick returns the tick of the first snapshot that holds the current state.
func (r *Room) StateTick() uint64 {
	if r.captured == r.now.Tick {
		return r.now.Tick + 1 // Changes after the capture are part of the next snapshot.
	}
	return r.now.Tick
}
