package room

import (
	"bytes"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// Who watches with a delay sees the room through its camera: a client that the room makes by
// itself, in its first tick, and that has no connection. It is a spectator as far as the game
// knows, so the game decides as for others what it sees, reads and hears, and decides it now. What
// it is sent goes onto the reel, and so long later a room of its own shows it to whoever is there
// (delayedspectators.go):
//
//	room's tick:  poll ── openCamera     snapshot ── film     flush ── keep ──▶ reel
//
// A camera costs what one client costs, on a link that loses nothing. What it is sent follows from
// the tick alone, but for a reel that is full, which is a fact of the feed: so a recording holds
// all of it.

// CameraID is the id of a room's camera. Clients never get as far: it is the largest whole number
// that a script in a browser tells from its neighbours.
const CameraID = 1<<53 - 1

// camera is a room's camera. It belongs to the room's goroutine.
type camera struct {
	*Client // nil: there is none
	opened  bool
	reel    *reel          // nil: nobody will ever watch, as in a replay
	slot    transport.Slot // scratch of its snapshots
	large   uint64         // records that went over its stream
	shot    shot           // of the running tick
	said    int            // bytes of its messages
	scale   loop.Scale     // that was filmed last
}

// wholeShot is what one snapshot of a camera may take: more than any room sends in a tick.
var wholeShot = netvar.Limit{Packets: netvar.MaxPackets, PacketSize: 1 << 16, Reliable: true}

// delayed reports whether spectators of the room see it with a delay.
func (r *Room) delayed() bool { return r.spec.SpectatorDelay > 0 && r.spec.MaxSpectators > 0 }

// openCamera lets the camera join in the room's first tick.
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

// Camera reports whether the client is the camera of a room whose spectators see it with a delay:
// it stands for all of them.
func (c *Client) Camera() bool { return c == c.room.camera.Client }

// slot returns where the client's snapshot goes, as its connection says.
func (c *Client) slot() *transport.Slot {
	if c.Camera() {
		return &c.room.camera.slot
	}
	return c.session.Slot()
}

// film sends the camera its snapshot, which arrives at once.
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
	r.leaving.packets(k.id, slot.Packets)
	for _, record := range large {
		r.leaving.record(k.id, record)
	}
	if k.reel != nil {
		k.shot.packets, k.shot.large = clones(slot.Packets), clones(large)
	}
	k.peer.Ack([]netvar.Range{{First: first, Last: first + uint64(len(slot.Packets)) - 1}})
	if k.large += uint64(len(large)); len(large) > 0 {
		k.peer.AckLarge(k.large)
	}
}

// hear takes a message to the camera.
func (k *camera) hear(m transport.Message) {
	if out := k.room.leaving; out != nil {
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

// keep puts what the camera was sent in this tick onto the reel.
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
		r.leaving.closed(k.id, k.kicked)
		r.closeCamera(k.kicked)
	}
}

// closeCamera lets the camera leave, and says on the reel how it ends.
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

// endReel says on the reel that nothing more comes, unless somebody has. Any goroutine may call it,
// once the room's own has ended.
func (r *Room) endReel(why *transport.Closed, messages []transport.Message) {
	if l := r.camera.reel; l != nil {
		l.add(shot{take: take{at: r.clock.Now()}, messages: messages, end: why})
	}
}

// filmed reports whether the camera has all that it shall have.
func (r *Room) filmed() bool { return r.camera.Client == nil || r.camera.peer.Settled() }
