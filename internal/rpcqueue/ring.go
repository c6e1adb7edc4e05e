package rpcqueue

import "github.com/netloop/netloop/internal/fifo"

// StageCapacity bounds the messages that wait for one stage: sixteen from each
// of a thousand clients. Every tick empties a queue whose stage runs, and the
// inbox bounds what one client adds per tick, so only a stage that does not run
// comes near it. A queue takes 72 bytes a message that waits.
//
// SenderShare is what each sender may have waiting for a stage even when others
// have filled it: a flood costs a quiet client nothing.
const (
	StageCapacity = 1 << 14
	SenderShare   = 256
)

// ring is a FIFO of items: StageCapacity of them, and beyond it the senders' shares.
type ring struct {
	items fifo.Queue[Item]
	pool  *fifo.Pool[Item] // of all rings
	ran   uint64           // items that were popped
	batch uint64           // of the oldest, how many the running drain still takes

	cursor uint64 // the last sender to whom a budget's rest went
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

// remove takes out the items of a sender, keeps the order of the others, and
// calls gone for each that it takes. A drain that is running takes so many less.
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
