package room

import (
	"cmp"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// Join is what a client said when it asked to come in.
type Join struct {
	Subject string         // who the player is, if admission has found out
	Claims  map[string]any // what its token says besides
	Token   string
	Addr    string
	Minor   int    // the minor version of the schema that is in force
	Params  []byte // JSON

	Ticket    bool   // it comes with one
	Spectator bool   // it comes to watch
	Reserved  []byte // what its ticket says, JSON
	Game      any    // the game's own view of it
}

// Client is one player's record on the server. Like everything of a room it
// belongs to the room's goroutine.
type Client struct {
	Game any // the game's handle of the client, from Game.Enter on

	presence

	id        uint64
	room      *Room
	join      *Join
	session   *transport.Session
	peer      *netvar.Peer      // what the client has acknowledged of the state
	window    *transport.Window // how many snapshots may be under way to it
	link      transport.LinkFacts
	due       bool // a snapshot's turn came, and it could not be sent
	waits     Wait // for what, the last time
	joined    bool // the game knows of it, and is owed its leave
	kicked    *transport.Closed
	moving    string         // the ticket by which it goes on to another room, after this tick
	ranges    []netvar.Range // scratch of acknowledged
	owes      []*Answer      // that it waits for
	refused   int            // calls answered without a handler, in the tick refusedIn
	refusedIn uint64
	inputs    *input.Buffer // nil before the first one comes
	margins   *margins      // how early those of the last second came; nil as inputs
	early     time.Duration // how long before its deadline the newest input came
	sight     sight
	toTell    bool   // something about its inputs that it has not been told
	unsent    uint64 // ranges of acknowledgements that name packets which were never sent

	came time.Duration // game time of its join

	// Game time from which on it may ask again: for the full state, for digests.
	fullFrom, digestFrom time.Duration
	fullGap              time.Duration // between its last request for the full state and the next
}

// Wait says why a client got no snapshot when its turn came.
type Wait uint8

// What a client's snapshot may wait for.
const (
	WaitsForNothing Wait = iota
	WaitsForSlot         // its last snapshot is still at the server's end of the link
	WaitsForWindow       // as many snapshots are under way to it as its link takes
)

// ID returns the client's id.
func (c *Client) ID() uint64 { return c.id }

// Room returns the room that the client has come to.
func (c *Client) Room() *Room { return c.room }

// Join returns what the client said when it asked to come in.
func (c *Client) Join() *Join { return c.join }

// Peer returns what the client has, and may see, of the room's objects.
func (c *Client) Peer() *netvar.Peer { return c.peer }

// Connected reports whether the client's connection is up.
func (c *Client) Connected() bool { return c.joined && c.kicked == nil && c.dropped == nil }

// Silent returns for how long nothing has come from the client, in game time.
func (c *Client) Silent() time.Duration {
	if c.Camera() {
		return 0
	}
	return c.room.now.GameTime - c.heard
}

// Waits says why the client's snapshot has not left yet, if its turn has come.
func (c *Client) Waits() Wait {
	if !c.due {
		return WaitsForNothing
	}
	return c.waits
}

// Link returns the smoothed round trip of the client's connection as of the last poll, how
// many snapshots are under way, and how many may be.
func (c *Client) Link() (rtt time.Duration, inFlight, window int) {
	return c.link.SRTT, c.window.InFlight(), c.window.Size()
}

// Kick closes the client's connection after this tick's flush. What it sends from now on is
// dropped.
func (c *Client) Kick(code transport.Code, text string) {
	if c.kicked == nil {
		c.kicked = &transport.Closed{Code: code, Text: text}
	}
}

// Move lets the client leave at the end of this tick, and go on to the room of a ticket. One that
// has lost its connection does when it is back.
func (c *Client) Move(ticket string) {
	if c.kicked == nil && c.moving == "" {
		c.moving = ticket
	}
}

// depart takes a client out that moves, and lets its connection go on.
func (r *Room) depart(c *Client) {
	r.leaving.closed(c.id, &transport.Closed{Code: transport.CodeMoved, Text: c.moving})
	r.leave(c, &transport.Closed{Code: transport.CodeMoved})
	r.seats.gone(c.session) // The end of this room does not concern it any more.
	c.session.Move(c.moving)
}

// budgetTicks is for how many ticks a client's budget is saved up, or for the time between
// two snapshots of an overloaded server if that is longer: not for bursts that its link could
// not take.
const budgetTicks = 4

// SetBudget sets how many bytes of object records the client is sent per tick, on average.
// 0 is what the room's Spec says.
func (c *Client) SetBudget(perTick int) {
	if c.session == nil { // A camera's link takes all.
		return
	}
	if perTick <= 0 {
		perTick = c.room.spec.Budget
	}
	perTick = min(perTick, netvar.MaxBudget)
	c.peer.SetBudget(netvar.Budget{PerTick: perTick, Burst: perTick * max(budgetTicks, 2*c.room.spec.SendEvery)})
}

// observeLink takes the facts by which this tick decides what is sent.
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
			c.room.seats.heard(c.seat, c.conn)
		}
	}
	c.link = link
}

// join brings a client in, or closes its connection when the game refuses it.
func (r *Room) join(c *Client, e *entrance, s *transport.Session) {
	r.seats.take(c.seat, c.join.Spectator)
	c.peer = r.world.NewPeer(r.now.Tick)
	c.came = r.now.GameTime
	if r.visits.often(c.join.holder().Key, c.came) {
		c.peer.Slow()
	}
	c.peer.Handle = c
	c.connect(e, s)
	c.SetBudget(0)
	r.game.Enter(c)
	r.clients.add(c)
	r.rpcs.Enter(c.id, c.join.holder())
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

// leave takes a client out: exactly once for each that joined.
func (r *Room) leave(c *Client, why *transport.Closed) {
	if c.kicked != nil {
		why = c.kicked
	}
	if c.dropped == nil { // Else it was counted when it was.
		r.lostInStall(c, why)
	}
	// By the limits, by the game, or because its inbox was full.
	if why.Code == transport.CodeFlood {
		r.penalise(c)
	}
	r.visits.left(c.join.holder().Key, c.came, r.now.GameTime)
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
	c.joined, c.owes = false, nil
	r.emptySince = r.now.GameTime
	r.seats.leave(c.seat)
}

func (r *Room) forget() { r.from = nil }

// Disown decides what becomes of an object whose owner is not here. Nobody leaves an object
// behind: one that got it too late would never leave again.
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

// Clients returns the clients in the order of their ids, a camera last. The list stays as it is
// while clients leave.
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

// clients holds the clients of a room in the order of their ids. The room's
// goroutine owns it.
type clients struct {
	list   []*Client // of those who have connections: all but a camera
	filmed []*Client // the list and the camera; nil once it has changed
	last   *Client   // found: the messages of one packet have one sender
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
