package room

import (
	"errors"
	"sync"

	"github.com/netloop/netloop/internal/rpcqueue"
)

// posts queues messages of Post and of other rooms, within limits.
type posts struct {
	mu        sync.Mutex
	items     []rpcqueue.Item // under mu
	fromRooms int             // messages of other rooms among items; under mu
	bytes     int             // encoded size of these; under mu
	each      map[string]int  // their number by sending room; under mu
	closed    bool            // under mu
	spare     []rpcqueue.Item // belongs to the room's goroutine
}

const maxPosts = 1024 // a burst of ten seconds at 100 a second

// The errors of Post.
var (
	ErrFull  = errors.New("netloop: the room's queue of posted messages is full")
	ErrEnded = errors.New("netloop: the room has ended")
)

// Post queues a message of the server itself for one of the next ticks. Any goroutine may call it.
func (b *Mailbox) Post(it rpcqueue.Item) error {
	err := b.Receive(it)
	switch {
	case errors.Is(err, ErrEnded):
		b.metrics.Drops.Add(1, "post", "closed")
	case errors.Is(err, ErrFull):
		b.metrics.Drops.Add(1, "post", "full")
	}
	return err
}

// Receive is Post for a message of another room, which counts a rejected message itself.
func (b *Mailbox) Receive(it rpcqueue.Item) error {
	err := b.posts.add(it)
	if err == nil {
		b.Sleep.rouse()
	}
	return err
}

// add queues a message, if the limit of its kind permits.
func (p *posts) add(it rpcqueue.Item) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrEnded
	}
	l := roomMessageOf(&it)
	switch {
	case l == nil && len(p.items)-p.fromRooms >= maxPosts,
		l != nil && (p.fromRooms >= maxRoomMessages || p.bytes+l.size > maxWaiting || p.each[l.from.Room] >= maxFromRoom):
		return ErrFull
	case l != nil:
		if p.each == nil {
			p.each = map[string]int{}
		}
		p.each[l.from.Room]++
		p.fromRooms++
		p.bytes += l.size
	}
	p.items = append(p.items, it)
	return nil
}

// take empties the queue. The returned slice is valid until the next call.
func (p *posts) take() []rpcqueue.Item {
	clear(p.spare) // Release the messages.
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items, p.spare = p.spare[:0], p.items
	p.fromRooms, p.bytes = 0, 0
	clear(p.each)
	return p.spare
}

// some reports whether a message waits. Any goroutine may call it.
func (p *posts) some() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.items) > 0
}

// close returns the waiting messages, and rejects later ones: no tick would take them.
func (p *posts) close() (dropped []rpcqueue.Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped = p.items
	p.items, p.fromRooms, p.closed = nil, 0, true
	return dropped
}

// close drops the waiting messages, because no tick follows. Any goroutine may call it.
func (b *Mailbox) close() {
	for _, it := range b.posts.close() {
		if l := roomMessageOf(&it); l != nil {
			l.gone()
			continue
		}
		b.metrics.Drops.Add(1, "post", "closed")
	}
}

// deliver queues messages that other goroutines have posted.
func (b *Mailbox) deliver() {
	for _, it := range b.source.posts() {
		b.Sleep.markActive()
		out := b.messages.queue.Push(it)
		if l := roomMessageOf(&it); l != nil && !out.Queued() {
			l.refused(&it, out)
		}
	}
}
