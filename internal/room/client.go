package room

import (
	"cmp"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/room/seats"
	"github.com/netloop/netloop/internal/transport"
)

// Client is one player's record on the server. Like the rest of the room's state it belongs to the
// room's goroutine.
type Client struct {
	Game any // the game's handle of the client, from Game.Enter on

	presence

	id        uint64
	room      *Room
	join      *Join
	session   *transport.Session
	peer      *netvar.Peer      // the client's acknowledged copies of the state
	window    *transport.Window // limits the snapshots under way to it
	link      transport.LinkFacts
	due       bool // a snapshot was due and could not be sent
	waits     Wait // why it could not be sent
	joined    bool // the game has been told of its join, and must be told of its leave
	kicked    *transport.Closed
	moving    string         // the ticket of its move to another room after this tick
	ranges    []netvar.Range // scratch of acknowledged
	answers   []*Answer      // pending answers
	refused   int            // calls answered without a handler, in the tick refusedIn
	refusedIn uint64
	inputs    *input.Buffer // nil before the first input
	margins   *margins      // earliness of the last second's inputs; nil as inputs
	early     time.Duration // how long before its deadline the newest input arrived
	viewCheck viewCheck
	toTell    bool   // its feedback on inputs has to be sent
	unsent    uint64 // acknowledged ranges with packets that were never sent

	came time.Duration // game time of its join

	// Game time from which on it may repeat a request: for the full state, for digests.
	fullFrom, digestFrom time.Duration
	fullGap              time.Duration // minimum time between two requests for the full state
}

// Wait is the reason why a client got no snapshot when one was due.
type Wait uint8

// The reasons.
const (
	WaitsForNothing Wait = iota
	WaitsForSlot         // its last snapshot has not left the server yet
	WaitsForWindow       // the snapshots under way fill its window
)

// ID returns the client's id.
func (c *Client) ID() uint64 { return c.id }

// Room returns the client's room.
func (c *Client) Room() *Room { return c.room }

// Join returns the client's request to join.
func (c *Client) Join() *Join { return c.join }

// Peer returns the client's copies and its view of the room's objects.
func (c *Client) Peer() *netvar.Peer { return c.peer }

// Connected reports whether the client's connection is up.
func (c *Client) Connected() bool { return c.joined && c.kicked == nil && c.dropped == nil }

// Silent returns the game time since the client's last arrival.
func (c *Client) Silent() time.Duration {
	if c.Camera() {
		return 0
	}
	return c.room.now.GameTime - c.heard
}

// Waits returns why a due snapshot of the client has not been sent yet.
func (c *Client) Waits() Wait {
	if !c.due {
		return WaitsForNothing
	}
	return c.waits
}

// Link returns the smoothed round trip of the client's connection as of the last poll, the number
// of snapshots under way, and its limit.
func (c *Client) Link() (rtt time.Duration, inFlight, window int) {
	return c.link.SRTT, c.window.InFlight(), c.window.Size()
}

// Kick closes the client's connection after this tick's flush. Its messages are dropped from now
// on.
func (c *Client) Kick(code transport.Code, text string) {
	if c.kicked == nil {
		c.kicked = &transport.Closed{Code: code, Text: text}
	}
}

// Move lets the client leave at the end of this tick and move to the room of a ticket. A client
// without a connection moves once it has resumed.
func (c *Client) Move(ticket string) {
	if c.kicked == nil && c.moving == "" {
		c.moving = ticket
	}
}

// depart removes a moving client and tells its connection the ticket.
func (r *Room) depart(c *Client) {
	r.sent.closed(c.id, &transport.Closed{Code: transport.CodeMoved, Text: c.moving})
	r.leave(c, &transport.Closed{Code: transport.CodeMoved})
	r.seats.RemoveSession(c.session) // The end of this room no longer concerns the session.
	c.session.Move(c.moving)
}

// budgetTicks is for how many ticks a client's unused budget accumulates, or for the interval
// between two snapshots of an overloaded server if that is longer. A longer time would permit
// bursts that its link could not take.
const budgetTicks = 4

// SetBudget sets how many bytes of object records the client is sent per tick, on average. 0 is
// the budget of the room's Spec.
func (c *Client) SetBudget(perTick int) {
	if c.session == nil { // The spectator feed has no limit.
		return
	}
	if perTick <= 0 {
		perTick = c.room.spec.Budget
	}
	perTick = min(perTick, netvar.MaxBudget)
	c.peer.SetBudget(netvar.Budget{PerTick: perTick, Burst: perTick * max(budgetTicks, 2*c.room.spec.SendEvery)})
}

