package directory

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ListInterval is the minimum time between two builds of the list. So readers and watchers see a
// change of an entry at most this much later.
const ListInterval = 50 * time.Millisecond

// Listing holds the entries that rooms post about themselves, by the numbers of the rooms. Posted
// entries are immutable. Readers get a list of all entries at one moment. The list is built at most
// once in each ListInterval, and a read takes no time of a room. Any goroutine may use it.
type Listing[E any] struct {
	list atomic.Pointer[[]Item[E]] // in the order of the numbers; a list is immutable

	mu        sync.Mutex
	changed   map[uint64]*E // since the list was built; nil removes an entry
	built     time.Duration
	everBuilt bool // a list was built

	watches      []*Watch[E]
	watched      atomic.Bool   // a watch exists
	signal       chan struct{} // size 1; signals a change since Notify
	notifying    sync.Mutex    // held by the goroutine that notifies
	notified     time.Duration // under notifying
	everNotified bool
}

// Item is an entry of a listing.
type Item[E any] struct {
	Number uint64
	Entry  *E
}

// Watch is a registered watcher of changes.
type Watch[E any] struct {
	seen   []Item[E]
	notify func(was, is []Item[E]) bool
}

// NewListing returns an empty listing.
func NewListing[E any]() *Listing[E] {
	l := &Listing[E]{changed: map[uint64]*E{}, signal: make(chan struct{}, 1)}
	l.list.Store(new([]Item[E]))
	return l
}

// Set replaces the entry of a room; nil removes it.
func (l *Listing[E]) Set(number uint64, e *E) {
	l.mu.Lock()
	l.changed[number] = e
	l.mu.Unlock()
	if l.watched.Load() {
		l.Wake()
	}
}

// List returns the entries, sorted by the numbers of their rooms. It builds a new list only if an
// entry has changed and the last list is at least ListInterval old; otherwise it returns the last
// list.
func (l *Listing[E]) List(now time.Duration) []Item[E] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.changed) > 0 && (!l.everBuilt || now-l.built >= ListInterval) {
		l.built, l.everBuilt = now, true
		next := l.nextLocked(*l.list.Load())
		l.list.Store(&next)
	}
	return *l.list.Load()
}

// nextLocked builds a list from the previous list and the changes.
func (l *Listing[E]) nextLocked(was []Item[E]) []Item[E] {
	next := append(make([]Item[E], 0, len(was)+len(l.changed)), was...)
	var added []Item[E]
	gone := false
	for number, e := range l.changed {
		gone = gone || e == nil
		i, known := slices.BinarySearchFunc(was, number, func(p Item[E], n uint64) int { return cmp.Compare(p.Number, n) })
		if known {
			next[i].Entry = e
		} else {
			added = append(added, Item[E]{number, e})
		}
	}
	clear(l.changed)
	next = append(next, added...)
	if gone {
		next = slices.DeleteFunc(next, func(p Item[E]) bool { return p.Entry == nil })
	}
	if len(added) > 0 {
		slices.SortFunc(next, func(a, b Item[E]) int { return cmp.Compare(a.Number, b.Number) })
	}
	return next
}

// Watch registers notify. Notify calls it with two lists, if they differ: the last list that notify
// has accepted, which is empty at first, and the newest list. If notify returns false, it has not
// accepted the newest list, and is called again later.
func (l *Listing[E]) Watch(notify func(was, is []Item[E]) bool) *Watch[E] {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &Watch[E]{notify: notify}
	l.watches = append(slices.Clip(l.watches), w)
	l.watched.Store(true)
	l.Wake()
	return w
}

// Unwatch ends a watch.
func (l *Listing[E]) Unwatch(w *Watch[E]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches = slices.DeleteFunc(slices.Clone(l.watches), func(other *Watch[E]) bool { return other == w })
	l.watched.Store(len(l.watches) > 0)
}

// Changed returns a channel that is ready to receive after a change. Then call Notify.
func (l *Listing[E]) Changed() <-chan struct{} { return l.signal }

// Wake makes Changed ready.
func (l *Listing[E]) Wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// Notify reports changes to all watchers. It returns false if some changes could not be reported,
// because the last report is too recent, or because a watcher was not ready.
func (l *Listing[E]) Notify(now time.Duration) (all bool) {
	l.notifying.Lock()
	defer l.notifying.Unlock()
	if l.everNotified && now-l.notified < ListInterval {
		return false
	}
	l.notified, l.everNotified = now, true
	list := l.List(now)
	l.mu.Lock()
	watches := l.watches
	all = len(l.changed) == 0
	l.mu.Unlock()
	for _, w := range watches {
		switch {
		case same(w.seen, list):
		case w.notify(w.seen, list):
			w.seen = list
		default:
			all = false
		}
	}
	return all
}

// same reports whether a and b are the same list in memory, or both empty. This suffices because
// lists are immutable.
func same[E any](a, b []Item[E]) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Compare calls fn with the differences between two lists, in the order of the numbers. A missing
// entry is nil.
func Compare[E any](was, is []Item[E], fn func(was, is *E)) {
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
