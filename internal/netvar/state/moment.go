package state

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// A client draws the state of a slightly earlier moment, between two snapshots that it has
// completely. The state of an object at a snapshot is its newest version that is not later. An
// unmoved object has the same version at both, and an object that begins to move leaves its place
// at the snapshot before its first move. The times at which versions were sent do not matter. A
// server has the same versions, so from the same two ticks it computes the state that the client
// has drawn.
//
// To draw the past, a replica keeps the versions from the drawn moment on, and ended objects until
// their end is drawn. Both count as stored memory (replica/memory.go).

// Moment is a point in time between two snapshots: their ticks, and the fraction of the way from
// one to the other. An Alpha above 1 is beyond the newer snapshot.
type Moment struct {
	From, To uint64
	Alpha    float64
}

// before reports whether the moment is earlier than a tick.
func (m *Moment) before(tick uint64) bool {
	if tick <= m.From {
		return false
	}
	return tick > m.To || m.Alpha*float64(m.To-m.From) < float64(tick-m.From)
}

// seen is the pair of versions between which an object is drawn.
type seen struct {
	from, to int
	alpha    float64
	lost     bool // the version of that time was dropped, and from is a later version
}

// shown returns the index of the version from which fields without interpolation are drawn.
func (s *seen) shown() int {
	if s.alpha < 1 {
		return s.from
	}
	return s.to
}

// at finds the versions of o at a moment. It reports false if o did not exist then.
func (o *Object) at(m *Moment, s *seen) bool {
	if o.Hist.Len() == 0 || m.before(o.Born) || o.Ended != 0 && !m.before(o.Ended) {
		return false
	}
	// The oldest remaining version replaces dropped versions.
	from := o.Hist.Floor(m.From, o.changed)
	*s = seen{from: max(from, 0), alpha: m.Alpha, lost: from < 0 && o.Born <= m.From}
	for s.to = s.from; s.to+1 < o.Hist.Len() && o.Hist.Tick(s.to+1) <= m.To; { // usually once
		s.to++
	}
	switch {
	case o.Born > m.From: // the object appears with its first value
		s.from = s.to
	case o.Remasked > m.From && o.Remasked <= m.To && s.alpha < 1:
		s.to = s.from
	case o.Remasked > m.From && o.Remasked <= m.To:
		s.from = s.to
	}
	return true
}

// between interpolates the numbers into a struct that has the numbers of version held.
func (o *Object) between(s *seen, held int, v unsafe.Pointer) {
	plan, t := o.Plan(), s.alpha
	if plan.HasTeleports() {
		from, to := o.Hist.Values(s.from), o.Hist.Values(s.to)
		if plan.Teleports(&from, &to) {
			t = codec.Stepped(t)
		}
	}
	plan.BetweenWords(v, o.Hist.Words(held), o.Hist.Words(s.from), o.Hist.Words(s.to), t)
}

// Drawing is an object at a moment, ready to be written into a struct. It is valid until the next
// packet is applied.
type Drawing struct {
	// Base is a struct with the right values except for the numbers; the caller copies it.
	Base unsafe.Pointer

	o    *Object
	held int  // version of the numbers in Base
	bare bool // the numbers of Base are undefined; Write restores them
	seen seen
}

// Begin prepares o at a moment, with the newest value as the base. It reports false if o did not
// exist at the moment.
func (d *Drawing) Begin(o *Object, m *Moment) bool {
	if !o.at(m, &d.seen) {
		return false
	}
	d.Base, d.o, d.held, d.bare = o.live, o, o.Hist.Len()-1, false
	return true
}

// Past returns the version for the base if the newest value cannot be the base, because it has
// other strings, slices or similar values.
func (d *Drawing) Past() (version int, ok bool) {
	k := d.seen.shown()
	return k, !d.o.sameBlobs(k)
}

// Rebase makes a decoded version the base.
func (d *Drawing) Rebase(base unsafe.Pointer, version int) { d.Base, d.held = base, version }

// Write writes the numbers into a copy of Base.
func (d *Drawing) Write(v unsafe.Pointer) {
	if d.bare {
		held := d.o.Hist.Values(d.held)
		d.o.Plan().RestoreNumbers(v, &held, nil)
	}
	d.o.between(&d.seen, d.held, v)
}

// sameBlobs reports whether version i has the blobs of the newest version.
func (o *Object) sameBlobs(i int) bool {
	return slices.EqualFunc(o.Hist.BlobsOf(i), o.Hist.Newest().Blobs, bytes.Equal)
}

// Past is an earlier value of an object, decoded.
type Past struct {
	Value   unsafe.Pointer
	Version uint64   // on a client
	Bytes   int      // on a client
	blobs   [][]byte // on a server
}