// observeLink updates the facts of the link on which this tick's sending is based.
func (c *Client) observeLink() {
	if c.dropped != nil {
		return
	}
	link := c.room.feed.link(c)
	if link.LastArrival != c.link.LastArrival {
		c.window.Arrived(link.LastArrival)
		c.heard = max(c.heard, c.room.heardAt(link.LastArrival))
		if !c.spoke {
			c.spoke, c.known = true, true
			c.room.seats.Heard(c.seat, c.conn)
		}
	}
	c.link = link
}

// join adds a client, or closes its connection if the game refuses it.
func (r *Room) join(c *Client, e *admitted, s *transport.Session) {
	r.seats.Take(c.seat, c.join.Spectator)
	c.peer = r.world.NewPeer(r.now.Tick)
	c.came = r.now.GameTime
	if r.visits.often(c.join.Holder().Key, c.came) {
		c.peer.Slow()
	}
	c.peer.Handle = c
	c.connect(e, s)
	c.SetBudget(0)
	r.game.Enter(c)
	r.clients.add(c)
	r.rpcs.Enter(c.id, c.join.Holder())
	c.joined = true
	r.from = c
	defer r.forget()
	if err := r.game.Join(c); err != nil {
		code, text := r.reason("OnJoin", err, &r.guard)
		c.Kick(code, text)
		return
	}
	s.Accept(0)
	c.tellRoom()
}

// leave removes a client: exactly once for each that joined.
func (r *Room) leave(c *Client, why *transport.Closed) {
	if c.kicked != nil {
		why = c.kicked
	}
	if c.dropped == nil { // Otherwise it was counted when it was dropped.
		r.lostInStall(c, why)
	}
	// Set by the limits, by the game, or because its inbox was full.
	if why.Code == transport.CodeFlood {
		r.penalise(c)
	}
	r.visits.left(c.join.Holder().Key, c.came, r.now.GameTime)
	r.from = c
	defer r.forget()
	r.game.Leave(c, why)
	r.rpcs.Forget(c.id)
	for o := range r.world.Owned(c.id) {
		r.Disown(o)
	}
	r.world.ClosePeer(c.peer)
	r.clients.remove(c)
	r.game.Left(c)
	c.joined, c.answers = false, nil
	r.emptySince = r.now.GameTime
	r.seats.Leave(c.seat)
}

func (r *Room) forget() { r.from = nil }

// Disown keeps or despawns an object of an absent owner. An owner that has left must not keep any
// object: an object assigned to it too late would never be removed.
func (r *Room) Disown(o *netvar.Object) {
	if r.game.Keeps(o) {
		r.world.SetOwner(o, 0)
		return
	}
	r.world.Despawn(o)
}

// Client returns the client with the id, if it is in the room.
func (r *Room) Client(id uint64) (*Client, bool) {
	if c := r.camera.Client; c != nil && id == CameraID {
		return c, true
	}
	return r.clients.get(id)
}

// Clients returns the clients in the order of their ids, the spectator feed last. The returned
// list does not change while clients leave.
func (r *Room) Clients() []*Client {
	cs := &r.clients
	if r.camera.Client == nil {
		return cs.list
	}
	if cs.filmed == nil {
		cs.filmed = append(slices.Clip(cs.list), r.camera.Client)
	}
	return cs.filmed
}

// clients holds the clients of a room in the order of their ids. The room's goroutine owns it.
type clients struct {
	list   []*Client // clients with connections: all but the spectator feed
	filmed []*Client // the list and the spectator feed; nil after a change
	last   *Client   // last result of get: the messages of one packet have one sender
}

func (cs *clients) get(id uint64) (*Client, bool) {
	if cs.last != nil && cs.last.id == id {
		return cs.last, true
	}
	i, ok := cs.find(id)
	if !ok {
		return nil, false
	}
	cs.last = cs.list[i]
	return cs.last, true
}

func (cs *clients) find(id uint64) (int, bool) {
	return slices.BinarySearchFunc(cs.list, id, func(c *Client, id uint64) int { return cmp.Compare(c.id, id) })
}

func (cs *clients) add(c *Client) {
	i, _ := cs.find(c.id)
	cs.filmed = nil
	cs.list = slices.Insert(cs.list, i, c)
}

func (cs *clients) remove(c *Client) {
	cs.last, cs.filmed = nil, nil
	if i, ok := cs.find(c.id); ok {
		// A running iteration keeps its list.
		cs.list = slices.Delete(slices.Clone(cs.list), i, i+1)
	}
}

// The parts of package seats that callers of a room use.
type (
	Join        = seats.Join
	Reservation = seats.Reservation
	SameSubject = seats.SameSubject
)

// The policies for a second connection of a player.
const (
	TakeOver = seats.TakeOver
	Refuse   = seats.Refuse
	Allow    = seats.Allow
)

// ErrTicket is the error of each invalid ticket.
var ErrTicket = seats.ErrTicket

// TicketRoom returns the name of the room of a ticket; false if the text is not a ticket.
func TicketRoom(ticket string) (string, bool) { return seats.TicketRoom(ticket) }
