package transport

import (
	"sync"
	"time"
)

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
	round     uint64
	count     int
	bytes     int
	discarded int // the index of its arrival Discarded and 1; 0 without one
	gone      bool
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
	if !b.reserveLocked(a.Session, a.Kind, size) {
		return false
	}
	b.addLocked(a)
	return true
}

// reserve accounts for an arrival that add will bring: so the sender of a message has paid
// before anything is done for it. What is never brought stays accounted for until the swap.
func (b *Inbox) reserve(s *Session, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserveLocked(s, MessageArrived, size)
}

// add brings an arrival for which reserve has accounted.
func (b *Inbox) add(a *Arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addLocked(a)
}

// discard accounts for something of a session that meant nothing, as for n messages. All
// of it between two swaps is one arrival, so that it costs no memory however much it is.
func (b *Inbox) discard(s *Session, at time.Duration, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.usageLocked(s)
	switch {
	case u.gone:
		b.stats.Drop(DropInboxGone, 1)
		return false
	case u.count+n > b.maxPerSession:
		b.stats.Drop(DropInboxSession, 1)
		return false
	}
	u.count += n
	if u.discarded == 0 {
		b.arrivals = append(b.arrivals, Arrival{Kind: Discarded, Session: s, At: at})
		u.discarded = len(b.arrivals)
	}
	b.arrivals[u.discarded-1].Value += uint64(n)
	return true
}

// reserveLocked decides whether an arrival fits and accounts for it, or counts why not.
func (b *Inbox) reserveLocked(s *Session, k ArrivalKind, size int) bool {
	d, ok := b.admitLocked(s, k, size)
	if !ok {
		b.stats.Drop(d, 1)
		return false
	}
	b.bytes += size
	return true
}

func (b *Inbox) addLocked(a *Arrival) {
	if len(a.Acks) > 0 {
		n := len(b.ranges)
		b.ranges = append(b.ranges, a.Acks...)
		a.Acks = b.ranges[n:len(b.ranges):len(b.ranges)]
	}
	b.arrivals = append(b.arrivals, *a)
}

// admitLocked decides whether an arrival fits, and accounts for it in its session's share.
func (b *Inbox) admitLocked(s *Session, k ArrivalKind, size int) (Drop, bool) {
	u := b.usageLocked(s)
	switch {
	case u.gone:
		return DropInboxGone, false
	case k == Joined:
		return 0, true
	case k == Gone:
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

// usageLocked returns the session's share since the last swap.
func (b *Inbox) usageLocked(s *Session) *inboxUsage {
	u := &s.usage
	if u.round != b.round {
		*u = inboxUsage{round: b.round, gone: u.gone}
	}
	return u
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
