package netloop

import "iter"

// PerClient keeps a game's own record for each client of a room: allocated, zero, before OnJoin
// runs and freed after OnLeave has run.
type PerClient[T any] struct{ of map[ClientID]*T }

// NewPerClient makes the records of a room. Call it in [Game] Open. It panics elsewhere: clients
// that have joined would have no record.
func NewPerClient[T any](r *Room) *PerClient[T] {
	p := &PerClient[T]{of: map[ClientID]*T{}}
	if !r.opening {
		panic("netloop: NewPerClient belongs into the game's Open: the clients that have joined would have no record")
	}
	r.hooks.perClient = append(r.hooks.perClient, p)
	return p
}

// Of returns the client's record, to be read and changed. It panics for a client that has left, and
// for nil, which is the sender of a posted message.
func (p *PerClient[T]) Of(c *Client) *T {
	c.need("PerClient.Of")
	v, ok := p.of[c.ID()]
	if !ok {
		panic("netloop: PerClient.Of: the client has left; its record is freed once OnLeave has run")
	}
	return v
}

// All iterates over the clients and their records in the order of client ids.
func (p *PerClient[T]) All(t *Tick) iter.Seq2[*Client, *T] {
	clients := t.Clients()
	return func(yield func(*Client, *T) bool) {
		for c := range clients {
			if !yield(c, p.of[c.ID()]) {
				return
			}
		}
	}
}

func (p *PerClient[T]) make(id ClientID) { p.of[id] = new(T) }
func (p *PerClient[T]) free(id ClientID) { delete(p.of, id) }
