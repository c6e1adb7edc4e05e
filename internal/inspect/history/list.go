package history

import "sync/atomic"

// chunk is the number of elements that a list allocates at once.
const chunk = 1 << 12

// list is an append-only list. One goroutine appends, and any may read the elements below len: they
// never move, and the atomic length publishes them.
type list[T any] struct {
	chunks []*[chunk]T // the array itself never changes
	n      atomic.Int64
}

// newList returns an empty list. most is the largest number of elements, a multiple of chunk.
func newList[T any](most int) *list[T] { return &list[T]{chunks: make([]*[chunk]T, most/chunk)} }

func (l *list[T]) len() int { return int(l.n.Load()) }

// at returns element i, which is below len.
func (l *list[T]) at(i int) *T { return &l.chunks[i/chunk][i%chunk] }

// full reports whether the list has its largest number of elements.
func (l *list[T]) full() bool { return l.len() == len(l.chunks)*chunk }

// add appends an element to a list that is not full.
func (l *list[T]) add(v T) {
	n := l.len()
	if l.chunks[n/chunk] == nil {
		l.chunks[n/chunk] = new([chunk]T)
	}
	*l.at(n) = v
	l.n.Store(int64(n) + 1)
}
