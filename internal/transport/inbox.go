package transport

import (
	"slices"
	"sync"
	"time"
)

// Inbox collects the arrivals of many sessions for one owner: a mutex and a swap, so
// that the owner takes everything at once and nothing that arrives meanwhile.
type Inbox struct {
	maxPerSession int
	stats         *Stats
	// MaxJoins bounds how many sessions join with one swap; 0 is any number. Others, and what
	// has arrived of them, wait for the swaps that follow, in their order. Set it before the
	// first session.
	MaxJoins int

	mu       sync.Mutex
	arrivals []Arrival
	bytes    int
	round    uint64 // counts swaps, so that the sessions' usage needs no sweep
	// ranges is where Arrival.Acks live. Two of them alternate: one is filled while the
	// owner reads the other.
	ranges, readRanges []Range

	joining []*Session // whose join waits, oldest first
	held    int        // arrivals of these
}

// inboxUsage is a session's share of an inbox. It belongs to the inbox's mutex.
type inboxUsage struct {
	round  uint64
	count  int
	bytes  int
	merged [numMerged]int // the index of its arrival of each such kind and 1; 0 without one
	gone   bool

	joining bool
	held    []Arrival // while it is
}

// Kinds of which a session has one arrival between two swaps at most.
const (
	mergedDiscarded = iota
	mergedAcks
	mergedApplied
	mergedReceived
	numMerged
)

// maxMergedAcks bounds the ranges of acknowledgements of one session between two swaps: those of
// a datagram, and as many that others add.
const maxMergedAcks = 2 * MaxAckRanges

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
	if b.mergeLocked(a) {
		return true
	}
	if !b.reserveLocked(a.Session, a.Kind, size) {
		return false
	}
	b.addLocked(a)
	return true
}

// mergeLocked adds an acknowledgement to what the session has acknowledged since the last swap, if
// it has: so the owner looks at what a session says once, however often it says so.
func (b *Inbox) mergeLocked(a *Arrival) bool {
	kind, merges := mergedKind(a.Kind)
	u := b.usageLocked(a.Session)
	if !merges || u.gone || u.merged[kind] == 0 {
		return false
	}
	had := &(*b.listLocked(u))[u.merged[kind]-1]
	if a.Kind != Acks {
		had.Value = a.Value // It counts up to here.
		return true
	}
	var room [maxMergedAcks]Range
	all := mergeRanges(room[:0], had.Acks, a.Acks)
	if len(all) > cap(had.Acks) {
		n := len(b.ranges)
		b.ranges = append(b.ranges, room[:]...)
		had.Acks = b.ranges[n:n:len(b.ranges)]
		if u.joining { // The ranges here do not last as long.
			had.Acks = make([]Range, 0, maxMergedAcks)
		}
	}
	had.Acks = append(had.Acks[:0], all...)
	return true
}

func mergedKind(k ArrivalKind) (kind int, ok bool) {
	switch k {
	case Acks:
		return mergedAcks, true
	case RecordsApplied:
		return mergedApplied, true
	case Received:
		return mergedReceived, true
	}
	return 0, false
}

// mergeRanges appends what two lists of ranges have together, newest first as they are, as far as
// dst has room.
func mergeRanges(dst, a, b []Range) []Range {
	for len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[0].Last > a[0].Last {
			from = &b
		}
		r := (*from)[0]
		*from = (*from)[1:]
		if n := len(dst); n > 0 && r.Last >= dst[n-1].First-min(dst[n-1].First, 1) {
			dst[n-1].First = min(dst[n-1].First, r.First)
			continue
		}
		if len(dst) == cap(dst) {
			break // Who has so many holes says the older ones again.
		}
		dst = append(dst, r)
	}
	return dst
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
	place := &u.merged[mergedDiscarded]
	if *place == 0 {
		b.addLocked(&Arrival{Kind: Discarded, Session: s, At: at})
		*place = len(*b.listLocked(u))
	}
	(*b.listLocked(u))[*place-1].Value += uint64(n)
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
	u := b.usageLocked(a.Session)
	if a.Kind == Joined && b.MaxJoins > 0 {
		u.joining = true
		b.joining = append(b.joining, a.Session)
	}
	if len(a.Acks) > 0 {
		n := len(b.ranges)
		b.ranges = append(b.ranges, a.Acks...)
		a.Acks = b.ranges[n:len(b.ranges):len(b.ranges)]
	}
	list := b.listLocked(u)
	*list = append(*list, *a)
	if u.joining {
		added := &(*list)[len(*list)-1]
		added.Acks = slices.Clone(a.Acks) // Those of the inbox last until the next swap.
		b.held++
	}
	if kind, merges := mergedKind(a.Kind); merges {
		u.merged[kind] = len(*list)
	}
}

// listLocked is where what arrives of a session goes.
func (b *Inbox) listLocked(u *inboxUsage) *[]Arrival {
	if u.joining {
		return &u.held
	}
	return &b.arrivals
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
	if u.round != b.round && !u.joining {
		*u = inboxUsage{round: b.round, gone: u.gone}
	}
	return u
}

// fullLocked says whether the arrivals of all sessions are at their bound.
func (b *Inbox) fullLocked(size int) bool {
	return len(b.arrivals)+b.held >= maxInbox || b.bytes+size > maxInboxBytes
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
	taken = b.joinLocked(taken)
	b.bytes = b.heldBytesLocked()
	b.round++
	return taken
}

// joinLocked lets those join whose turn it is.
func (b *Inbox) joinLocked(taken []Arrival) []Arrival {
	n := min(len(b.joining), b.MaxJoins)
	for _, s := range b.joining[:n] {
		u := &s.usage
		taken = append(taken, u.held...)
		b.held -= len(u.held)
		*u = inboxUsage{round: b.round, gone: u.gone}
	}
	b.joining = slices.Delete(b.joining, 0, n)
	return taken
}

// heldBytesLocked returns what the arrivals hold of those who wait.
func (b *Inbox) heldBytesLocked() (n int) {
	for _, s := range b.joining {
		n += s.usage.bytes
	}
	return n
}

// Len returns how many arrivals wait.
func (b *Inbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.arrivals) + b.held
}
