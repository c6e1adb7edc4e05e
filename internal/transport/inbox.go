package transport

import (
	"sync"
	"time"

	"github.com/netloop/netloop/internal/fifo"
)

// Inbox collects the arrivals of many sessions for one owner. The owner takes all of them at once
// by swapping queues under a mutex.
type Inbox struct {
	maxPerSession int
	maxBytes      int // of each session
	stats         *Stats
	// MaxJoins bounds the sessions that join at one swap; 0: no bound. Further joining sessions,
	// with their arrivals, wait for the following swaps, in order. Set it before the first session,
	// and later by LimitJoins.
	MaxJoins int
	// Rouse, if set, is called for each arrival that must wake a sleeping owner. Acknowledgements,
	// confirmations and reports of mispredictions do not wake it. Discarded data wakes it, because
	// it counts against the client's limits: once until the next swap. Inputs wake it only while it
	// sleeps, and inputs for which Idle then returns true are dropped without a call. Rouse must
	// neither block nor use the inbox. Set Rouse and Idle before the first session.
	Rouse func()
	Idle  func(inputs []byte) bool

	mu       sync.Mutex
	arrivals fifo.Queue[entry]
	pool     fifo.Pool[entry]
	wholes   []*Arrival // free Arrivals for reuse
	bytes    int
	round    uint64               // counts swaps, to reset usage without visiting each session
	merging  [maxMergedAcks]Range // scratch of mergeLocked: on a stack, every session would keep it

	joining []*Session // sessions that wait to join, oldest first
	held    int        // number of arrivals of joining sessions
	rousing int        // number of arrivals since the last swap that must wake the owner
	asleep  bool       // the owner sleeps: see Rest

	taken   fifo.Queue[entry] // owner's goroutine: arrivals of the last swap, empty in between
	scratch Arrival           // owner's goroutine
}

// inboxUsage is a session's share of an inbox since the last swap. Inbox.mu guards it.
type inboxUsage struct {
	round  uint64
	count  int
	bytes  int
	merged [numMerged]*entry // the session's one arrival of each merged kind
	gone   bool

	joining bool
	held    fifo.Queue[entry] // arrivals while joining
}

// Kinds with at most one arrival of a session between two swaps.
const (
	mergedDiscarded = iota
	mergedAcks
	mergedApplied
	mergedReceived
	mergedMispredicted
	numMerged
)

// maxMergedAcks bounds the acknowledged ranges of one session between two swaps: twice as many as
// a datagram has.
const maxMergedAcks = 2 * MaxAckRanges

// NewInbox returns an inbox that holds at most maxPerSession arrivals of each session between two
// swaps; 0 means DefaultInboxPerSession.
func NewInbox(maxPerSession int, stats *Stats) *Inbox {
	if maxPerSession <= 0 {
		maxPerSession = DefaultInboxPerSession
	}
	if stats == nil {
		stats = new(Stats)
	}
	return &Inbox{maxPerSession: maxPerSession, maxBytes: max(maxInboxBytesPerSession, maxPerSession*smallMessage), stats: stats}
}

// Push adds an arrival; any goroutine may call it. It counts a drop and reports false if the
// session or the whole inbox exceeds its bound, or if the session has ended. Joined and Gone always
// fit, because a session has only one of each.
func (b *Inbox) Push(a Arrival) bool {
	return b.push(&a, len(a.Message.Payload)+len(a.State))
}

// push adds an arrival of size bytes.
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

// mergeLocked merges an acknowledgement, or another number that only rises, into the session's
// waiting one, if there is one, so that the owner processes one of each kind per swap.
func (b *Inbox) mergeLocked(a *Arrival) bool {
	kind, merges := mergedKind(a.Kind)
	u := b.usageLocked(a.Session)
	if !merges || u.gone || u.merged[kind] == nil {
		return false
	}
	had := u.merged[kind]
	if a.Kind != Acks {
		had.number = a.Value // The newer number includes the older one.
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
	case Mispredicted:
		return mergedMispredicted, true
	}
	return 0, false
}

// mergeRanges appends the union of two lists of ranges, newest first like both, up to dst's
// capacity.
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
			break // The peer acknowledges the older ranges again later.
		}
		dst = append(dst, r)
	}
	return dst
}

// reserve counts a message against the limits of its session before it is decoded, and returns the
// counted bytes. If the caller then does not call add, it subtracts these bytes by Session.Held;
// the inbox counts them until the swap.
func (b *Inbox) reserve(s *Session, size int) (held int, why Drop, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held = s.cost(size, true)
	if why, ok = b.reserveLocked(s, MessageArrived, held); !ok {
		b.stats.Drop(why, 1)
	}
	return held, why, ok
}

// add adds a message that reserve has counted. If the message needs more than an entry, add counts
// the additional bytes.
func (b *Inbox) add(a *Arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := a.Session.cost(0, a.compact()) - a.Session.cost(0, true) // more than for a plain entry
	a.Session.usage.bytes += more
	b.bytes += more
	a.Held += more
	a.Session.Held(more)
	b.addLocked(a)
}

// discard counts discarded data of a session as n messages. All discarded data between two swaps is
// one arrival, so its memory is constant.
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

// reserveLocked counts an arrival against the limits of its session, if it fits.
func (b *Inbox) reserveLocked(s *Session, k ArrivalKind, size int) (Drop, bool) {
	why, ok := b.admitLocked(s, k, size)
	if ok {
		b.bytes += size
		s.Held(size)
	}
	return why, ok
}

// addLocked adds an arrival and returns its entry.
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

// admitLocked adds an arrival to its session's share, if it fits.
func (b *Inbox) admitLocked(s *Session, k ArrivalKind, size int) (Drop, bool) {
	u := b.usageLocked(s)
	limit := b.maxBytes
	if k != MessageArrived { // Unprocessed bytes only prevent further messages.
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

// fullLocked reports whether the arrivals of all sessions have reached their bound.
func (b *Inbox) fullLocked(size int) bool {
	return b.arrivals.Len()+b.held >= maxInbox || b.bytes+size > maxInboxBytes
}

// Rest records that the owner sleeps until Rouse is called. It reports false, without effect, if an
// arrival that must wake the owner already waits. The next swap ends the sleep.
func (b *Inbox) Rest() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rousing+b.held == 0 {
		b.asleep = true
	}
	return b.asleep
}

// Roused reports whether an arrival waits that must wake the owner.
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

// Len returns the number of waiting arrivals.
func (b *Inbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.arrivals.Len() + b.held
}
