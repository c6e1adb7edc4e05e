package netvar

// phase says what a peer's entry for a slot is about.
type phase uint8

const (
	absent phase = iota // nothing to say: no object, or one that the client will never hear of
	shown               // an object that the client shall have
	ended               // a client that may have an object shall have none
)

// fullReason says why an entry without a baseline has none.
type fullReason uint8

const (
	fullFirst     fullReason = iota // the object, or the client, is new
	fullVisible                     // the object became visible to the client
	fullRequested                   // the client is in doubt
	fullMasked                      // what the client may read of it changed
	fullResumed                     // the client is back, and has kept nothing
	fullEvicted                     // nobody knows any more which version it has
)

// entry is what the server knows of one client and one slot.
type entry struct {
	life    uint64 // tick at which the phase began; names the lifetime. Earlier packets do not count
	*detail        // nil if it is absent or steady
	last    uint32 // low bits of the tick of the last record, for staleness; of the life at first
	phase   phase
	known   bool // a record of this slot was ever sent and no despawn acknowledged since
	first   bool // of the first state, and not acknowledged: see progress.go
	full    fullReason
}

// detail is what there is to know of an object that is not steady. See steady.go for the others.
type detail struct {
	base uint64 // version acknowledged, 0 = none
	// had is the versions that were acknowledged: bit i is that of tick base-i. With them an object that
	// waits under a shortage has a trend too: a record takes 6.1 bytes and not 7.3, so that the same
	// budget carries a fifth more of them (BenchmarkEncodeFleet, budget, 200 moving).
	ackedSet uint64
	sent     uint64 // version last sent; of an ended phase its life
	mendedAt uint64 // tick of the packet since which the client has had all that marks say it has, 0 = none
	missedAt uint64 // tick of the newest snapshot that has left it out, 0 = none
}

// at returns the entry of a slot, to read and to change. It is not steady from now on.
func (p *Peer) detailed(slot int) *entry {
	e := &p.entries[slot]
	if e.detail == nil {
		e.detail = p.w.details.take()
		if p.steady.has(slot) {
			p.derive(slot, e)
			p.steady.unset(slot)
		}
	}
	return e
}

// peek returns a copy of what is known of a slot, which stays steady: asking changes nothing of what is sent.
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

// renew makes an entry another one, of which nothing was sent.
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

// age is the number of ticks since the last record; more than 2^32, years, start at 0 again.
func (e *entry) age(tick uint64) uint64 { return uint64(uint32(tick) - e.last) }

// forget makes the next record a full one.
func (e *entry) forget() { e.base, e.ackedSet, e.mendedAt, e.missedAt = 0, 0, 0, 0 }

// advance makes a later version the baseline.
func (e *entry) advance(version uint64) {
	e.ackedSet = e.ackedSet<<(version-e.base) | 1 // a shift by 64 or more leaves nothing
	e.base = version
}

// remember notes an acknowledged version up to the baseline.
func (e *entry) noteAcked(version uint64) { e.ackedSet |= 1 << (e.base - version) }

// has reports whether the client has acknowledged a version up to the baseline. Of those that are
// more than 63 ticks older nothing is known: no trend reaches back that far.
func (e *entry) hasAcked(version uint64) bool { return e.ackedSet>>(e.base-version)&1 != 0 }

// details are those that no entry needs.
type details struct {
	spare []*detail
	most  int // to keep
}

// moreDetails is how many are kept beyond what one client can need at once: for objects that come into view of
// many clients and leave it.
const moreDetails = 4096

// take returns an empty one.
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

// release takes one back, or gives up its memory if there are enough.
func (s *details) release(d *detail) {
	if d != nil && len(s.spare) < s.most {
		s.spare = append(s.spare, d)
	}
}
