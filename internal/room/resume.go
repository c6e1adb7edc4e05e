package room

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/transport"
)

// A client's connection may break while its player plays on. The client is dropped then: it keeps
// its id, its objects and what it is owed, and nothing is sent to it, until somebody comes to its
// seat, with its secret or as the same player, or its time has passed and it leaves. Silence is as
// good as a broken connection: a program that hangs keeps its connection up.
//
//	transport.Gone, or silent ──▶ lost ──▶ drop ──▶ overdue ──▶ leave
//	                                         │
//	transport.Joined ──▶ enter ──▶ join      └──▶ comeBack

// presence is what a client's record says of its connections. It belongs to the room's goroutine.
type presence struct {
	seat      *seat
	conn      uint64             // the connection that counts, of all that the client has had
	resumable bool               // it has a secret, and so comes back by itself
	backlog   *transport.Backlog // nil: it never comes back by itself
	received  uint64             // reliable messages that have arrived, over all connections
	before    uint64             // of them those before this connection
	life      uint64             // counts the programs that have been this client

	heard   time.Duration     // game time at which something arrived last
	spoke   bool              // anything has arrived over this connection
	known   bool              // or over any
	dropped *transport.Closed // why, while it is
	until   time.Duration     // game time at which a dropped client leaves
}

// enter takes in an admitted connection: as a new client, or as another connection of its client.
// A client keeps its player and its role for life: a connection with another one makes it leave,
// and joins as a new client with the same id.
func (r *Room) enter(e *entrance, s *transport.Session) {
	defer r.seats.entered(e.seat)
	if before, ok := r.clients.get(e.instead); ok && before.dropped != nil {
		r.metrics.Drops.Add(1, "seats", "yielded")
		r.leave(before, before.dropped)
	}
	c, ok := r.clients.get(s.ID())
	switch {
	case !ok && e.join == nil: // Its time has passed while it was on its way.
		s.Close(transport.CodeLost, "the place was given up: join again")
	case !ok:
		r.join(&Client{id: s.ID(), room: r, join: e.join, presence: presence{seat: e.seat}}, e, s)
	case c.kicked != nil:
		s.Close(c.kicked.Code, c.kicked.Text)
	case s.Conn() < c.conn: // It has been overtaken.
		s.Close(transport.CodeReplaced, "")
	case e.join != nil && (e.join.Spectator != c.join.Spectator || e.join.Subject != c.join.Subject):
		why := &transport.Closed{Code: transport.CodeReplaced}
		c.disconnect(why)
		r.leave(c, why)
		r.join(&Client{id: s.ID(), room: r, join: e.join, presence: presence{seat: e.seat}}, e, s)
	default:
		r.comeBack(c, e, s)
	}
}

// disconnect closes the connection that counts, unless the client has lost it already.
func (c *Client) disconnect(why *transport.Closed) {
	if c.dropped == nil {
		c.room.leaving.closed(c.id, why)
		c.session.Close(why.Code, why.Text)
	}
}

// connect makes a session the one of a client, which begins to be sent snapshots.
func (c *Client) connect(e *entrance, s *transport.Session) {
	c.session, c.conn, c.resumable = s, s.Conn(), e.resumable
	c.dropped, c.spoke, c.heard = nil, false, c.room.now.GameTime
	c.room.seats.await(c.seat, false)
	c.window = transport.NewWindow(c.room.sendPeriod())
	c.link = transport.LinkFacts{}
	c.due = true // The first snapshot does not wait for its turn.
	if c.resumable && c.backlog == nil {
		c.backlog = new(transport.Backlog)
	}
	if c.backlog != nil {
		s.Keep(c.backlog)
	}
	c.observeLink()
}

