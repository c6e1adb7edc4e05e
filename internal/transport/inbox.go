package transport

import (
	"sync"
	"time"

	"github.com/netloop/netloop/internal/fifo"
)

// Inbox collects the arrivals of many sessions for one owner: a mutex and a swap, so
// that the owner takes everything at once and nothing that arrives meanwhile.
type Inbox struct {
	maxPerSession int
	maxBytes      int // of each session
	stats         *Stats
	// MaxJoins bounds how many sessions join with one swap; 0 is any number. Others, and what
	// has arrived of them, wait for the swaps that follow, in their order. Set it before the
	// first session, and later by LimitJoins.
	MaxJoins int
	// Rouse, if set, is called with each arrival that an owner who sleeps has to see: all but
	// acknowledgements and inputs, and of inputs those of which Idle, which is set with it, does
	// not say that they are nothing. It must neither block nor use the inbox. Set it before the
	// first session.
	Rouse func()
	Idle  func(inputs []byte) bool

	mu       sync.Mutex
	arrivals fifo.Queue[entry]
	pool     fifo.Pool[entry]
	wholes   []*Arrival // that are free
	bytes    int
	round    uint64               // counts swaps, so that the sessions' usage needs no sweep
	merging  [maxMergedAcks]Range // scratch of mergeLocked: on a stack, every session would keep it

	joining []*Session // whose join waits, oldest first
	held    int        // arrivals of these
	rousing int        // arrivals since the last swap that rouse
	asleep  bool       // the owner sleeps: see Rest

	taken   fifo.Queue[entry] // owner's goroutine: of the last swap, empty in between
	scratch Arrival           // owner's goroutine
}

// inboxUsage is a session's share of an inbox. It belongs to the inbox's mutex.
type inboxUsage struct {
	round  uint64
	count  int
	bytes  int
	merged [numMerged]*entry // its arrival of each such kind
	gone   bool

	joining bool
	held    fifo.Queue[entry] // while it is
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
	return &Inbox{maxPerSession: maxPerSession, maxBytes: max(maxInboxBytesPerSession, maxPerSession*smallMessage), stats: stats}
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
	if b.mergeLocked(a) || b.asleep && a.Kind == Inputs && b.Idle(a.State) {
		return true
	}
	a.Held = a.Session.cost(size, a.compact())
	if why, ok := b.reserveLocked(a.Session, a.Kind, a.Held); !ok {
		b.stats.Drop(why, 1)
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
	if !merges || u.gone || u.merged[kind] == nil {
		return false
	}
	had := u.merged[kind]
	if a.Kind != Acks {
		had.number = a.Value // It counts up to here.
		return true
	}
	had.whole.Acks = append(had.whole.Acks[:0], mergeRanges(b.merging[:0], had.whole.Acks, a.Acks)...)
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

// reserve accounts for a message that add will bring, and returns what it counts with: so its
// sender has paid before anything is done for it. What is never brought stays accounted for until
// the swap, but for what abandon gives back.
func (b *Inbox) reserve(s *Session, size int) (held int, why Drop, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held = s.cost(size, true)
	if why, ok = b.reserveLocked(s, MessageArrived, held); !ok {
		b.stats.Drop(why, 1)
	}
	return held, why, ok
}

// add brings an arrival for which reserve has accounted.
func (b *Inbox) add(a *Arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := a.Session.cost(0, a.compact()) - a.Session.cost(0, true) // than an entry
	a.Session.usage.bytes += more
	b.bytes += more
	a.Held += more
	a.Session.Held(more)
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
	if u.merged[mergedDiscarded] == nil {
		u.merged[mergedDiscarded] = b.addLocked(&Arrival{Kind: Discarded, Session: s, At: at})
	}
	u.merged[mergedDiscarded].number += uint64(n)
	return true
}

// reserveLocked decides whether an arrival fits, and accounts for it if it does.
func (b *Inbox) reserveLocked(s *Session, k ArrivalKind, size int) (Drop, bool) {
	why, ok := b.admitLocked(s, k, size)
	if ok {
		b.bytes += size
		s.Held(size)
	}
	return why, ok
}

// addLocked adds an arrival and returns where it waits.
func (b *Inbox) addLocked(a *Arrival) *entry {
	u := b.usageLocked(a.Session)
	if a.Kind == Joined && b.MaxJoins > 0 {
		u.joining = true
		b.joining = append(b.joining, a.Session)
	}
	list := &b.arrivals
	if u.joining {
		list = &u.held
		b.held++
	}
	added := list.Push(&b.pool)
	added.set(a)
	if !a.compact() {
		added.whole = b.wholeLocked(a)
	}
	if kind, merges := mergedKind(a.Kind); merges {
		u.merged[kind] = added
	} else if b.Rouse != nil && (a.Kind != Inputs || b.asleep) {
		b.rousing++
		b.Rouse()
	}
	return added
}

// admitLocked decides whether an arrival fits, and accounts for it in its session's share.
func (b *Inbox) admitLocked(s *Session, k ArrivalKind, size int) (Drop, bool) {
	u := b.usageLocked(s)
	limit := b.maxBytes
	if k != MessageArrived { // What waits for its turn keeps only messages out.
		limit += sparedInboxBytes
	}
	switch {
	case u.gone:
		return DropInboxGone, false
	case k == Joined:
		return 0, true
	case k == Gone:
		u.gone = true
		return 0, true
	case u.count >= b.maxPerSession || u.bytes+size > limit:
		return DropInboxSession, false
	case int(s.underWay.Load())+size > limit:
		return DropInboxHeld, false
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
	return b.arrivals.Len()+b.held >= maxInbox || b.bytes+size > maxInboxBytes
}

// Rest says that the owner takes nothing from now on until somebody rouses it, and reports false,
// and does nothing, if somebody has. The next swap ends it.
func (b *Inbox) Rest() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rousing+b.held == 0 {
		b.asleep = true
	}
	return b.asleep
}

// Roused reports whether something has arrived that the owner has to see.
func (b *Inbox) Roused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rousing+b.held > 0
}

// LimitJoins sets MaxJoins, to 1 or more.
func (b *Inbox) LimitJoins(most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.MaxJoins = most
}

// Len returns how many arrivals wait.
func (b *Inbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.arrivals.Len() + b.held
}
