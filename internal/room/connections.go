package room

import (
	"time"

	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/room/seats"
	"github.com/netloop/netloop/internal/transport"
)

// A client may lose its connection although its player plays on. The room then drops the client:
// the client keeps its id, its objects and its unsent messages, and is sent no packets. It resumes
// when a connection claims its seat, with the seat's secret or as the same player. If its time
// expires first, it leaves. The room treats silence like a lost connection, because the connection
// of a hung program stays open.
//
//	transport.Gone, or silent ──▶ lost ──▶ drop ──▶ expire ──▶ leave
//	                                         │
//	transport.Joined ──▶ enter ──▶ join      └──▶ resume

// presence holds a client's connection state. It belongs to the room's goroutine.
type presence struct {
	seat      *seats.Seat
	conn      uint64             // number of the current connection of the client
	resumable bool               // the client has a secret, with which it can resume
	backlog   *transport.Backlog // nil: the client cannot resume by a secret
	received  uint64             // reliable messages received over all connections
	before    uint64             // messages received over earlier connections
	program   uint64             // number of programs so far that have been this client

	heard   time.Duration     // game time of the last arrival
	spoke   bool              // data has arrived over this connection
	known   bool              // data has arrived over any connection
	dropped *transport.Closed // why the client was dropped; nil while connected
	until   time.Duration     // game time at which a dropped client leaves
}

// connections handles the joins, resumes and leaves of a room's clients.
type connections struct {
	*core
	room       *Room
	admission  *Admission
	messages   *Messages
	stall      *stall
	visits     visits
	emptySince time.Duration // game time of the last tick with a client in the room
}

// enter accepts an admitted connection: as a new client, or as another connection of an existing
// client. A client never changes its player or its role: if the connection has another player or
// role, the client leaves, and a new client with the same id joins.
func (cs *connections) enter(e *admitted, s *transport.Session) {
	defer cs.admission.seats.Entered(e.seat)
	if before, ok := cs.clients.get(e.evicts); ok && before.dropped != nil {
		cs.metrics.Drops.Add(1, "seats", "yielded")
		cs.leave(before, before.dropped)
	}
	c, ok := cs.clients.get(s.ID())
	switch {
	case !ok && e.join == nil: // The client's time expired during the admission.
		s.Close(transport.CodeLost, "the place was given up: join again")
	case !ok:
		cs.join(&Client{id: s.ID(), room: cs.room, join: e.join, presence: presence{seat: e.seat}}, e, s)
	case c.kicked != nil:
		s.Close(c.kicked.Code, c.kicked.Text)
	case s.Conn() < c.conn: // A newer connection has already entered.
		s.Close(transport.CodeReplaced, "")
	case e.join != nil && (e.join.Spectator != c.join.Spectator || e.join.Subject != c.join.Subject):
		cs.replace(c, e, s)
	default:
		cs.resume(c, e, s)
	}
}

// replace replaces a client by another one with the same id, for a connection with another player
// or role.
func (cs *connections) replace(before *Client, e *admitted, s *transport.Session) {
	why := &transport.Closed{Code: transport.CodeReplaced}
	before.disconnect(why)
	cs.leave(before, why)
	c := &Client{id: s.ID(), room: cs.room, join: e.join, presence: presence{seat: e.seat}}
	cs.join(c, e, s)
	if c.join.Subject == before.join.Subject && c.kicked == nil {
		cs.from = c
		defer cs.forget()
		cs.game.Role(c)
	}
}

// disconnect closes the client's current connection, if it still has one.
func (c *Client) disconnect(why *transport.Closed) {
	if c.dropped == nil {
		c.room.sent.closed(c.id, why)
		c.session.Close(why.Code, why.Text)
	}
}

// connect makes s the session of a client and starts its snapshots.
func (c *Client) connect(e *admitted, s *transport.Session) {
	c.session, c.conn, c.resumable, c.canTravel = s, s.Conn(), e.resumable, e.travels
	c.dropped, c.spoke, c.heard = nil, false, c.room.now.GameTime
	c.room.Admission.seats.Await(c.seat, false)
	c.window = transport.NewWindow(c.room.Load.sendPeriod())
	c.link = transport.LinkFacts{}
	c.due = true // The first snapshot does not wait for the send interval.
	if c.resumable && c.backlog == nil {
		c.backlog = new(transport.Backlog)
	}
	if c.backlog != nil {
		s.Keep(c.backlog)
	}
	c.observeLink()
}

