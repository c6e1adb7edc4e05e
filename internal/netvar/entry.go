package netvar

// phase says what a peer's entry for a slot is about.
type phase uint8

const (
	absent phase = iota // there is no object, or one of which the client never hears
	shown               // there is an object that the client shall have
	ended               // the client may have an object of which it shall have none
)

// fullReason says why an entry without a baseline has none.
type fullReason uint8

const (
	fullFirst     fullReason = iota // the object or the client is new
	fullVisible                     // the object became visible to the client
	fullRequested                   // the client doubts its copies
	fullMasked                      // what the client may read of the object changed
	fullResumed                     // the client is back and has kept nothing
	// The server does not know any more which version the client has.
	fullEvicted
)

// entry is what the server knows of one client and one slot.
type entry struct {
	life    uint64 // tick at which the phase began; no packet from before it counts
	*detail        // nil if the entry is absent or the object steady
	last    uint32 // low bits of the tick of the last record, or of life before there is one
	phase   phase
	known   bool // a record of this slot was sent, and no despawn was acknowledged since
	first   bool // the object is one of the first state and not acknowledged: see progress.go
	full    fullReason
}

// detail is what an entry knows besides, of an object that is not steady; steady.go says how a
// steady object does without it.
type detail struct {
	base uint64 // the acknowledged version that is the baseline, 0 = none

	// ackedSet is which versions were acknowledged: bit i says it of that of tick base-i. With the
	// set an object that waits under a shortage has a trend too. A record takes 6.1 bytes and not
	// 7.3, so that the same budget carries a fifth more of them (BenchmarkEncodeFleet, budget, 200
	// moving).
	ackedSet uint64

	sent     uint64 // the version that was sent last; in an ended phase its life
	mendedAt uint64 // tick of the packet since which marks tell what the client has, 0 = none
	missedAt uint64 // tick of the newest snapshot that has left the object out, 0 = none
}

// detailed returns the entry of a slot with its detail, to read and to change. The object is not
// steady from then on.
func (p *Peer) detailed(slot int) *entry {
	e := &p.entries[slot]
	if e.detail == nil || p.w.details.isBlank(e.detail) {
		e.detail = p.w.details.take()
		if p.steady.has(slot) {
			p.derive(slot, e)
			p.steady.unset(slot)
		}
	}
	return e
}

// peek returns a copy of the entry of a slot with its detail. The object stays steady if it is: to
// ask about an object changes nothing of what is sent.
func (p *Peer) peek(slot int) entry {
	e := p.entries[slot]
	if e.detail == nil {
		e.detail = new(detail)
		if p.steady.has(slot) {
			p.derive(slot, &e)
		}
	}
	return e
}

// renew turns an entry into another one, of which nothing was sent. It keeps its detail's memory.
func (e *entry) renew(to entry) {
	*e.detail = detail{}
	to.detail = e.detail
	*e = to
}

// clear makes an entry absent.
func (p *Peer) clear(e *entry) {
	p.w.details.release(e.detail)
	*e = entry{}
}

// age returns the number of ticks since the last record. After 2^32 ticks, which are years, it
// begins at 0 again.
func (e *entry) age(tick uint64) uint64 { return uint64(uint32(tick) - e.last) }

// forget makes the next record a full one.
func (e *entry) forget() { e.base, e.ackedSet, e.mendedAt = 0, 0, 0 }

// advance makes a later version the baseline.
func (e *entry) advance(version uint64) {
	e.ackedSet = e.ackedSet<<(version-e.base) | 1 // a shift by 64 or more leaves nothing
	e.base = version
}

// noteAcked notes that a version up to the baseline was acknowledged.
func (e *entry) noteAcked(version uint64) { e.ackedSet |= 1 << (e.base - version) }

// hasAcked reports whether the client has acknowledged a version up to the baseline. Of a version
// that is more than 63 ticks older it does not know: no trend reaches back that far.
func (e *entry) hasAcked(version uint64) bool { return e.ackedSet>>(e.base-version)&1 != 0 }

// details is the memory of the details that no entry uses.
type details struct {
	spare []*detail
	blank detail // that of what is blank: see blank.go
	most  int    // how many of them are kept
}

// moreDetails is how many details are kept beyond what one client can need at once. They serve the
// objects that come into view of many clients and leave it.
const moreDetails = 4096

// take returns an empty detail.
func (s *details) take() *detail {
	n := len(s.spare)
	if n == 0 {
		return new(detail)
	}
	d := s.spare[n-1]
	s.spare = s.spare[:n-1]
	*d = detail{}
	return d
}

// release takes a detail back, or gives up its memory if enough of them are kept.
func (s *details) release(d *detail) {
	if d != nil && !s.isBlank(d) && len(s.spare) < s.most {
		s.spare = append(s.spare, d)
	}
}