// comeBack lets a client go on over another connection: the program that it was, or another one
// of the same player, which has nothing of what the first one had.
func (r *Room) comeBack(c *Client, e *entrance, s *transport.Session) {
	c.disconnect(&transport.Closed{Code: transport.CodeReplaced})
	if e.join != nil {
		c.startOver(e.join)
	}
	c.join.Addr = e.addr
	c.connect(e, s)
	c.before = c.received
	c.peer.Resume(e.kept)
	r.metrics.Resumes.Add(1, resumeKind(e))
	if c.backlog != nil {
		s.AwaitPeer()
	}
	s.Accept(c.received)
	if c.backlog != nil && !s.Resend(e.received) {
		c.Kick(transport.CodeProtocol, "has had messages that were never sent")
		return
	}
	c.tellRoom()
	r.from = c
	defer r.forget()
	r.game.Resume(c)
}

// resumeKind is the label under which a return is counted.
func resumeKind(e *entrance) string {
	switch {
	case e.join != nil:
		return "taken_over"
	case e.kept:
		return "kept"
	}
	return "bare"
}

// startOver makes a client's record that of another program of the same player: what the first
// one had sent, and what is owed to it, concerns nobody any more.
func (c *Client) startOver(j *Join) {
	c.join = j
	c.life++
	c.unsent = 0
	c.backlog, c.received = nil, 0
	if c.inputs != nil {
		c.inputs.Forget()
	}
	c.sight = sight{clamped: c.sight.clamped}
	c.room.rpcs.Forget(c.id)
	c.room.rpcs.Enter(c.id, j.holder())
}

// tellRoom tells a client what the room's clients know.
func (c *Client) tellRoom() {
	r := c.room
	c.session.PublishEpoch(transport.Epoch(r.in.Epoch))
	if r.Overload() != overload.Normal {
		c.session.PublishOverload(r.overload())
	}
	if left := r.closesAt - r.in.Start; r.ending && left > 0 {
		c.session.PublishClosing(left)
	}
	if *r.scale.Load() != loop.Unscaled {
		c.session.PublishTimeScale(r.timeScale())
	}
}

// lost takes the end of a client's connection: the client is dropped if it may come back, and
// leaves if not.
func (r *Room) lost(c *Client, why *transport.Closed) {
	if !r.keeps(c, why) {
		r.leave(c, why)
		return
	}
	r.lostInStall(c, why)
	c.dropped, c.until = why, r.now.GameTime+r.spec.KeepDropped
	r.seats.await(c.seat, true)
	r.from = c
	defer r.forget()
	r.game.Drop(c)
}

// keeps reports whether a client whose connection has ended may come back.
func (r *Room) keeps(c *Client, why *transport.Closed) bool {
	broken := why.Code == transport.CodeLost || why.Code == transport.CodeTimeout
	returns := c.resumable || c.join.Subject != "" && r.spec.SameSubject == TakeOver
	return r.spec.KeepDropped > 0 && broken && returns && c.known && c.kicked == nil && !r.ending
}

// overdue lets those leave whose time has passed, and gives up connections over which nothing
// comes. A client that hangs is told why, should it ever look.
func (r *Room) overdue() {
	for _, c := range r.clients.list {
		switch now := r.now.GameTime; {
		case c.dropped != nil && c.kicked != nil:
			r.leave(c, c.kicked)
		case c.dropped != nil && c.backlog != nil && c.backlog.Overflowed():
			r.leave(c, &transport.Closed{Code: transport.CodeSlow, Text: "more messages waited for it than are kept"})
		case c.dropped != nil && now >= c.until:
			r.leave(c, c.dropped)
		case c.dropped == nil && c.kicked == nil && now-c.heard >= r.spec.LostAfter:
			why := &transport.Closed{Code: transport.CodeTimeout, Text: "nothing was heard for " + r.spec.LostAfter.String()}
			c.disconnect(why)
			r.lost(c, why)
		}
	}
}

// arrivedReliable counts a reliable message of a client, and tells it from time to time.
func (c *Client) arrivedReliable(a *transport.Arrival) {
	if a.Number == 0 || c.backlog == nil {
		return
	}
	c.received = c.before + a.Number
	c.session.Received(c.received, a.Size)
}
