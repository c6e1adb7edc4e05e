package netvar

// phase is the state of a slot for one client.
type phase uint8

const (
	absent phase = iota // there is no object, or it is hidden and the client has no record of it
	shown               // the client may see the object
	ended               // the lifetime has ended for the client; the despawn is not acknowledged
)

// fullReason is the reason why an entry has no baseline.
type fullReason uint8

const (
	fullFirst     fullReason = iota // the object or the client is new
	fullVisible                     // the object became visible to the client
	fullRequested                   // the client has requested the full state
	fullMasked                      // the fields that the client may read have changed
	fullResumed                     // the client has resumed without copies
	// The version that the client has is no longer in the server's history.
	fullEvicted
)

// entry is the server's state of one slot for one client.
type entry struct {
	life    uint64 // tick at which the phase began; packets from before it do not count
	*detail        // nil if the entry is absent or the baseline derived
	last    uint32 // low bits of the tick of the last record, or of life before the first record
	phase   phase
	known   bool // a record of this slot was sent, and no despawn was acknowledged since
	first   bool // the object is part of the first state and not acknowledged: see progress.go
	full    fullReason
}

// detail is the part of an entry that an object with a derived baseline does not need: see
// derived.go.
type detail struct {
	base uint64 // the acknowledged version from which deltas are computed; 0: none

	// ackedSet holds the acknowledged versions: bit i is set if the version of tick base-i was
	// acknowledged. With it, an object that has to wait for budget has a trend too: its record
	// takes 6.1 bytes and not 7.3, so the same budget suffices for a fifth more records
	// (BenchmarkEncodeFleet, budget, 200 moving).
	ackedSet uint64

	sent      uint64 // the version that was sent last; in the phase ended, the entry's life
	updatedAt uint64 // tick of the acknowledged packet that updated the client's copy; 0: none
	leftOutAt uint64 // tick of the newest snapshot that left the object out; 0: none
}

// renew overwrites an entry and clears its detail to reuse the memory.
func (e *entry) renew(to entry) {
	*e.detail = detail{}
	to.detail = e.detail
	*e = to
}

// clear makes an entry absent and releases its detail.
func (p *Peer) clear(e *entry) {
	p.w.details.release(e.detail)
	*e = entry{}
}

// age returns the number of ticks since the last record. It overflows only after 2^32 ticks, which
// take years.
func (e *entry) age(tick uint64) uint64 { return uint64(uint32(tick) - e.last) }

// forget drops the baseline, so the next record is a full one.
func (e *entry) forget() { e.base, e.ackedSet, e.updatedAt = 0, 0, 0 }

// advance makes a later version the baseline.
func (e *entry) advance(version uint64) {
	e.ackedSet = e.ackedSet<<(version-e.base) | 1 // a shift by 64 or more yields 0
	e.base = version
}

// noteAcked records the acknowledgement of a version that is not later than the baseline.
func (e *entry) noteAcked(version uint64) { e.ackedSet |= 1 << (e.base - version) }

// hasAcked reports whether the client has acknowledged a version that is not later than the
// baseline. It reports false for versions that are more than 63 ticks older than the baseline,
// because trends are shorter.
func (e *entry) hasAcked(version uint64) bool { return e.ackedSet>>(e.base-version)&1 != 0 }

// details is the pool of unused details.
type details struct {
	spare     []*detail
	neverSent detail // shared by all never-sent entries: see neversent.go
	most      int    // the maximum length of spare
}

// moreDetails is the number of unused details that the pool may hold in addition to one per slot.
// The pool serves objects that enter and leave the view of many clients.
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

// release returns a detail to the pool, or drops it if the pool is full.
func (s *details) release(d *detail) {
	if d != nil && !s.isNeverSent(d) && len(s.spare) < s.most {
		s.spare = append(s.spare, d)
	}
}

// isNeverSent reports whether d is the detail that all never-sent entries share. This detail must
// not be changed.
func (s *details) isNeverSent(d *detail) bool { return d == &s.neverSent }
