package netloop

import (
	"slices"
	"time"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// ClientID names a client for as long as its server runs. 0 is nobody.
type ClientID uint64

// Client is one player's record on the server. Like everything of a room it
// belongs to the room's goroutine.
type Client struct {
	id        ClientID
	room      *Room
	join      *Join
	session   *transport.Session
	peer      *netvar.Peer      // what the client has acknowledged of the state
	window    *transport.Window // how many snapshots may be under way to it
	link      transport.LinkFacts
	due       bool   // a snapshot's turn came, and it could not be sent
	waits     Reason // for what, the last time
	joined    bool   // OnJoin ran: OnLeave is owed
	kicked    *LeaveReason
	ranges    []netvar.Range // scratch of acknowledged
	owes      []*owed        // answers, by HandleLater
	groups    []*ClientGroup // that it is in
	refused   int            // calls answered without a handler, in the tick refusedIn
	refusedIn uint64
	unsent    uint64 // ranges of acknowledgements that name packets which were never sent

	// Game time from which on it may ask again: for the full state, for digests.
	fullFrom, digestFrom time.Duration
}

// ID returns the client's id.
func (c *Client) ID() ClientID { return c.id }

// Join returns what the client said when it asked to come in.
func (c *Client) Join() *Join { return c.join }

// Connected reports whether the client's connection is up.
func (c *Client) Connected() bool { return c.joined && c.kicked == nil }

// LinkStats says how a client's connection is doing.
type LinkStats struct {
	RTT      time.Duration // smoothed round trip
	InFlight int           // snapshots sent and not acknowledged yet
	Window   int           // how many may be
}

// Link returns how the client's connection was doing at the last poll.
func (c *Client) Link() LinkStats {
	return LinkStats{RTT: c.link.SRTT, InFlight: c.window.InFlight(), Window: c.window.Size()}
}

// Kick closes the client's connection after this tick's flush; code and text
// reach the client. What it sends from now on is dropped. It leaves once the
// connection has ended: some ticks later, at most half a second.
func (c *Client) Kick(t *Tick, code Code, why string) {
	t.server("Client.Kick")
	if c.kicked == nil {
		c.kicked = &LeaveReason{code, why}
	}
}

// need panics for no client. That is a mistake which is easily made: nil is the sender of a
// posted message.
func (c *Client) need(what string) {
	if c == nil {
		panic("netloop: " + what + ": the client is nil, which is who sends a message of RPC.Post: look for that first")
	}
}

// refuse answers a call with an error, in words only if the game made it so.
func (c *Client) refuse(it *rpcqueue.Item, err error) { c.refuseCall(it.Method.ID, it.Call, err) }

func (c *Client) refuseCall(method uint32, call uint64, err error) {
	code, text, _ := public(err)
	c.session.Send(transport.Message{
		Method: method, Call: call, Reply: true, Reliable: true, Code: uint32(code), Text: text,
	})
}

// observeLink takes the facts by which this tick decides what is sent.
func (c *Client) observeLink() {
	link := c.room.feed.link(c)
	if link.LastArrival != c.link.LastArrival {
		c.window.Arrived(link.LastArrival)
	}
	c.link = link
}

func (cs *clients) find(id ClientID) (int, bool) {
	return slices.BinarySearchFunc(cs.list, id, func(c *Client, id ClientID) int {
		switch {
		case c.id < id:
			return -1
		case c.id > id:
			return 1
		}
		return 0
	})
}

func (cs *clients) add(c *Client) {
	i, _ := cs.find(c.id)
	cs.list = slices.Insert(cs.list, i, c)
}

func (cs *clients) remove(c *Client) {
	cs.last = nil
	if i, ok := cs.find(c.id); ok {
		cs.list = slices.Delete(slices.Clone(cs.list), i, i+1) // A running iteration keeps its list.
	}
}
