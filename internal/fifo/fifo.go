// Package fifo is a queue with memory proportional to the items that wait in it. Items are
// stored in pieces of a few each, and an empty piece returns to a pool, which any number of queues
// share: so items that move from one queue to another, or arrive in a burst, leave no memory behind
// in each.
//
// The types are not safe for concurrent use.
package fifo

// pieceLen is the number of items in a piece: few, so that a queue of one item is small, and enough
// that the list of pieces costs little.
const pieceLen = 16

// maxFree is the number of empty pieces that a pool keeps: those of 8 192 items.
const maxFree = 512

type piece[T any] [pieceLen]T

// Pool holds empty pieces.
type Pool[T any] struct{ free []*piece[T] }

func (p *Pool[T]) take() *piece[T] {
	n := len(p.free)
	if n == 0 {
		return new(piece[T])
	}
	last := p.free[n-1]
	p.free[n-1], p.free = nil, p.free[:n-1]
	return last
}

// give returns a piece, with every item cleared, to the pool.
func (p *Pool[T]) give(c *piece[T]) {
	if len(p.free) < maxFree {
		p.free = append(p.free, c)
	}
}

// Queue holds items in the order in which they were pushed. The zero value is empty.
type Queue[T any] struct {
	pieces []*piece[T] // in use from index first on; the last one may be empty
	first  int
	off, n int // items removed from the first piece, and items that wait
}

// Len returns the number of waiting items.
func (q *Queue[T]) Len() int { return q.n }

// Push adds an empty item and returns its address, which is valid until the item is removed.
func (q *Queue[T]) Push(p *Pool[T]) *T {
	if q.off+q.n == (len(q.pieces)-q.first)*pieceLen {
		q.pieces = append(q.pieces, p.take())
	}
	q.n++
	return q.At(q.n - 1)
}

// At returns the item at an index; the oldest is at 0.
func (q *Queue[T]) At(i int) *T {
	at := uint(q.off + i)
	return &q.pieces[uint(q.first)+at/pieceLen][at%pieceLen]
}

// Pop moves the oldest item to dst.
func (q *Queue[T]) Pop(p *Pool[T], dst *T) {
	var zero T
	at := q.At(0)
	*dst = *at
	*at = zero
	q.off++
	q.n--
	if q.off == pieceLen {
		q.drop(p)
	}
}

// Front returns the oldest items that are contiguous in memory; none of an empty queue.
func (q *Queue[T]) Front() []T {
	if q.n == 0 {
		return nil
	}
	return q.pieces[q.first][q.off:min(q.off+q.n, pieceLen)]
}

// PopFront clears and removes the items of Front.
func (q *Queue[T]) PopFront(p *Pool[T]) {
	front := q.Front()
	clear(front)
	q.n -= len(front)
	q.drop(p)
}

// drop returns the first piece to the pool.
func (q *Queue[T]) drop(p *Pool[T]) {
	p.give(q.pieces[q.first])
	q.pieces[q.first] = nil
	q.first++
	q.off = 0
	q.tidy()
}

// tidy moves the list of pieces to the front once half of its slots are free.
func (q *Queue[T]) tidy() {
	if rest := len(q.pieces) - q.first; rest <= q.first {
		copy(q.pieces, q.pieces[q.first:])
		clear(q.pieces[rest:])
		q.pieces, q.first = q.pieces[:rest], 0
	}
}

// Truncate keeps the oldest n items; the others are cleared.
func (q *Queue[T]) Truncate(p *Pool[T], n int) {
	var zero T
	for i := n; i < q.n; i++ {
		*q.At(i) = zero
	}
	if q.n = n; n == 0 {
		q.off = 0
	}
	need := q.first + (q.off+q.n+pieceLen-1)/pieceLen
	for last := len(q.pieces) - 1; last >= need; last-- {
		p.give(q.pieces[last])
		q.pieces[last] = nil
		q.pieces = q.pieces[:last]
	}
	q.tidy()
}

// Append moves the items of another queue to the end of q.
func (q *Queue[T]) Append(p *Pool[T], from *Queue[T]) {
	for from.n > 0 {
		for i := range from.Front() {
			*q.Push(p) = *from.At(i)
		}
		from.PopFront(p)
	}
}
