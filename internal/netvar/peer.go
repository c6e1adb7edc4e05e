package netvar

import (
	"slices"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Peer is the server's view of one client. It belongs to the goroutine of its World.
type Peer struct {
	interest.Viewer // its hidden objects and withheld fields

	w          *World
	entries    []entry    // by slot: read them with detailed or peek
	derived    bitset.Set // slots with entries that have no detail: see derived.go
	neverSent  bitset.Set // slots of objects with no record sent yet: see neversent.go
	pending    bitset.Set // pending slots: their last change is later than the acknowledged version
	sentOnce   bitset.Set // pending slots with a copy in flight
	sentTwice  bitset.Set // pending slots with copies of two snapshots in flight
	flight     flight
	large      large
	losses     losses // scratch of Ack
	ackedTicks ackedTicks
	receipts   receipts
	tick       uint64 // tick of the last snapshot
	// Tick of the last finished snapshot: it differs from tick while a snapshot is being cut.
	before  uint64
	bucket  bucket
	plan    plan
	turns   turns    // of the plan
	first   progress // of the first state
	digests int      // number of further snapshots with a digest
	turn    uint64   // tick of the next digest: see reserve
	cut     cutter   // scratch of AppendSnapshot

	atOnce bool // the client gets no plan: see AtOnce
}

// NewPeer adds a client without any objects. All objects are pending in full, and the limits decide
// how many snapshots they take. Lifetimes begin at tick, which is the current tick. Audiences are
// evaluated at the next capture.
func (w *World) NewPeer(tick uint64) *Peer {
	p := &Peer{w: w, flight: newFlight(), entries: w.takeEntries()}
	p.cut.p = p
	tick = max(tick, w.tick, 1)
	p.tick = tick - 1
	p.beginAll(tick)
	check := false
	for slot, o := range w.objects.Slots {
		switch {
		case p.neverSent.Has(slot), o == nil || !o.Published():
		case !w.Restricts(o) && !o.WireClass().Restricted():
			p.publish(slot, tick)
		default:
			p.Hidden.Add(slot)
			check = true
		}
	}
	w.peers = append(w.peers, p)
	w.Join(&p.Viewer, (*lifetimes)(p), check)
	return p
}

// AtOnce disables plans: a snapshot contains all records that fit into it, no matter how many
// objects the client lacks. It is for a client in the same process, which delays no other client.
func (p *Peer) AtOnce() { p.atOnce = true }

// ClosePeer removes the client.
func (w *World) ClosePeer(p *Peer) {
	w.Leave(&p.Viewer)
	p.giveUpTurn()
	w.keepEntries(p)
	if i := slices.Index(w.peers, p); i >= 0 {
		w.peers = slices.Delete(w.peers, i, i+1)
	}
}

// Peers returns the number of open peers.
func (w *World) Peers() int { return len(w.peers) }

// publish begins the lifetime of an object for the client.
func (p *Peer) publish(slot int, tick uint64) {
	for len(p.entries) <= slot {
		p.entries = append(p.entries, entry{})
	}
	e := &p.entries[slot]
	p.endFirst(e)
	p.setNeverSent(slot, entry{life: tick, last: uint32(tick), phase: shown, known: e.known})
	p.beginFirst(e)
}

// retire ends the lifetime of an object for the client. If a record was ever sent, a despawn is
// then pending.
func (p *Peer) retire(slot int, tick uint64) {
	p.End(slot)
	if slot >= len(p.entries) || p.entries[slot].phase != shown {
		return
	}
	e := p.detailed(slot)
	p.endFirst(e)
	p.neverSent.Remove(slot)
	p.forgetCopies(slot>>6, 1<<(slot&63))
	if !e.known {
		p.clear(e)
		p.pending.Remove(slot)
		return
	}
	e.renew(entry{life: tick, last: uint32(tick), phase: ended, known: true})
	p.pending.Add(slot)
}

// version returns the version that a record of the slot would have now.
func (p *Peer) version(slot int, e *entry) uint64 {
	if e.phase == ended {
		return e.life
	}
	return p.View(slot).Version(p.w.objects.Slots[slot])
}

// Shows reports whether the client has the object, or will be sent it with the snapshot of the next
// capture.
func (p *Peer) Shows(o *state.Object) bool { return p.w.Shows(o, &p.Viewer) }

// RequestFull drops all baselines and all packets in flight, because the client does not trust its
// copies. All objects are sent in full. Their lifetimes continue, so the client's game sees no
// spawn.
func (p *Peer) RequestFull() {
	p.w.stats.FullRequests++
	p.flight.drop()
	p.losses.forget()
	for slot := range p.entries {
		switch e := &p.entries[slot]; e.phase {
		case absent:
		case shown:
			p.setNeverSent(slot, entry{life: e.life, last: p.lastSent(slot), phase: shown, known: e.known, first: e.first, full: fullRequested})
		case ended:
			e.forget()
			e.sent = 0
			p.pending.Add(slot)
		}
	}
	for i := range p.large.list {
		p.large.list[i].void = true
	}
	clear(p.sentOnce)
	clear(p.sentTwice)
	// Explain must no longer use the list of the last snapshot.
	p.cut.list = p.cut.list[:0]
	p.plan = plan{}
	p.Slow()
}

// RequestDigest adds a digest of the client's state to the next snapshots, each at its scheduled
// tick: see reserve. A snapshot with a digest contains all pending changes, in flight or not, so
// that even in a busy world one of these snapshots is complete.
func (p *Peer) RequestDigest(snapshots int) {
	p.w.stats.DigestRequests++
	if snapshots > 0 && p.digests == 0 {
		p.w.reserve(p)
	}
	p.digests = max(p.digests, min(snapshots, MaxDigests))
}

// MaxDigests bounds the snapshots of one RequestDigest, so that a client cannot make the server
// compute hashes without end. The client may request digests again; the caller limits the rate.
const MaxDigests = 256

// forgetCopies records that no copies of the pending versions of these slots are in flight.
func (p *Peer) forgetCopies(k int, mask uint64) {
	p.sentOnce.RemoveWord(k, mask)
	p.sentTwice.RemoveWord(k, mask)
}
