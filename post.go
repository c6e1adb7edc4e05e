package netloop

import (
	"errors"
	"fmt"
	"sync"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
)

// ErrBusy is returned by [RPC.Post] when too many posted messages wait.
var ErrBusy = errors.New("netloop: the room's queue of posted messages is full")

// Post hands a message to the room from any goroutine. Its handler runs at the
// method's default stage in one of the next ticks, with a nil client. At most
// 1 024 messages may wait; beyond that Post returns [ErrBusy]. Once the room has
// ended it returns a [*Closed]; what waits at its end is dropped and counted.
func (e *RPC[M]) Post(r *Room, m M) error {
	if err := e.m.Belongs(r.schema.s); err != nil {
		return fmt.Errorf("netloop: RPC.Post: %w", err)
	}
	return r.post(rpcqueue.Item{Method: &e.m.Queue, Msg: schema.Erase(m)})
}

// posts bounds what RPC.Post hands over from other goroutines.
type posts struct {
	mu     sync.Mutex
	items  []rpcqueue.Item // under mu
	closed bool            // under mu
	spare  []rpcqueue.Item // the room's
}

const maxPosts = 1024 // a burst of ten seconds at 100 a second

// take empties the queue. What it returns is valid until the next call.
func (p *posts) take() []rpcqueue.Item {
	clear(p.spare) // Let go of the messages.
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items, p.spare = p.spare[:0], p.items
	return p.spare
}

// close drops what waits, and refuses what comes later: no tick will take it.
func (p *posts) close() (dropped int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped = len(p.items)
	p.items, p.closed = nil, true
	return dropped
}

func (r *Room) post(it rpcqueue.Item) error {
	p := &r.queued
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		r.server.metrics.AddDrop("post", "closed", 1)
		return &Closed{CodeClosing, "the room has ended"}
	}
	if len(p.items) >= maxPosts {
		r.server.metrics.AddDrop("post", "full", 1)
		return ErrBusy
	}
	p.items = append(p.items, it)
	return nil
}
