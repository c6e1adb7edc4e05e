package rpcqueue

import "github.com/netloop/netloop/internal/fifo"

// StageCapacity limits the messages that wait for one stage: sixteen from each of a thousand
// clients. Every tick empties the queues of its stages, and the inbox limits the messages that one
// client adds per tick, so only the queue of a stage that does not run gets close to it. A queue
// takes 72 bytes per waiting message.
//
// SenderShare is how many messages of each sender may wait for a stage even when others have filled
// it: a flood does not affect a quiet client.
const (
	StageCapacity = 1 << 14
	SenderShare   = 256
)

// ring is the FIFO of one stage. It accepts any item while it has less than StageCapacity items,
// and beyond that an item of a sender with less than SenderShare of them.
type ring struct {
	items fifo.Queue[Item]
	pool  *fifo.Pool[Item] // of all rings
	ran   uint64           // items that were popped
	batch uint64           // of the oldest, how many the running drain will still take

	cursor uint64 // the last sender that got the remainder of a budget
}

func (r *ring) len() int { return r.items.Len() }

// push reports whether there was room.
func (r *ring) push(it *Item) bool {
	waiting := &it.sender.waiting[it.Stage]
	if r.len() >= StageCapacity && *waiting >= SenderShare {
		return false
	}
	*waiting++
	*r.items.Push(r.pool) = *it
	return true
}

// pop moves the oldest item to dst; there must be one. Its slot is cleared, since
// the message now belongs to its handler.
func (r *ring) pop(dst *Item) {
	r.items.Pop(r.pool, dst)
	dst.sender.waiting[dst.Stage]--
	r.ran++
}

// remove removes the items of a sender, keeps the order of the others, and calls gone for each
// removed item. Removed items are subtracted from the batch of a running drain.
func (r *ring) remove(from uint64, gone func(*Item)) {
	batch, to := r.batch, 0
	for i := range r.len() {
		it := r.items.At(i)
		if it.From == from {
			gone(it)
			if uint64(i) < batch {
				r.batch--
			}
			continue
		}
		*r.items.At(to) = *it
		to++
	}
	r.items.Truncate(r.pool, to)
}
