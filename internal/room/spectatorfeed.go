package room

import (
	"bytes"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/transport"
)

// The spectator feed is a client without a connection that a room with delayed spectators creates
// in its first tick. To the game it is a spectator, so the game decides which objects, values and
// messages the feed is sent, as for other spectators. The game decides this at the time of the
// tick, not after the delay. Its data is stored in the delay buffer:
//
//	tick:  poll ── join     snapshot ── snapshot     flush ── store ──▶ delay buffer
//
// The feed costs as much as one client on a link without loss. A recording holds all of its data,
// because the data depends only on the tick, and on whether the buffer is full, which is an outside
// fact (source.go).

// FeedID is the id of the spectator feed. Ids of clients never reach it: it is the largest integer
// that JavaScript represents exactly.
const FeedID = 1<<53 - 1

// spectatorFeed is a room's spectator feed. It belongs to the room's goroutine.
type spectatorFeed struct {
	*core
	load    *Load
	current *TimeScale
	joined  bool           // it has joined once
	buffer  *delayBuffer   // nil: there will be no spectators, as in a replay
	slot    transport.Slot // scratch of its snapshots
	large   uint64         // number of records sent over its stream
	tick    delayedTick    // data of the running tick
	queued  int            // bytes of the running tick's messages
	scale   loop.Scale     // last stored scale
}

// wholeTick is the limit of one snapshot of the spectator feed: larger than the changes of any
// tick.
var wholeTick = netvar.Limit{Packets: packet.MaxPackets, PacketSize: 1 << 16, Reliable: true}

// join lets the spectator feed join in the room's first tick.
func (f *spectatorFeed) join(r *Room) {
	if !f.spec.delayed() || f.joined {
		return
	}
	f.joined, f.scale = true, loop.Unscaled
	c := &Client{id: FeedID, room: r, join: &Join{Spectator: true}, window: transport.NewWindow(f.load.sendPeriod())}
	c.peer = f.world.NewPeer(f.now.Tick)
	c.peer.AtOnce()
	c.peer.Handle = c
	c.joinedAt, c.heard = f.now.GameTime, f.now.GameTime
	f.clients.setFeed(c)
	f.game.Enter(c)
	c.joined = true
	f.from = c
	defer f.forget()
	if err := f.game.Join(c); err != nil {
		code, text := f.reason("OnJoin", err, &f.guard)
		c.Kick(code, text)
	}
}

// snapshot adds the spectator feed's snapshot to the data of the running tick, and acknowledges it
// at once. It makes no snapshot while the delay buffer is full.
func (f *spectatorFeed) snapshot() {
	c := f.clients.feed
	if c == nil || c.kicked != nil {
		return
	}
	slot := f.source.slot(c)
	if slot == nil {
		f.metrics.Drops.Add(1, "reel", "full")
		return
	}
	var first uint64
	slot.Packets, first = c.peer.AppendSnapshot(slot.Packets[:0], f.now.Tick, wholeTick)
	large := c.peer.Large()
	f.sent.packets(c.id, slot.Packets)
	for _, record := range large {
		f.sent.record(c.id, record)
	}
	if f.buffer != nil {
		f.tick.packets, f.tick.large = clones(slot.Packets), clones(large)
	}
	c.peer.Ack([]netvar.Range{{First: first, Last: first + uint64(len(slot.Packets)) - 1}})
	if f.large += uint64(len(large)); len(large) > 0 {
		c.peer.AckLarge(f.large)
	}
}

// send adds a message to the data of the running tick, or drops it if the delay buffer is full.
func (f *spectatorFeed) send(m transport.Message) {
	f.sent.message(FeedID, &m)
	if f.buffer == nil {
		return
	}
	if !f.buffer.hasSpace(f.queued) {
		f.metrics.Drops.Add(1, "reel", "message")
		return
	}
	m.Payload = bytes.Clone(m.Payload)
	f.queued += sizeOf(&m)
	f.tick.messages = append(f.tick.messages, m)
}

// store adds the data of the running tick to the delay buffer.
func (f *spectatorFeed) store() {
	c := f.clients.feed
	if c == nil {
		return
	}
	f.tick.stamp = stamp{f.in.Tick, f.in.Start, f.in.Epoch}
	if now := f.current.told.Load(); *now != f.scale {
		f.scale, f.tick.scale = *now, now
	}
	if f.buffer != nil {
		f.buffer.add(f.tick)
	}
	f.tick, f.queued = delayedTick{}, 0
	if c.kicked != nil {
		f.sent.closed(c.id, c.kicked)
		f.leave(c.kicked)
	}
}

// leave lets the spectator feed leave, and ends the delay buffer.
func (f *spectatorFeed) leave(why *transport.Closed) {
	c := f.clients.feed
	if c == nil {
		return
	}
	f.from = c
	defer f.forget()
	f.game.Leave(c, why)
	f.disownAll(c)
	f.world.ClosePeer(c.peer)
	f.game.Left(c)
	c.joined = false
	f.clients.setFeed(nil)
	f.end(why, f.tick.messages)
}

// end adds a last tick, with the reason for the room's end, to the delay buffer, unless the buffer
// already has a last tick. Any goroutine may call it after the room's goroutine has ended.
func (f *spectatorFeed) end(why *transport.Closed, messages []transport.Message) {
	if f.buffer != nil {
		f.buffer.add(delayedTick{stamp: stamp{at: f.clock.Now()}, messages: messages, end: why})
	}
}

// settled reports whether the spectator feed has been sent all changes, or there is no feed.
func (f *spectatorFeed) settled() bool { return f.clients.feed == nil || f.clients.feed.peer.Settled() }

// size returns the bytes in the delay buffer.
func (f *spectatorFeed) size() int {
	if f.buffer == nil {
		return 0
	}
	return f.buffer.size()
}

// hasSpace reports whether the delay buffer has space for another snapshot.
func (f *spectatorFeed) hasSpace() bool { return f.buffer == nil || f.buffer.hasSpace(0) }
