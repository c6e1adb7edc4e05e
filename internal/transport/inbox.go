package transport

import "sync"

// Inbox collects the arrivals of many sessions for one owner: a mutex and a swap, so
// that the owner takes everything at once and nothing that arrives meanwhile.
type Inbox struct {
	maxPerSession int
	stats         *Stats

	mu       sync.Mutex
	arrivals []Arrival
	bytes    int
	round    uint64 // counts swaps, so that the sessions' usage needs no sweep
	// ranges is where Arrival.Acks live. Two of them alternate: one is filled while the
	// owner reads the other.
	ranges, readRanges []Range
}

// inboxUsage is a session's share of an inbox. It belongs to the inbox's mutex.
type inboxUsage struct {
	round uint64
	count int
	bytes int
	gone  bool
}

// NewInbox makes an inbox that holds at most maxPerSession arrivals of each session
// between two swaps; 0 means DefaultInboxPerSession.
func NewInbox(maxPerSession int, stats *Stats) *Inbox {
	if maxPerSession <= 0 {
		maxPerSession = DefaultInboxPerSession
	}
	if stats == nil {
		stats = new(Stats)
	}
	return &Inbox{maxPerSession: maxPerSession, stats: stats}
}

// Push adds an arrival; any goroutine may call it. It reports false, and has counted why,
// when the session or the whole inbox is over its bound, or the session is gone. Joined
// and Gone always fit: there is one of each per session.
func (b *Inbox) Push(a Arrival) bool {
	return b.push(&a, len(a.Message.Payload)+len(a.State))
}

// push adds an arrival that accounts for size bytes.
func (b *Inbox) push(a *Arrival, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d, ok := b.admitLocked(a, size); !ok {
		b.stats.Drop(d, 1)
		return false
	}
	if len(a.Acks) > 0 {
		n := len(b.ranges)
		b.ranges = append(b.ranges, a.Acks...)
		a.Acks = b.ranges[n:len(b.ranges):len(b.ranges)]
	}
	b.arrivals = append(b.arrivals, *a)
	b.bytes += size
	return true
}

// admitLocked decides whether an arrival fits, and accounts for it.
func (b *Inbox) admitLocked(a *Arrival, size int) (Drop, bool) {
	s := a.Session
	if s == nil {
		return DropInboxTotal, !b.fullLocked(size)
	}
	u := &s.usage
	if u.round != b.round {
		u.round, u.count, u.bytes = b.round, 0, 0
	}
	switch {
	case u.gone:
		return DropInboxGone, false
	case a.Kind == Joined:
		return 0, true
	case a.Kind == Gone:
		u.gone = true
		return 0, true
	case u.count >= b.maxPerSession || u.bytes+size > maxInboxBytesPerSession:
		return DropInboxSession, false
	case b.fullLocked(size) && (u.count >= fairInbox || u.bytes+size > fairInboxBytes):
		return DropInboxTotal, false
	}
	u.count++
	u.bytes += size
	return 0, true
}

// fullLocked says whether the arrivals of all sessions are at their bound.
func (b *Inbox) fullLocked(size int) bool {
	return len(b.arrivals) >= maxInbox || b.bytes+size > maxInboxBytes
}

// Swap takes all arrivals, each session's in their order. The owner gives back the slice
// of the swap before as spare: nothing of it is used any more.
func (b *Inbox) Swap(spare []Arrival) []Arrival {
	clear(spare) // Let go of the messages.
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.arrivals
	b.arrivals = spare[:0]
	b.ranges, b.readRanges = b.readRanges[:0], b.ranges
	b.bytes = 0
	b.round++
	return taken
}

// Len returns how many arrivals wait.
func (b *Inbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.arrivals)
}
