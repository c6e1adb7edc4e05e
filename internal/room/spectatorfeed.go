package room

import (
	"bytes"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// Delayed spectators see the room through its spectator feed: a client without a connection that
// the room creates in its first tick. To the game it is a spectator, so the game decides as for
// others which objects, values and messages it is sent, and decides it now. Its data is stored in
// the reel, and a room of its own shows it to the spectators after the delay
// (delayedspectators.go):
//
//	room's tick:  poll ── openCamera     snapshot ── film     flush ── keep ──▶ reel
//
// The feed costs as much as one client on a link without loss. Its data follows from the tick
// alone, except while the reel is full, which is an outside fact (feed.go): so a recording holds
// all of it.

// CameraID is the id of the spectator feed. Clients never reach it: it is the largest integer that
// JavaScript represents exactly.
const CameraID = 1<<53 - 1

// camera is a room's spectator feed. It belongs to the room's goroutine.
type camera struct {
	*Client // nil: there is none
	opened  bool
	reel    *reel          // nil: no spectator will ever watch, as in a replay
	slot    transport.Slot // scratch of its snapshots
	large   uint64         // records that were sent over its stream
	shot    shot           // data of the running tick
	said    int            // bytes of its messages
	scale   loop.Scale     // last recorded scale
}

// wholeShot limits one snapshot of the spectator feed: to more than any room sends in a tick.
var wholeShot = netvar.Limit{Packets: netvar.MaxPackets, PacketSize: 1 << 16, Reliable: true}

// delayed reports whether spectators of the room see it with a delay.
func (r *Room) delayed() bool { return r.spec.SpectatorDelay > 0 && r.spec.MaxSpectators > 0 }

// openCamera lets the spectator feed join in the room's first tick.
func (r *Room) openCamera() {
	k := &r.camera
	if !r.delayed() || k.opened {
		return
	}
	k.opened, k.scale = true, loop.Unscaled
	c := &Client{id: CameraID, room: r, join: &Join{Spectator: true}, window: transport.NewWindow(r.sendPeriod())}
	c.peer = r.world.NewPeer(r.now.Tick)
	c.peer.AtOnce()
	c.peer.Handle = c
	c.came, c.heard = r.now.GameTime, r.now.GameTime
	k.Client = c
	r.game.Enter(c)
	c.joined = true
	r.from = c
	defer r.forget()
	if err := r.game.Join(c); err != nil {
		code, text := r.reason("OnJoin", err, &r.guard)
		c.Kick(code, text)
	}
}

// Camera reports whether the client is the spectator feed, which represents all delayed
// spectators.
func (c *Client) Camera() bool { return c == c.room.camera.Client }

// slot returns the slot of the client's snapshot, of its connection.
func (c *Client) slot() *transport.Slot {
	if c.Camera() {
		return &c.room.camera.slot
	}
	return c.session.Slot()
}

// film sends the spectator feed its snapshot and acknowledges it at once.
func (r *Room) film() {
	k := &r.camera
	if k.Client == nil || k.kicked != nil {
		return
	}
	slot := r.feed.slot(k.Client)
	if slot == nil {
		r.metrics.Drops.Add(1, "reel", "full")
		return
	}
	var first uint64
	slot.Packets, first = k.peer.AppendSnapshot(slot.Packets[:0], r.now.Tick, wholeShot)
	large := k.peer.Large()
	r.sent.packets(k.id, slot.Packets)
	for _, record := range large {
		r.sent.record(k.id, record)
	}
	if k.reel != nil {
		k.shot.packets, k.shot.large = clones(slot.Packets), clones(large)
	}
	k.peer.Ack([]netvar.Range{{First: first, Last: first + uint64(len(slot.Packets)) - 1}})
	if k.large += uint64(len(large)); len(large) > 0 {
		k.peer.AckLarge(k.large)
	}
}

// hear adds a message to the running tick's shot.
func (k *camera) hear(m transport.Message) {
	if out := k.room.sent; out != nil {
		out.message(k.id, &m)
	}
	if k.reel == nil {
		return
	}
	if !k.reel.takes(k.said) {
		k.room.metrics.Drops.Add(1, "reel", "message")
		return
	}
	m.Payload = bytes.Clone(m.Payload)
	k.said += sizeOf(&m)
	k.shot.messages = append(k.shot.messages, m)
}

// keep adds the running tick's shot to the reel.
func (r *Room) keep() {
	k := &r.camera
	if k.Client == nil {
		return
	}
	k.shot.take = take{r.in.Tick, r.in.Start, r.in.Epoch}
	if now := r.scale.Load(); *now != k.scale {
		k.scale, k.shot.scale = *now, now
	}
	if k.reel != nil {
		k.reel.add(k.shot)
	}
	k.shot, k.said = shot{}, 0
	if k.kicked != nil {
		r.sent.closed(k.id, k.kicked)
		r.closeCamera(k.kicked)
	}
}

// closeCamera lets the spectator feed leave, and ends the reel.
func (r *Room) closeCamera(why *transport.Closed) {
	k := &r.camera
	c := k.Client
	if c == nil {
		return
	}
	r.from = c
	defer r.forget()
	r.game.Leave(c, why)
	for o := range r.world.Owned(c.id) {
		r.Disown(o)
	}
	r.world.ClosePeer(c.peer)
	r.game.Left(c)
	c.joined = false
	k.Client, r.clients.filmed = nil, nil
	r.endReel(why, k.shot.messages)
}

// endReel adds the last shot to the reel, unless it has one. Any goroutine may call it once the
// room's own has ended.
func (r *Room) endReel(why *transport.Closed, messages []transport.Message) {
	if l := r.camera.reel; l != nil {
		l.add(shot{take: take{at: r.clock.Now()}, messages: messages, end: why})
	}
}

// filmed reports whether the spectator feed has all changes.
func (r *Room) filmed() bool { return r.camera.Client == nil || r.camera.peer.Settled() }
