package room

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/room/seats"
	"github.com/netloop/netloop/internal/transport"
)

// A client's connection may break while its player plays on. The client is dropped then: it keeps
// its id, its objects and its unsent messages, and is sent no packets, until a connection takes
// its seat again, with its secret or as the same player, or its time expires and it leaves.
// Silence is treated like a broken connection: a program that hangs keeps its connection up.
//
//	transport.Gone, or silent ──▶ lost ──▶ drop ──▶ overdue ──▶ leave
//	                                         │
//	transport.Joined ──▶ enter ──▶ join      └──▶ resume

// presence holds a client's connection state. It belongs to the room's goroutine.
type presence struct {
	seat      *seats.Seat
	conn      uint64             // number of the current connection of the client
	resumable bool               // it has a secret, and can resume by itself
	backlog   *transport.Backlog // nil: it never resumes by itself
	received  uint64             // reliable messages received over all connections
	before    uint64             // messages received over earlier connections
	life      uint64             // counts the programs that have been this client

	heard   time.Duration     // game time of the last arrival
	spoke   bool              // something has arrived over this connection
	known   bool              // something has arrived over any connection
	dropped *transport.Closed // why the client was dropped; nil while connected
	until   time.Duration     // game time at which a dropped client leaves
}

// enter accepts an admitted connection: as a new client, or as another connection of its client. A
// client keeps its player and its role for life: a connection with another player or role makes
// the client leave, and joins as a new client with the same id.
func (r *Room) enter(e *admitted, s *transport.Session) {
	defer r.seats.Entered(e.seat)
	if before, ok := r.clients.get(e.evicts); ok && before.dropped != nil {
		r.metrics.Drops.Add(1, "seats", "yielded")
		r.leave(before, before.dropped)
	}
	c, ok := r.clients.get(s.ID())
	switch {
	case !ok && e.join == nil: // Its time expired during the admission.
		s.Close(transport.CodeLost, "the place was given up: join again")
	case !ok:
		r.join(&Client{id: s.ID(), room: r, join: e.join, presence: presence{seat: e.seat}}, e, s)
	case c.kicked != nil:
		s.Close(c.kicked.Code, c.kicked.Text)
	case s.Conn() < c.conn: // A newer connection has entered before.
		s.Close(transport.CodeReplaced, "")
	case e.join != nil && (e.join.Spectator != c.join.Spectator || e.join.Subject != c.join.Subject):
		why := &transport.Closed{Code: transport.CodeReplaced}
		c.disconnect(why)
		r.leave(c, why)
		r.join(&Client{id: s.ID(), room: r, join: e.join, presence: presence{seat: e.seat}}, e, s)
	default:
		r.resume(c, e, s)
	}
}

// disconnect closes the current connection, unless the client has lost it already.
func (c *Client) disconnect(why *transport.Closed) {
	if c.dropped == nil {
		c.room.sent.closed(c.id, why)
		c.session.Close(why.Code, why.Text)
	}
}

// connect makes s the session of a client and starts its snapshots.
func (c *Client) connect(e *admitted, s *transport.Session) {
	c.session, c.conn, c.resumable = s, s.Conn(), e.resumable
	c.dropped, c.spoke, c.heard = nil, false, c.room.now.GameTime
	c.room.seats.Await(c.seat, false)
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

// resume resumes a client over another connection: of the same program, or of another program of
// the same player, which starts without the state of the first.
func (r *Room) resume(c *Client, e *admitted, s *transport.Session) {
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

// resumeKind returns the label under which a resume is counted.
func resumeKind(e *admitted) string {
	switch {
	case e.join != nil:
		return "taken_over"
	case e.kept:
		return "kept"
	}
	return "bare"
}

// startOver resets a client's record for another program of the same player: messages and inputs
// of the first program, and pending answers to it, are dropped.
func (c *Client) startOver(j *Join) {
	c.join = j
	c.life++
	c.unsent = 0
	c.backlog, c.received = nil, 0
	if c.inputs != nil {
		c.inputs.Forget()
	}
	c.viewCheck = viewCheck{clamped: c.viewCheck.clamped}
	c.room.rpcs.Forget(c.id)
	c.room.rpcs.Enter(c.id, j.Holder())
}

// tellRoom sends a client the room's current epoch, overload, closing time and time scale.
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

// lost handles the end of a client's connection: the client is dropped if it may resume, otherwise
// it leaves.
func (r *Room) lost(c *Client, why *transport.Closed) {
	if !r.keeps(c, why) {
		r.leave(c, why)
		return
	}
	r.lostInStall(c, why)
	c.dropped, c.until = why, r.now.GameTime+r.spec.KeepDropped
	r.seats.Await(c.seat, true)
	r.from = c
	defer r.forget()
	r.game.Drop(c)
}

// keeps reports whether a client may resume after the end of its connection.
func (r *Room) keeps(c *Client, why *transport.Closed) bool {
	broken := why.Code == transport.CodeLost || why.Code == transport.CodeTimeout
	returns := c.resumable || c.join.Subject != "" && r.spec.SameSubject == TakeOver
	return r.spec.KeepDropped > 0 && broken && returns && c.known && c.kicked == nil && !r.ending
}

// overdue removes dropped clients after their time, and closes silent connections. A client that
// hangs is sent the reason, in case it reads again.
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

// arrivedReliable counts a client's reliable message and acknowledges it from time to time.
func (c *Client) arrivedReliable(a *transport.Arrival) {
	if a.Number == 0 || c.backlog == nil {
		return
	}
	c.received = c.before + a.Number
	c.session.Received(c.received, a.Size)
}
