package netvar

import "slices"

// Peer is the server's view of one client. It belongs to the goroutine of its World.
type Peer struct {
	w         *World
	entries   []entry // by slot: see detailed
	steady    bitset  // slots whose entries have no detail: see steady.go
	blank     bitset  // slots of objects of which nothing was sent yet: see blank.go
	owed      bitset  // slots with a change later than the acknowledged version
	sentOnce  bitset  // those of owed of which a copy is in flight
	sentTwice bitset  // those of owed of which copies of two snapshots are in flight
	hidden    bitset  // slots of objects that the client may not see
	views     views
	seats     []*seat // by space
	doubted   bitset  // slots that the next capture asks about: see JudgeFor
	fresh     bool    // the client has joined, and audiences were not asked for it yet
	flight    flight
	large     large
	losses    losses // scratch of Ack
	marks     marks
	receipts  receipts
	joined    uint64 // tick of the newest capture before the client joined
	tick      uint64 // tick of the last snapshot
	// Tick of the last snapshot that is cut: that before tick while one is being cut.
	before  uint64
	bucket  bucket
	plan    plan
	turns   turns    // of the plan
	first   progress // of the first state
	digests int      // the number of snapshots that shall still carry a digest
	turn    uint64   // tick from which on the next digest may be cut: see reserve
	cut     cutter   // scratch of AppendSnapshot

	atOnce   bool // it follows no plan: see AtOnce
	doubtful bool // the peer is in the world's list of that name

	Handle any // what the root package knows of the client
}

// NewPeer adds a client that has nothing yet. All objects are owed to it in full, over as many
// snapshots as their limits make it take. What the client sees begins at tick, which is the current
// one. Audiences are asked at the next capture.
func (w *World) NewPeer(tick uint64) *Peer {
	p := &Peer{w: w, flight: newFlight(), entries: w.takeEntries(), joined: w.tick}
	p.cut.p = p
	tick = max(tick, w.tick, 1)
	p.tick = tick - 1
	p.beginAll(tick)
	for slot, o := range w.slots {
		switch {
		case p.blank.has(slot), o == nil || !o.published():
		case !w.mayBeHidden(o) && !w.restricted(o):
			p.publish(slot, tick)
		default:
			p.hidden.set(slot)
			p.fresh = true
		}
	}
	w.peers = append(w.peers, p)
	if p.fresh {
		w.fresh = append(w.fresh, p)
	}
	return p
}

// AtOnce lets a snapshot carry all that fits into it, however far behind the client is: of one that
// is no network away, and alone, nobody else has to wait for it.
func (p *Peer) AtOnce() { p.atOnce = true }

// ClosePeer forgets the client.
func (w *World) ClosePeer(p *Peer) {
	for _, s := range w.spaces {
		s.close(p)
	}
	p.giveUpTurn()
	w.keepEntries(p)
	if i := slices.Index(w.peers, p); i >= 0 {
		w.peers = slices.Delete(w.peers, i, i+1)
	}
	for _, list := range []*[]*Peer{&w.fresh, &w.doubtful} {
		if i := slices.Index(*list, p); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
}

// publish begins the lifetime of an object for the client.
func (p *Peer) publish(slot int, tick uint64) {
	for len(p.entries) <= slot {
		p.entries = append(p.entries, entry{})
	}
	e := &p.entries[slot]
	p.endFirst(e)
	p.setBlank(slot, entry{life: tick, last: uint32(tick), phase: shown, known: e.known})
	p.beginFirst(e)
}

// retire ends the lifetime of an object for the client, who must be told if it was ever sent a
// record.
func (p *Peer) retire(slot int, tick uint64) {
	p.hidden.unset(slot)
	p.views.end(slot)
	if slot >= len(p.entries) || p.entries[slot].phase != shown {
		return
	}
	e := p.detailed(slot)
	p.endFirst(e)
	p.blank.unset(slot)
	p.forgetCopies(slot>>6, 1<<(slot&63))
	if !e.known {
		p.clear(e)
		p.owed.unset(slot)
		return
	}
	e.renew(entry{life: tick, last: uint32(tick), phase: ended, known: true})
	p.owed.set(slot)
}

// version returns the version that a record of the slot carries now.
func (p *Peer) version(slot int, e *entry) uint64 {
	if e.phase == ended {
		return e.life
	}
	return p.view(slot).version(p.w.slots[slot])
}

// Shows reports whether the client has the object, or will have heard of it with the snapshot
// of the next capture.
func (p *Peer) Shows(o *Object) bool {
	switch {
	case !o.alive:
		return false
	case !o.published() || o.judge || p.fresh || p.doubted.has(o.id.slot()):
		return p.w.admits(o, p)
	}
	return p.shows(o)
}

// RequestFull forgets all baselines and everything in flight, because the client doubts its copies.
// The client gets all objects in full. Their lifetimes go on, so the game there sees no spawn.
func (p *Peer) RequestFull() {
	p.w.stats.FullRequests++
	p.flight.drop()
	p.losses.forget()
	for slot := range p.entries {
		switch e := &p.entries[slot]; e.phase {
		case absent:
		case shown:
			p.setBlank(slot, entry{life: e.life, last: p.lastSent(slot), phase: shown, known: e.known, first: e.first, full: fullRequested})
		case ended:
			e.forget()
			e.sent = 0
			p.owed.set(slot)
		}
	}
	for i := range p.large.list {
		p.large.list[i].void = true
	}
	clear(p.sentOnce)
	clear(p.sentTwice)
	// It explains nothing any more why the last snapshot left something out.
	p.cut.list = p.cut.list[:0]
	p.plan = plan{}
	p.Slow()
}

// RequestDigest makes the next snapshots carry a digest of what the client shall have, each of them
// when it is the client's turn. Each of them carries all that is owed, whether it is in flight or
// not, so that one of them is complete in a busy world too.
func (p *Peer) RequestDigest(snapshots int) {
	p.w.stats.DigestRequests++
	if snapshots > 0 && p.digests == 0 {
		p.w.reserve(p)
	}
	p.digests = max(p.digests, min(snapshots, MaxDigests))
}

// MaxDigests bounds one request, so that no client can make the server hash for it for ever. A
// client that is not satisfied asks again; how often it may is for the caller to decide.
const MaxDigests = 256