// resume resumes a client over another connection, of the same program or of another program of the
// same player. Another program starts without the state of the first.
func (cs *connections) resume(c *Client, e *admitted, s *transport.Session) {
	c.disconnect(&transport.Closed{Code: transport.CodeReplaced})
	if e.join != nil {
		c.startOver(e.join)
	}
	c.join.Addr = e.addr
	c.connect(e, s)
	if c.travels.bound != nil && c.told {
		s.LetTravel()
		c.step(Returned)
	}
	c.before = c.received
	c.peer.Resume(e.kept)
	cs.metrics.Resumes.Add(1, resumeKind(e))
	if c.backlog != nil {
		s.AwaitPeer()
	}
	s.Accept(c.received)
	if c.backlog != nil && !s.Resend(e.received) {
		c.Kick(transport.CodeProtocol, "has had messages that were never sent")
		return
	}
	c.tellRoom()
	cs.from = c
	defer cs.forget()
	cs.game.Resume(c)
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

// startOver resets a client's record for another program of the same player: messages, inputs and
// the requested move of the first program, and pending answers to it, are dropped.
func (c *Client) startOver(j *Join) {
	if c.moving == c.asked {
		c.moving = ""
	}
	c.join = j
	c.program++
	c.travels.replaced()
	c.unsent, c.wrong = 0, 0
	c.backlog, c.received = nil, 0
	if c.inputs != nil {
		c.inputs.Forget()
	}
	c.viewCheck = viewCheck{clamped: c.viewCheck.clamped}
	c.room.Messages.forgetFrom(c.id)
	c.room.Messages.queue.Enter(c.id, j.Holder())
}

// tellRoom sends the client the room's current epoch, overload, closing time and time scale.
func (c *Client) tellRoom() {
	r := c.room
	c.session.PublishEpoch(transport.Epoch(r.in.Epoch))
	if r.Load.Level() != overload.Normal {
		c.session.PublishOverload(r.Load.message())
	}
	if left := r.Shutdown.closesAt - r.in.Start; r.Shutdown.ending && left > 0 {
		c.session.PublishClosing(left)
	}
	if !r.Scale.isDefault() {
		c.session.PublishTimeScale(r.Scale.message())
	}
}

// lost handles the end of a client's connection: it drops the client if the client may resume, and
// otherwise removes it.
func (cs *connections) lost(c *Client, why *transport.Closed) {
	if c.travelled(why) {
		c.step(Left)
	}
	if !cs.mayResume(c, why) {
		cs.leave(c, why)
		return
	}
	cs.stall.lostClient(c, why)
	c.dropped, c.until = why, cs.now.GameTime+cs.keepTime(c, why)
	cs.admission.seats.Await(c.seat, true)
	cs.from = c
	defer cs.forget()
	cs.game.Drop(c)
}

// mayResume reports whether a client may resume after the end of its connection.
func (cs *connections) mayResume(c *Client, why *transport.Closed) bool {
	broken := why.Code == transport.CodeLost || why.Code == transport.CodeTimeout || c.travelled(why)
	returns := c.resumable || c.join.Subject != "" && cs.spec.SameSubject == TakeOver
	return cs.keepTime(c, why) > 0 && broken && returns && c.known && c.kicked == nil && !cs.room.Shutdown.ending
}

// expire removes dropped clients that were kicked, that have too many waiting messages, or whose
// time is over. It also closes silent connections, and sends the reason, in case the client reads
// again.
func (cs *connections) expire() {
	for _, c := range cs.clients.list {
		switch now := cs.now.GameTime; {
		case c.dropped != nil && c.kicked != nil:
			cs.leave(c, c.kicked)
		case c.dropped != nil && c.backlog != nil && c.backlog.Overflowed():
			cs.leave(c, &transport.Closed{Code: transport.CodeSlow, Text: "more messages waited for it than are kept"})
		case c.dropped != nil && now >= c.until:
			if c.travelled(c.dropped) {
				c.step(Expired)
			}
			cs.leave(c, c.expired())
		case c.dropped == nil && c.kicked == nil && now-c.heard >= cs.spec.LostAfter:
			why := &transport.Closed{Code: transport.CodeTimeout, Text: "nothing was heard for " + cs.spec.LostAfter.String()}
			c.disconnect(why)
			cs.lost(c, why)
		}
	}
}

// closeEmpty closes a room that has been empty for Spec.CloseEmpty. The time restarts while a seat
// is reserved or a client is being admitted.
func (cs *connections) closeEmpty() {
	if cs.spec.CloseEmpty <= 0 || len(cs.clients.list) > 0 {
		cs.emptySince = cs.now.GameTime
		return
	}
	if cs.now.GameTime-cs.emptySince < cs.spec.CloseEmpty {
		return
	}
	why := &transport.Closed{Code: transport.CodeClosing, Text: "nobody is in the room"}
	if !cs.source.vacate(why) {
		cs.emptySince = cs.now.GameTime
		return
	}
	cs.room.Close(why.Code, why.Text)
}

// depart removes a client that moves to another room, and sends it the ticket for that room. In a
// cluster the ticket is bound before.
func (cs *connections) depart(c *Client) {
	if cs.spec.Travels && !c.local {
		cs.bind(c)
		return
	}
	cs.sent.closed(c.id, &transport.Closed{Code: transport.CodeMoved, Text: c.moving})
	cs.keepPlace(c)
	cs.leave(c, &transport.Closed{Code: transport.CodeMoved})
	cs.admission.seats.RemoveSession(c.session) // The session continues in the other room.
	c.session.Move(c.moving)
}

// join adds a client, or closes its connection if the game refuses it.
func (cs *connections) join(c *Client, e *admitted, s *transport.Session) {
	cs.admission.seats.Take(c.seat, c.join.Spectator)
	c.peer = cs.world.NewPeer(cs.now.Tick)
	c.joinedAt = cs.now.GameTime
	if cs.visits.often(c.join.Holder().Key, c.joinedAt) {
		c.peer.Slow()
	}
	c.peer.Handle = c
	c.connect(e, s)
	c.SetBudget(0)
	cs.game.Enter(c)
	cs.clients.add(c)
	cs.messages.queue.Enter(c.id, c.join.Holder())
	c.joined = true
	cs.from = c
	defer cs.forget()
	if err := cs.game.Join(c); err != nil {
		code, text := cs.reason("OnJoin", err, &cs.guard)
		c.Kick(code, text)
		return
	}
	s.Accept(0)
	c.tellRoom()
	c.settled = true
	c.confirm()
}

// leave removes a client: exactly once for each that joined.
func (cs *connections) leave(c *Client, why *transport.Closed) {
	if c.kicked != nil {
		why = c.kicked
	}
	if c.dropped == nil { // Otherwise it was counted when it was dropped.
		cs.stall.lostClient(c, why)
	}
	// CodeFlood is set by the limits of messages, by the game, or because the client's inbox was
	// full.
	if why.Code == transport.CodeFlood {
		cs.admission.penalise(c)
	}
	cs.visits.left(c.join.Holder().Key, c.joinedAt, cs.now.GameTime)
	cs.from = c
	defer cs.forget()
	cs.game.Leave(c, why)
	cs.messages.forgetFrom(c.id)
	cs.disownAll(c)
	cs.world.ClosePeer(c.peer)
	cs.clients.remove(c)
	cs.game.Left(c)
	c.joined, c.answers = false, nil
	cs.emptySince = cs.now.GameTime
	cs.admission.seats.Leave(c.seat)
}

// arrivedReliable counts a client's reliable message and acknowledges it from time to time.
func (c *Client) arrivedReliable(a *transport.Arrival) {
	if a.Number == 0 || c.backlog == nil {
		return
	}
	c.received = c.before + a.Number
	c.session.Received(c.received, a.Size)
}
