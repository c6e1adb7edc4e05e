package rpcqueue

// StageCapacity bounds the messages that wait for one stage: sixteen from each
// of a thousand clients. Every tick empties a queue whose stage runs, and the
// inbox bounds what one client adds per tick, so only a stage that does not run
// comes near it. A queue takes 56 bytes a message and never shrinks.
//
// SenderShare is what each sender may have waiting for a stage even when others
// have filled it: a flood costs a quiet client nothing.
const (
	StageCapacity = 1 << 14
	SenderShare   = 256
)

// ringStart is the size of a ring at its first message.
const ringStart = 64

// ring is a FIFO of items. It grows to StageCapacity and beyond it by the senders'
// shares. Sizes are powers of two.
type ring struct {
	items []Item
	head  uint64 // the oldest; only pop moves it
	tail  uint64 // behind the newest
	batch uint64 // of the oldest, how many the running drain still takes

	cursor uint64 // the last sender to whom a budget's rest went
}

func (r *ring) len() int { return int(r.tail - r.head) }

// push reports whether there was room.
func (r *ring) push(it *Item) bool {
	waiting := &it.sender.waiting[it.Stage]
	if r.len() >= StageCapacity && *waiting >= SenderShare {
		return false
	}
	if r.len() == len(r.items) {
		r.grow()
	}
	*waiting++
	r.items[r.tail&uint64(len(r.items)-1)] = *it
	r.tail++
	return true
}

func (r *ring) grow() {
	size := max(2*len(r.items), ringStart)
	items := make([]Item, size)
	for i := r.head; i != r.tail; i++ {
		items[i&uint64(size-1)] = *r.slot(i)
	}
	r.items = items
}

func (r *ring) slot(i uint64) *Item { return &r.items[i&uint64(len(r.items)-1)] }

// pop moves the oldest item to dst; there must be one. Its slot is cleared, since
// the message now belongs to its handler.
func (r *ring) pop(dst *Item) {
	s := r.slot(r.head)
	*dst = *s
	*s = Item{}
	dst.sender.waiting[dst.Stage]--
	r.head++
}

// remove takes out the items of a sender, keeps the order of the others, and
// calls gone for each that it takes. A drain that is running takes so many less.
func (r *ring) remove(from uint64, gone func(*Item)) {
	batch, to := r.batch, r.head
	for i := r.head; i != r.tail; i++ {
		it := r.slot(i)
		if it.From == from {
			gone(it)
			if i-r.head < batch {
				r.batch--
			}
			continue
		}
		*r.slot(to) = *it
		to++
	}
	for i := to; i != r.tail; i++ {
		*r.slot(i) = Item{}
	}
	r.tail = to
}
