package room

import (
	"cmp"
	"slices"
)

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
	list []*Client // clients with connections: all but the spectator feed
	feed *Client   // the spectator feed; nil without
	all  []*Client // the list and the spectator feed; nil after a change
	last *Client   // last result of get: the messages of one packet have one sender
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
		// A running iteration keeps its list.
		cs.list = slices.Delete(slices.Clone(cs.list), i, i+1)
	}
}

// setFeed sets the spectator feed.
func (cs *clients) setFeed(c *Client) { cs.feed, cs.all = c, nil }
