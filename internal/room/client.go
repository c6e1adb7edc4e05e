package room

import (
	"cmp"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// Client is one player's record on the server. Like the rest of the room's state it belongs to the
// room's goroutine.
type Client struct {
	Game any // the game's handle of the client, from Game.Enter on

	presence
	travels

	id        uint64
	room      *Room
	join      *Join
	session   *transport.Session
	peer      *netvar.Peer      // the client's acknowledged copies of the state
	window    *transport.Window // limits the number of snapshots in flight to the client
	link      transport.LinkFacts
	due       bool // a snapshot was due and could not be sent
	waits     Wait // why it could not be sent
	joined    bool // Game.Join was called, and Game.Leave must be called at its end
	kicked    *transport.Closed
	moving    string         // ticket for its move to another room after this tick
	asked     string         // ticket of the last move that its program has requested
	ranges    []netvar.Range // scratch of acknowledged
	answers   []*Answer      // pending answers
	refused   int            // number of calls answered without a handler in the tick refusedIn
	refusedIn uint64
	inputs    *input.Buffer // nil before the first input
	margins   *margins      // how early the last second's inputs arrived; nil if inputs is nil
	early     time.Duration // how long before its deadline the newest input arrived
	viewCheck viewCheck
	wrong     uint64 // mispredictions that its program has reported
	toTell    bool   // the status of its inputs must be sent
	unsent    uint64 // acknowledged ranges with packets that were never sent

	joinedAt time.Duration // game time of its join
	counts   ClientCounts
	follow   *follow // counts its traffic while an operator asks for it; nil otherwise

	// Game time from which the client may again request the full state, or digests.
	fullFrom, digestFrom time.Duration
	fullGap              time.Duration // minimum time between two requests for the full state
}

// ClientCounts counts the snapshots of one client since it joined.
type ClientCounts struct {
	Snapshots    uint64 // snapshots that were sent
	Bytes        uint64 // bytes of the packets of these snapshots
	SlotBusy     uint64 // snapshots deferred because the last one had not left the server
	WindowClosed uint64 // snapshots deferred because the window was full
}

// Counts returns the client's counts.
func (c *Client) Counts() ClientCounts { return c.counts }

// Transport returns the name of the transport that carries the client's connection.
func (c *Client) Transport() string {
	if c.IsFeed() {
		return "feed"
	}
	return c.session.Transport()
}

// Simulate puts an emulated network around the client's connection, until that ends. It reports
// false without a connection, or if its driver cannot.
func (c *Client) Simulate(network string) bool { return c.Connected() && c.session.Simulate(network) }

// Simulated returns the emulated network around the client's connection, or an empty text.
func (c *Client) Simulated() string {
	if c.session == nil {
		return ""
	}
	return c.session.Simulated()
}

// Dropped reports whether the client has lost its connection and may resume.
func (c *Client) Dropped() bool { return c.dropped != nil }

// JoinedAt returns the game time of the client's join.
func (c *Client) JoinedAt() time.Duration { return c.joinedAt }

// Wait is the reason why a client got no snapshot when one was due.
type Wait uint8

// The reasons of Wait.
const (
	WaitsForNothing Wait = iota
	WaitsForSlot         // the client's last snapshot has not left the server yet
	WaitsForWindow       // the snapshots in flight fill the client's window
)

// ID returns the client's id.
func (c *Client) ID() uint64 { return c.id }

// Room returns the client's room.
func (c *Client) Room() *Room { return c.room }

// Join returns the client's request to join.
func (c *Client) Join() *Join { return c.join }

// Peer returns the state of the client's copies of the room's objects, and its view of them.
func (c *Client) Peer() *netvar.Peer { return c.peer }

// Connected reports whether the client's connection is up.
func (c *Client) Connected() bool { return c.joined && c.kicked == nil && c.dropped == nil }

// Silent returns the game time since the client's last arrival.
func (c *Client) Silent() time.Duration {
	if c.IsFeed() {
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
// of snapshots in flight, and the limit of that number.
func (c *Client) Link() (rtt time.Duration, inFlight, window int) {
	return c.link.SRTT, c.window.InFlight(), c.window.Size()
}

// Mispredicted returns the number of mispredictions that the client's program has reported since it
// joined. A hostile program may report any number below 2⁵³.
func (c *Client) Mispredicted() uint64 { return c.wrong }

// Figures describe a client's connection for an operator.
type Figures struct {
	transport.Load               // of the connection; of a dropped client, Reliable is its backlog
	Loss           int           // lost packets in thousandths, see transport.Window
	Measured       bool          // Loss is known
	AckAge         time.Duration // since the poll with the newest acknowledgement
	Acked          bool          // there is one
}

// Figures returns the figures of the client's connection. It costs a lock, and is for questions.
func (c *Client) Figures() (f Figures) {
	if c.IsFeed() {
		return f
	}
	f.Load = c.session.Load()
	if c.dropped != nil {
		if f.Reliable, f.Unreliable = 0, 0; c.backlog != nil {
			f.Reliable = c.backlog.Bytes()
		}
	}
	f.Loss, f.Measured = c.window.Loss()
	if at, ok := c.window.LastAck(); ok {
		f.AckAge, f.Acked = c.room.in.Start-at, true
	}
	return f
}

// Kick closes the client's connection after this tick's flush. Its messages are dropped from now
// on.
func (c *Client) Kick(code transport.Code, text string) {
	if c.kicked == nil {
		c.kicked = &transport.Closed{Code: code, Text: text}
	}
}

// Move lets the client leave at the end of this tick and move to the room of a ticket. A client
// without a connection moves once it has resumed. With Spec.Travels the ticket is bound first, and
// a client that moves to another server leaves when it has arrived there: see travel.go.
func (c *Client) Move(ticket string) {
	if c.kicked == nil && c.moving == "" {
		c.moving = ticket
	}
}

// budgetTicks is the number of ticks for which a client's unused budget accumulates. If the
// interval between two snapshots under overload, twice Spec.SendEvery, is larger, the budget
// accumulates for that interval. A longer time would permit bursts that are too large for the
// client's link.
const budgetTicks = 4

// SetBudget sets the number of bytes of object records that the client is sent per tick, on
// average. 0 selects the budget of the room's Spec.
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

// observeLink reads the facts of the client's link, which decide what this tick sends to the
// client, and records the time of a new arrival.
func (c *Client) observeLink() {
	if c.dropped != nil {
		return
	}
	link := c.room.source.link(c)
	if link.LastArrival != c.link.LastArrival {
		c.window.Arrived(link.LastArrival)
		c.heard = max(c.heard, c.heardAt(link.LastArrival))
		if !c.spoke {
			c.spoke, c.known = true, true
			if who := c.room.Admission.seats.Heard(c.seat, c.conn); who != nil {
				c.origin = &who.From
				c.confirm()
			}
		}
	}
	c.link = link
}

// Client returns the client with the id, if it is in the room.
func (c *core) Client(id uint64) (*Client, bool) {
	if id == FeedID {
		return c.clients.feed, c.clients.feed != nil
	}
	return c.clients.get(id)
}

// Clients returns the clients in the order of their ids, the spectator feed last. The returned
// list does not change while clients leave.
func (c *core) Clients() []*Client {
	cs := &c.clients
	if cs.feed == nil {
		return cs.list
	}
	if cs.all == nil {
		cs.all = append(slices.Clip(cs.list), cs.feed)
	}
	return cs.all
}

// clients holds the clients of a room in the order of their ids. The room's goroutine owns it.
type clients struct {
	list []*Client // all clients, also disconnected ones, but not the spectator feed
	feed *Client   // the spectator feed; nil: there is none
	all  []*Client // the list and the spectator feed; nil after a change
	last *Client   // last result of get, because all messages of a packet have the same sender
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
	cs.all = nil
	cs.list = slices.Insert(cs.list, i, c)
}

func (cs *clients) remove(c *Client) {
	cs.last, cs.all = nil, nil
	if i, ok := cs.find(c.id); ok {
		// Change a copy: a caller may be iterating over the list.
		cs.list = slices.Delete(slices.Clone(cs.list), i, i+1)
	}
}

// setFeed sets the spectator feed.
func (cs *clients) setFeed(c *Client) { cs.feed, cs.all = c, nil }
