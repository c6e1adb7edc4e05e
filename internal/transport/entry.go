package transport

import (
	"slices"
	"time"
	"unsafe"
)

// entry is a waiting arrival in an inbox. It is small because messages arrive in bursts. If an
// arrival uses fields that entry lacks, whole points to a copy of the Arrival.
type entry struct {
	session      *Session
	at           time.Duration
	method       any
	decoded      any
	call, number uint64 // of a message; otherwise number is the Value
	id           uint32 // Message.Method
	size, held   uint32
	kind         ArrivalKind
	stage        uint8
	reliable     bool
	whole        *Arrival
}

// The sizes in bytes of an entry, and of the Arrival to which some entries point, without the
// contents of either.
const (
	entryBytes = int(unsafe.Sizeof(entry{}))
	wholeBytes = int(unsafe.Sizeof(Arrival{}))
)

// keptWholes is the number of free Arrivals that an inbox keeps for reuse.
const keptWholes = 1024

// cost returns the number of bytes that an arrival with contents of size bytes counts against the
// limits of its session. compact reports that its entry has all of its fields. A client counts only
// the contents, because it trusts its server.
func (c *conn) cost(size int, compact bool) int {
	switch {
	case c.cfg.Client:
		return size
	case compact:
		return size + entryBytes
	}
	return size + entryBytes + wholeBytes
}

// Held adds n, which may be negative, to the bytes of unprocessed arrivals of the session: an owner
// that has kept an arrival subtracts its Arrival.Held after it has processed the arrival. On a
// client Held has no effect. Any goroutine may call it.
func (s *Session) Held(n int) {
	if !s.cfg.Client && n != 0 {
		s.underWay.Add(int64(n))
	}
}

// compact reports whether an entry holds all fields of the arrival.
func (a *Arrival) compact() bool {
	switch m := &a.Message; a.Kind {
	case MessageArrived, NoRoom:
		return m.Payload == nil && m.Text == "" && m.Tick == 0 && m.Code == 0 && !m.Reply
	case Joined, RecordsApplied, Received, Mispredicted, Discarded, DigestRequest, FullStateRequest:
		return true
	}
	return false
}

// set fills in an empty entry.
func (e *entry) set(a *Arrival) {
	m := &a.Message
	e.session, e.at, e.method, e.decoded, e.kind = a.Session, a.At, a.Method, a.Decoded, a.Kind
	e.call, e.id, e.stage, e.reliable = m.Call, m.Method, m.Stage, m.Reliable
	e.size, e.held = uint32(a.Size), uint32(a.Held)
	if e.number = a.Value; e.message() {
		e.number = a.Number
	}
}

func (e *entry) message() bool { return e.kind == MessageArrived || e.kind == NoRoom }

// arrival returns the arrival: whole if it is set, or else scratch with the entry's fields.
func (e *entry) arrival(scratch *Arrival) *Arrival {
	if e.whole != nil {
		return e.whole
	}
	a, m := scratch, &scratch.Message // All other fields of scratch remain zero.
	a.Kind, a.Session, a.At, a.Method, a.Decoded = e.kind, e.session, e.at, e.method, e.decoded
	m.Call, m.Method, m.Stage, m.Reliable = e.call, e.id, e.stage, e.reliable
	a.Size, a.Held = int(e.size), int(e.held)
	if a.Number, a.Value = 0, e.number; e.message() {
		a.Number, a.Value = e.number, 0
	}
	return a
}

// wholeLocked returns a copy of an arrival with its own ranges, because the reader reuses those of
// a, and with its own packet of inputs, so that the larger datagram can be freed.
func (b *Inbox) wholeLocked(a *Arrival) *Arrival {
	var w *Arrival
	if n := len(b.wholes); n > 0 {
		w, b.wholes = b.wholes[n-1], b.wholes[:n-1]
	} else {
		w = new(Arrival)
	}
	ranges, packet := w.Acks[:0], w.State
	*w = *a
	w.Acks = append(ranges, a.Acks...)
	if a.State == nil || a.Kind == Inputs {
		w.State = append(packet, a.State...)
	}
	return w
}

// Each removes all waiting arrivals and calls fn for each, in the order of arrival within a
// session. The arrival and its Acks are valid during the call of fn. Arrivals that fn adds wait for
// the next call of Each.
func (b *Inbox) Each(fn func(*Arrival)) {
	b.swap()
	defer b.release() // Releases the remaining arrivals if fn panics.
	for b.taken.Len() > 0 {
		front := b.taken.Front()
		for i := range front {
			e := &front[i]
			a := e.arrival(&b.scratch)
			e.held = 0
			fn(a)
			e.session.Held(-a.Held)
		}
		b.popFront()
	}
	b.scratch = Arrival{}
}

// Swap removes all waiting arrivals and returns them, in the order of arrival within a session. The
// owner passes the slice of the previous swap as spare, and must no longer use it.
func (b *Inbox) Swap(spare []Arrival) []Arrival {
	clear(spare) // Frees the messages.
	all := spare[:0]
	b.swap()
	for b.taken.Len() > 0 {
		front := b.taken.Front()
		for i := range front {
			a := *front[i].arrival(&b.scratch)
			a.Acks = slices.Clone(a.Acks)
			if a.Kind == Inputs {
				a.State = slices.Clone(a.State)
			}
			all = append(all, a)
			a.Session.Held(-a.Held)
		}
		b.popFront()
	}
	b.scratch = Arrival{}
	return all
}

// release drops all arrivals that were taken.
func (b *Inbox) release() {
	for b.taken.Len() > 0 {
		for _, e := range b.taken.Front() {
			e.session.Held(-int(e.held))
		}
		b.popFront()
	}
}

// popFront frees the first chunk of the taken arrivals.
func (b *Inbox) popFront() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.taken.Front() {
		if e.whole != nil && len(b.wholes) < keptWholes {
			kept := Arrival{Acks: e.whole.Acks[:0]}
			if e.whole.Kind != State && e.whole.Kind != Record { // Otherwise the receiver owns it.
				kept.State = e.whole.State[:0]
			}
			*e.whole = kept
			b.wholes = append(b.wholes, e.whole)
		}
	}
	b.taken.PopFront(&b.pool)
}

// swap moves the waiting arrivals to taken, including the arrivals of up to MaxJoins sessions that
// wait to join.
func (b *Inbox) swap() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrivals, b.taken = b.taken, b.arrivals
	b.rousing, b.asleep = 0, false
	n := min(len(b.joining), b.MaxJoins)
	for _, s := range b.joining[:n] {
		u := &s.usage
		b.held -= u.held.Len()
		b.taken.Append(&b.pool, &u.held)
		*u = inboxUsage{round: b.round, gone: u.gone}
	}
	b.joining = slices.Delete(b.joining, 0, n)
	b.bytes = 0
	for _, s := range b.joining {
		b.bytes += s.usage.bytes
	}
	b.round++
}
