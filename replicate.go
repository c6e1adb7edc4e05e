package netloop

import (
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// snapshot is the system netvar.snapshot: it captures what was edited since the
// last tick, and cuts for each client the packets of what it lacks.
func (r *Room) snapshot(t *Tick) {
	r.world.Capture(t.now.Tick)
	r.captured = t.now.Tick
	turn := t.now.Tick%uint64(r.sendEvery()) == 0
	for _, c := range r.clients.list {
		if c.kicked == nil && (turn || c.due) {
			c.encode(t.now.Tick, r.in.Start)
		}
	}
	for _, look := range r.looks {
		look(t)
	}
}

// Limits of one snapshot to one client. More packets would be held back by the
// pacing of the connection; a probe only asks whether anybody is there.
var (
	wholeSnapshot = netvar.Limit{Packets: transport.MaxStatePackets, PacketSize: transport.MaxStatePacket}
	probe         = netvar.Limit{Packets: 1, PacketSize: 100}
)

// encode cuts the client's snapshot, if its mailbox has room and its window is
// open. A snapshot that cannot leave stays due, and nothing is encoded for it.
func (c *Client) encode(tick uint64, now time.Duration) {
	c.due = true
	slot := c.room.feed.slot(c)
	if slot == nil {
		c.waits = ReasonSlotBusy
		c.room.server.metrics.AddDeferred("slot_busy")
		return
	}
	c.waits = ReasonWindowClosed
	send, asProbe := c.window.Open(now)
	if !send && !asProbe {
		c.room.server.metrics.AddDeferred("window_closed")
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
	c.room.leaving.packets(c.id, slot.Packets)
	for _, record := range c.peer.Large() {
		c.session.SendRecord(record)
		c.room.leaving.record(c.id, record)
	}
}

// flush is the system transport.flush: it hands each client's batch to its
// writer, and never waits for the network.
func (r *Room) flush(t *Tick) {
	rescaled := r.rescaled()
	now := r.server.clock.Now() // For the measurement of flush lag; nothing is decided by it.
	for _, c := range r.clients.list {
		if r.in.EpochMoved {
			c.session.PublishEpoch(transport.Epoch(r.in.Epoch))
		}
		if rescaled {
			c.session.PublishTimeScale(r.timeScale())
		}
		if c.kicked != nil {
			r.leaving.closed(c.id, c.kicked)
			c.session.Close(c.kicked.Code, c.kicked.Text)
		}
		c.session.Flush(now)
	}
}

// encode makes the payload of a message, valid until the next one is made:
// sessions copy it. It panics when the message exceeds what its declaration or
// the wire allows, because the sender is the game itself.
func (r *Room) encode(m *schema.Method, msg any) []byte {
	payload, err := m.In.Append(r.payload[:0], msg)
	if err == nil {
		err = transport.CheckPayload(len(payload), m.Queue.Reliable)
	}
	if err != nil {
		panic(fmt.Sprintf("netloop: sending %q: %v", m.Queue.Name, err))
	}
	r.payload = payload
	return payload
}
