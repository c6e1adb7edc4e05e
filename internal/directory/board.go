package directory

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// BoardGap is the minimum time between two lists of a board: readers and watchers see an entry with
// at most this delay.
const BoardGap = 50 * time.Millisecond

// Board holds the entries that rooms post about themselves: by the numbers of the rooms, and
// immutable once posted. Readers get a list of all entries at one moment, built at most once in
// each BoardGap, so that a read costs no room any time. Any goroutine may use it.
type Board[E any] struct {
	list atomic.Pointer[[]Posted[E]] // in the order of the numbers; a list is immutable

	mu      sync.Mutex
	changed map[uint64]*E // since the list was built; nil removes an entry
	made    time.Duration
	ever    bool // a list was built

	watches  []*Watch[E]
	watched  atomic.Bool   // a watch exists
	woken    chan struct{} // size 1; signals a change since Tell
	telling  sync.Mutex    // held by the goroutine that tells
	told     time.Duration // under telling
	toldEver bool
}

// Posted is an entry of a board.
type Posted[E any] struct {
	Number uint64
	Entry  *E
}

// Watch is a registered watcher of changes.
type Watch[E any] struct {
	seen []Posted[E]
	tell func(was, is []Posted[E]) bool
}

// NewBoard returns an empty board.
func NewBoard[E any]() *Board[E] {
	b := &Board[E]{changed: map[uint64]*E{}, woken: make(chan struct{}, 1)}
	b.list.Store(new([]Posted[E]))
	return b
}

// Post replaces the entry of a room; nil removes it.
func (b *Board[E]) Post(number uint64, e *E) {
	b.mu.Lock()
	b.changed[number] = e
	b.mu.Unlock()
	if b.watched.Load() {
		b.Wake()
	}
}

// List returns the entries, in the order of their rooms' numbers.
func (b *Board[E]) List(now time.Duration) []Posted[E] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changed) > 0 && (!b.ever || now-b.made >= BoardGap) {
		b.made, b.ever = now, true
		next := b.nextLocked(*b.list.Load())
		b.list.Store(&next)
	}
	return *b.list.Load()
}

// nextLocked builds a list from the one before and the changes.
func (b *Board[E]) nextLocked(was []Posted[E]) []Posted[E] {
	next := append(make([]Posted[E], 0, len(was)+len(b.changed)), was...)
	var added []Posted[E]
	gone := false
	for number, e := range b.changed {
		gone = gone || e == nil
		i, known := slices.BinarySearchFunc(was, number, func(p Posted[E], n uint64) int { return cmp.Compare(p.Number, n) })
		if known {
			next[i].Entry = e
		} else {
			added = append(added, Posted[E]{number, e})
		}
	}
	clear(b.changed)
	next = append(next, added...)
	if gone {
		next = slices.DeleteFunc(next, func(p Posted[E]) bool { return p.Entry == nil })
	}
	if len(added) > 0 {
		slices.SortFunc(next, func(a, b Posted[E]) int { return cmp.Compare(a.Number, b.Number) })
	}
	return next
}

// Watch registers tell: Tell calls it with the list of its last accepted call and the newest one,
// if they differ; at first with an empty list. If tell returns false, it is called again later.
func (b *Board[E]) Watch(tell func(was, is []Posted[E]) bool) *Watch[E] {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &Watch[E]{tell: tell}
	b.watches = append(slices.Clip(b.watches), w)
	b.watched.Store(true)
	b.Wake()
	return w
}

// Unwatch ends a watch.
func (b *Board[E]) Unwatch(w *Watch[E]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches = slices.DeleteFunc(slices.Clone(b.watches), func(other *Watch[E]) bool { return other == w })
	b.watched.Store(len(b.watches) > 0)
}

// Woken returns a channel that is ready after a change.
func (b *Board[E]) Woken() <-chan struct{} { return b.woken }

// Wake makes Woken ready.
func (b *Board[E]) Wake() {
	select {
	case b.woken <- struct{}{}:
	default:
	}
}

// Tell reports changes to all watchers. It returns false if some could not be reported: because the
// last report is too recent, or because a watcher was not ready.
func (b *Board[E]) Tell(now time.Duration) (all bool) {
	b.telling.Lock()
	defer b.telling.Unlock()
	if b.toldEver && now-b.told < BoardGap {
		return false
	}
	b.told, b.toldEver = now, true
	list := b.List(now)
	b.mu.Lock()
	watches := b.watches
	all = len(b.changed) == 0
	b.mu.Unlock()
	for _, w := range watches {
		switch {
		case same(w.seen, list):
		case w.tell(w.seen, list):
			w.seen = list
		default:
			all = false
		}
	}
	return all
}

// same reports whether a and b are the same list.
func same[E any](a, b []Posted[E]) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Compare calls fn with the differences between two lists, in the order of the numbers. A missing
// entry is nil.
func Compare[E any](was, is []Posted[E], fn func(was, is *E)) {
	for len(was) > 0 || len(is) > 0 {
		switch {
		case len(is) == 0 || len(was) > 0 && was[0].Number < is[0].Number:
			fn(was[0].Entry, nil)
			was = was[1:]
		case len(was) == 0 || is[0].Number < was[0].Number:
			fn(nil, is[0].Entry)
			is = is[1:]
		default:
			if was[0].Entry != is[0].Entry {
				fn(was[0].Entry, is[0].Entry)
			}
			was, is = was[1:], is[1:]
		}
	}
}
