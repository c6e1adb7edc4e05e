package room

import (
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// OnSnapshot calls fn right after each snapshot, once the views and read rights have been
// evaluated. fn must not change the state.
func (r *Room) OnSnapshot(fn func()) { r.onSnapshot = append(r.onSnapshot, fn) }

// Limits of one snapshot to one client. The connection's pacing would delay more packets. A probe
// is a small snapshot that tests whether the client answers.
var (
	wholeSnapshot = netvar.Limit{Packets: transport.MaxStatePackets, PacketSize: transport.MaxStatePacket}
	probe         = netvar.Limit{Packets: 1, PacketSize: 100}
)

// encode encodes the client's snapshot, if its slot is free and its [transport.Window] permits a
// snapshot or a probe. Otherwise the snapshot remains due.
func (c *Client) encode(tick uint64, now time.Duration) {
	c.due = true
	slot := c.room.source.slot(c)
	if slot == nil {
		c.waits = WaitsForSlot
		c.counts.SlotBusy++
		c.window.Blocked(now, true)
		c.room.metrics.Deferred.Add(1, "slot_busy")
		return
	}
	c.waits = WaitsForWindow
	send, asProbe := c.window.Open(now)
	if !send && !asProbe {
		c.counts.WindowClosed++
		c.window.Blocked(now, false)
		c.room.metrics.Deferred.Add(1, "window_closed")
		return
	}
	limit := wholeSnapshot
	limit.Bytes, limit.Reliable = c.window.Budget(now), c.link.StreamFree
	if asProbe {
		limit = probe
	}
	var first uint64
	follow := c.followed()
	if follow != nil {
		c.room.recordBytes(follow.before)
	}
	slot.Packets, first = c.peer.AppendSnapshot(slot.Packets[:0], tick, limit)
	if follow != nil {
		follow.countRecords(c.room)
	}
	bytes := 0
	for _, p := range slot.Packets {
		bytes += len(p)
	}
	c.window.Sent(now, first, first+uint64(len(slot.Packets))-1, bytes, asProbe)
	c.due = asProbe
	c.counts.Snapshots++
	c.counts.Bytes += uint64(bytes)
	c.room.sent.packets(c.id, slot.Packets)
	for _, record := range c.peer.Large() {
		c.session.SendRecord(record)
		c.room.sent.record(c.id, record)
	}
}

// flush passes the client's data of this tick to its connection's writer, with the status of its
// inputs and a new epoch or time scale. It also closes the connection of a kicked client, and lets
// a moving client leave.
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
	if c.kicked == nil && c.mustTell() {
		r.connections.tell(c)
	}
	if n := c.session.LimitUnreliable(c.window.Messages(now)); n > 0 {
		c.window.Said(now, n)
	}
	c.session.Flush(now)
	if c.moving != "" && c.kicked == nil && !c.binding && c.joined {
		r.connections.depart(c)
	}
}

// slot returns the slot for the client's next snapshot: the slot of its session, or of the
// spectator feed.
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

// TimeScale is the scale of scaled time as it was last sent to clients.
type TimeScale struct {
	*core
	told atomic.Pointer[loop.Scale]
}

// isDefault reports whether scaled time runs like game time.
func (t *TimeScale) isDefault() bool { return *t.told.Load() == loop.Unscaled }

// changed reports whether the scale has changed since the last call, and stores the new scale. The
// flush calls it, and then informs clients. A change after the flush is sent in the next tick.
func (t *TimeScale) changed() bool {
	now := t.loop.Scale()
	if now == *t.told.Load() {
		return false
	}
	t.told.Store(new(now))
	t.sent.timeScale(t.message())
	return true
}

// message returns the scale as it is sent to clients: scaled time as a linear function of game time
// that begins at a tick.
func (t *TimeScale) message() transport.TimeScale {
	s := t.told.Load()
	return transport.TimeScale{Num: s.Num, Den: s.Den, Tick: t.Timeline().TickAt(s.From), At: s.To, Fraction: s.Frac}
}

// Speed returns the speed of scaled time relative to game time: 2 is twice as fast. Any goroutine
// may call it.
func (t *TimeScale) Speed() float64 {
	s := t.told.Load()
	return float64(s.Num) / float64(s.Den)
}
