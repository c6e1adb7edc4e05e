package netloop

import (
	"errors"
	"sync"

	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// ErrBusy is returned by [RPC.Post] when too many posted messages wait.
var ErrBusy = errors.New("netloop: the room's queue of posted messages is full")

// Post hands a message to the room from any goroutine. Its handler runs at the
// method's default stage in one of the next ticks, with a nil client. At most
// 1 024 messages may wait; beyond that Post returns [ErrBusy].
func (e *RPC[M]) Post(r *Room, m M) error {
	if err := e.m.belongs(r.schema); err != nil {
		return err
	}
	return r.post(rpcqueue.Item{Method: &e.m.rq, Msg: inside.Erase(m)})
}

// posts bounds what RPC.Post hands over from other goroutines.
type posts struct {
	mu    sync.Mutex
	items []rpcqueue.Item // under mu
	spare []rpcqueue.Item // the room's
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

func (r *Room) post(it rpcqueue.Item) error {
	p := &r.queued
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.items) >= maxPosts {
		r.server.metrics.AddDrop("post", "full", 1)
		return ErrBusy
	}
	p.items = append(p.items, it)
	return nil
}
