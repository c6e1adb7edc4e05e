package room

import (
	"time"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// snapshot is the system netvar.snapshot: it captures the edits since the last tick, and encodes
// for each client the packets of its missing changes.
func (r *Room) snapshot() {
	r.world.Capture(r.now.Tick)
	r.captured = r.now.Tick
	turn := r.now.Tick%uint64(r.sendEvery()) == 0
	for _, c := range r.clients.list {
		if c.kicked == nil && c.dropped == nil && (turn || c.due) {
			c.encode(r.now.Tick, r.in.Start)
		}
	}
	r.film()
	for _, look := range r.onSnapshot {
		look()
	}
}

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
	slot := c.room.feed.slot(c)
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

// flush is the system transport.flush: it passes each client's batch to its writer, and never
// waits for the network.
func (r *Room) flush() {
	rescaled := r.rescaled()
	now := r.clock.Now() // For the measurement of flush lag; no decision depends on it.
	for _, c := range r.clients.list {
		if c.dropped != nil {
			continue
		}
		c.tellInputs()
		if r.in.EpochMoved {
			c.session.PublishEpoch(transport.Epoch(r.in.Epoch))
		}
		if rescaled {
			c.session.PublishTimeScale(r.timeScale())
		}
		if c.kicked != nil {
			r.sent.closed(c.id, c.kicked)
			c.session.Close(c.kicked.Code, c.kicked.Text)
		}
		c.session.Flush(now)
		if c.moving != "" && c.kicked == nil {
			r.depart(c)
		}
	}
	r.keep()
}

// rescaled reports, once, that the scale was changed, and updates it for all but the clients. The
// flush calls it: a later change in the tick is told in the next.
func (r *Room) rescaled() bool {
	now := r.loop.Scale()
	if now == *r.scale.Load() {
		return false
	}
	r.scale.Store(new(now))
	r.sent.timeScale(r.timeScale())
	return true
}

// timeScale returns the scale as told to clients. A line begins at the game time of a tick.
func (r *Room) timeScale() transport.TimeScale {
	s := r.scale.Load()
	return transport.TimeScale{Num: s.Num, Den: s.Den, Tick: r.Timeline().TickAt(s.From), At: s.To, Fraction: s.Frac}
}

// Speed returns how many times as fast as game time scaled time runs. Any goroutine may call it.
func (r *Room) Speed() float64 {
	s := r.scale.Load()
	return float64(s.Num) / float64(s.Den)
}
