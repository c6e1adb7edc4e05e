package netvar

import (
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Rule 13: a client resumes with another connection. With copies deltas lead from the acknowledged
// versions; without copies it is treated as a joining client. Data in flight is lost either way.

// resume connects the client again.
func (q *pair) resume(kept bool) {
	q.t.Helper()
	if q.p.Resume(kept); kept {
		q.r.Resume()
	} else {
		q.r = replica.New(q.table)
		q.r.StartAt(q.tick)
	}
	if fault := q.p.unsound(); fault != "" {
		q.t.Fatalf("after a resume, copies kept %v: %s", kept, fault)
	}
}

// settled checks by digest that the client has its state, and that no changes are pending.
func (q *pair) settled() {
	q.t.Helper()
	q.p.RequestDigest(1)
	q.deliver()
	if d, tick := q.r.Digest(); d != replica.DigestEqual || tick != q.tick || q.p.pending.Count() != 0 {
		q.t.Errorf("digest %v of tick %d at %d, %d owed", d, tick, q.tick, q.p.pending.Count())
	}
}

// away is some ticks of the world without a snapshot for the client.
func (q *pair) away(ticks int, play func()) {
	for range ticks {
		play()
		q.tick++
		q.w.Capture(q.tick)
	}
}

func (h *herd) resume(c *herdClient, kept bool) {
	c.down, c.acks = nil, nil
	if c.p.Resume(kept); kept {
		c.r.Resume()
		return
	}
	c.r = replica.New(h.w.table)
	c.r.StartAt(h.tick)
}

func TestResumeWithAllPacketsInFlight(t *testing.T) {
	for _, kept := range []bool{true, false} {
		q := newPair(t, 0)
		had, gone := q.spawnRock(q.w, rock{X: 1}, 1), q.spawnRock(q.w, rock{X: 2}, 1)
		q.deliver()
		q.r.Events()
		q.edit(had).X = 10
		spawned := q.spawnRock(q.w, rock{X: 3}, q.tick)
		q.w.Despawn(gone)
		for range 3 { // two copies of each; then it waits
			q.next()
		}
		if q.p.sentTwice.Count() != 3 {
			t.Fatalf("%d wait", q.p.sentTwice.Count())
		}
		q.resume(kept)
		st := *q.w.Stats()
		if st.Resumes != 1 || st.Lost != 3 {
			t.Errorf("%d resumes, %d packets lost, want 1 and 3", st.Resumes, st.Lost)
		}
		packets, first := q.next()
		applied, err := q.r.Apply(packets[0])
		if err != nil || len(packets) != 1 {
			t.Fatalf("%d packets: %v", len(packets), err)
		}
		q.p.Ack([]Range{{first, first}})
		if first != 1 || (applied.AsOf != 0) != kept {
			t.Errorf("kept %v: the first packet of the connection is number %d, and relative to tick %d", kept, first, applied.AsOf)
		}
		if q.rock(had.ID()).X != 10 || q.rock(spawned.ID()).X != 3 || len(ids(q.r)) != 2 {
			t.Errorf("kept %v: the client has %d objects", kept, len(ids(q.r)))
		}
		now := q.w.Stats()
		// a delta, a full record in place of one that never arrived, and a despawn
		want := [...]uint64{1, 1, 1, 0}
		events := "CDS"
		if !kept {
			// no despawns for objects that have ended
			want, events = [...]uint64{0, 0, 0, 2}, "SS"
		}
		if got := [...]uint64{now.Deltas - st.Deltas, now.FullFirst - st.FullFirst, now.Despawns - st.Despawns, now.FullResumed}; got != want {
			t.Errorf("kept %v: deltas, first, despawns and resumed are %v, want %v", kept, got, want)
		}
		if got := kinds(q.r.Events()); got != events {
			t.Errorf("kept %v: events %s, want %s", kept, got, events)
		}
		q.settled()
	}
}

// The client has more than the server has acknowledgements for: values, spawns and despawns.
func TestResumeWithAnAcknowledgementLostJustBefore(t *testing.T) {
	for _, kept := range []bool{true, false} {
		q := newPair(t, 0)
		o, gone := q.spawnRock(q.w, rock{X: 1}, 1), q.spawnRock(q.w, rock{}, 1)
		q.deliver()
		q.edit(o).X = 2
		spawned := q.spawnRock(q.w, rock{X: 5}, q.tick)
		q.w.Despawn(gone)
		packets, first := q.next()
		mustApply(t, q.r, nil, packets...)
		if got := kinds(q.r.Events()); got != "SSDS" {
			t.Fatalf("events %s", got)
		}
		q.edit(o).X = 1 // A, B, A, and A was acknowledged
		q.tick++
		q.w.Capture(q.tick)
		q.resume(kept)
		q.p.Ack([]Range{{first, first}}) // acknowledgements of the old connection do not count
		if st := q.w.Stats(); st.AckUnknown != 1 || st.Acked != 1 {
			t.Errorf("kept %v: %d acknowledged, %d unknown", kept, st.Acked, st.AckUnknown)
		}
		q.deliver()
		if q.rock(o.ID()).X != 1 || q.rock(spawned.ID()).X != 5 || len(ids(q.r)) != 2 {
			t.Errorf("kept %v: the client shows %+v, and has %d objects", kept, q.rock(o.ID()), len(ids(q.r)))
		}
		want := "C" // no second spawn or despawn
		if !kept {
			want = "SS"
		}
		if got := kinds(q.r.Events()); got != want {
			t.Errorf("kept %v: events %s, want %s", kept, got, want)
		}
		q.settled()
	}
}

// An object that always changes has no version any more that the client has; an unchanged object is
// not sent.
func TestResumeAfterTheBaselineWasEvicted(t *testing.T) {
	q := newPair(t, 0)
	busy, idle, once := q.spawnRock(q.w, rock{}, 1), q.spawnRock(q.w, rock{X: 7}, 1), q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.r.Events()
	q.away(state.Horizon+10, func() { q.edit(busy).X++ })
	q.edit(once).Y = 4
	q.resume(true)
	q.deliver()
	if st := q.w.Stats(); st.FullEvicted != 1 || st.Deltas != 1 || st.Records != 5 || st.FullFirst != 3 {
		t.Errorf("%d full evicted, %d deltas of %d records", st.FullEvicted, st.Deltas, st.Records)
	}
	if q.rock(busy.ID()).X != state.Horizon+10 || q.rock(idle.ID()).X != 7 || q.rock(once.ID()).Y != 4 {
		t.Errorf("the client shows %+v, %+v, %+v", q.rock(busy.ID()), q.rock(idle.ID()), q.rock(once.ID()))
	}
	if got := kinds(q.r.Events()); got != "CC" {
		t.Errorf("events %s", got)
	}
	q.settled()
}

// With any changes of an object while its client is away, the client's spawns and despawns form
// pairs.
func TestVisibilityAndOwnersMoveOnDuringTheBreak(t *testing.T) {
	for _, c := range []struct {
		what          string
		play          func(q *pair, o *state.Object)
		kept, without string // events with copies, and without
		owner         uint64 // at the end: 0 is no object, 1 the same
	}{
		{"nothing", func(*pair, *state.Object) {}, "", "S", 1},
		{"hidden", func(q *pair, o *state.Object) { q.w.SetAudience(o, nobodyMay) }, "D", "", 0},
		{"despawned", func(q *pair, o *state.Object) { q.w.Despawn(o) }, "D", "", 0},
		{"owner changed", func(q *pair, o *state.Object) { q.w.SetOwner(o, 2) }, "C", "S", 2},
		{"hidden and shown", func(q *pair, o *state.Object) {
			q.w.SetAudience(o, nobodyMay)
			q.away(1, func() {})
			q.w.SetAudience(o, nil)
		}, "DS", "S", 1},
		{"replaced in its slot", func(q *pair, o *state.Object) {
			q.w.Despawn(o)
			q.away(1, func() {})
			if other := q.spawnShip(q.w, ship{Name: "b"}, 4, q.tick); other.ID().Slot() != o.ID().Slot() {
				t.Fatal("another slot")
			}
		}, "DS", "S", 4},
		{"spawned and despawned", func(q *pair, o *state.Object) {
			other := q.spawnRock(q.w, rock{}, q.tick)
			q.away(1, func() {})
			q.w.Despawn(other)
		}, "", "S", 1},
		{"hidden when it was on its way", func(q *pair, o *state.Object) {
			other := q.spawnRock(q.w, rock{}, q.tick)
			q.next()
			q.w.SetAudience(other, nobodyMay)
		}, "", "S", 1},
	} {
		for _, kept := range []bool{true, false} {
			q := newPair(t, 0)
			o := q.spawnShip(q.w, ship{Name: "a"}, 1, 1)
			q.deliver()
			q.r.Events()
			c.play(q, o)
			q.away(1, func() {})
			q.resume(kept)
			q.deliver()
			want := c.kept
			if !kept {
				want = c.without
			}
			if got := kinds(q.r.Events()); got != want {
				t.Errorf("%s, kept %v: events %q, want %q", c.what, kept, got, want)
			}
			var owners uint64 // there is at most one object
			for _, id := range ids(q.r) {
				got, _ := q.r.Get(id)
				owners += got.Owner()
			}
			if owners != c.owner {
				t.Errorf("%s, kept %v: the owner is %d, want %d", c.what, kept, owners, c.owner)
			}
			if st := q.w.Stats(); !kept && st.Despawns != 0 {
				t.Errorf("%s: %d despawns for who has nothing", c.what, st.Despawns)
			}
			q.settled()
		}
	}
}

// The readable fields are kept too, and so is the tick from which versions count.
func TestMasksMoveOnDuringTheBreak(t *testing.T) {
	for _, kept := range []bool{true, false} {
		q := newSquad(t, 0)
		o := q.spawn(whole(), 1)
		q.deliver()
		q.w.SetOwner(o, 2)
		q.edit(o).Ammo = 9
		q.next() // lost: 2 may read it now, and 1 may not any more
		for i := 1; i < 3; i++ {
			if q.p[i].Resume(kept); kept {
				q.r[i].Resume()
			} else {
				q.r[i] = replica.New(q.table)
			}
		}
		q.deliver()
		for i := 1; i < 3; i++ {
			c, _ := q.r[i].Get(o.ID())
			if ammo := live[agent](c).Ammo; c.Owner() != 2 || ammo != []int32{0, 0, 9}[i] {
				t.Errorf("kept %v: client %d reads %d, the owner is %d", kept, i, ammo, c.Owner())
			}
		}
		q.settled()
	}
}

// Rules 9 and 13: the record on the old stream counts as lost, delivered or not. Later records of
// its object do not wait for it, and the new connection numbers its own records.
func TestLargeRecordOutstandingWhenTheConnectionBreaks(t *testing.T) {
	for _, kept := range []bool{true, false} {
		for _, arrived := range []bool{true, false} {
			q := newPair(t, 0)
			first := q.spawnHoard(q.w, hoard{Gold: 1, Loot: list4k()}, 1)
			o, gone := q.spawnHoard(q.w, hoard{Gold: 2, Loot: list4k()}, 1), q.spawnHoard(q.w, hoard{Gold: 3, Loot: list4k()}, 1)
			q.deliver()
			for i, b := range q.p.Large() {
				if i == 0 {
					q.p.AckLarge(q.apply(b))
				} else if arrived {
					q.apply(b) // the acknowledgement is lost
				}
			}
			q.editHoard(first).Loot = list4k()[100:]
			q.editHoard(o).Gold = 20
			q.w.Despawn(gone)
			if q.deliver(); len(q.p.Large()) != 1 {
				t.Fatalf("%d large records, want that of the first alone", len(q.p.Large()))
			}
			q.resume(kept)
			if l := &q.p.large; l.bytes != 0 || l.slots.Count() != 0 || len(l.list) != 0 || len(q.p.Large()) != 0 {
				t.Errorf("%d bytes are outstanding after the resume", l.bytes)
			}
			q.deliver()
			spawns := 2
			if kept && arrived {
				spawns = 3
			}
			if n := q.streamed(); n != 2 || q.p.large.last != 2 {
				t.Errorf("kept %v, arrived %v: %d large records, the last is number %d", kept, arrived, n, q.p.large.last)
			}
			q.sameHoard(first)
			q.sameHoard(o)
			if _, ok := q.r.Get(gone.ID()); ok || len(ids(q.r)) != 2 {
				t.Errorf("kept %v, arrived %v: %d objects", kept, arrived, len(ids(q.r)))
			}
			if got := kinds(q.r.Events()); strings.Count(got, "S") != spawns || strings.Count(got, "D") != spawns-2 {
				t.Errorf("kept %v, arrived %v: events %s", kept, arrived, got)
			}
			q.settled()
		}
	}
}

// Another break before any packet was sent makes no difference for a client that kept its copies. A
// client that has reported no copies must not use any.
func TestResumeTwiceBeforeAnythingIsSent(t *testing.T) {
	for _, words := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		q := newPair(t, 0)
		o, gone := q.spawnRock(q.w, rock{X: 1}, 1), q.spawnRock(q.w, rock{}, 1)
		q.deliver()
		q.r.Events()
		q.edit(o).X = 2
		q.w.Despawn(gone)
		q.next()
		for _, kept := range words {
			q.resume(kept)
			q.away(1, func() {})
		}
		st := *q.w.Stats()
		packets, first := q.next()
		mustApply(t, q.r, q.p, packets...)
		both := words[0] && words[1]
		if now := q.w.Stats(); first != 1 || both != (now.Deltas-st.Deltas == 1) || both == (now.FullResumed == 1) || now.Lost != 1 || now.Resumes != 2 {
			t.Errorf("%v: packet %d, %d deltas, %d full, %d lost", words, first, now.Deltas-st.Deltas, now.FullResumed, now.Lost)
		}
		want := "S"
		if both {
			want = "CD"
		}
		if got := kinds(q.r.Events()); got != want || q.rock(o.ID()).X != 2 || len(ids(q.r)) != 1 {
			t.Errorf("%v: events %s, %d objects", words, got, len(ids(q.r)))
		}
		q.settled()
	}
}

// A resume does not change an entry without a record in flight. Otherwise it resets the last sent
// version to the baseline, and the tick of the last record to the baseline's.
func TestARewindResetsUnacknowledgedState(t *testing.T) {
	kept := entry{detail: &detail{base: 5, sent: 5}, last: 9, life: 3}
	if kept.rewind(); kept.sent != 5 || kept.last != 9 {
		t.Errorf("nothing was in flight: sent %d, last %d", kept.sent, kept.last)
	}
	for life, want := range map[uint64]uint32{3: 5, 7: 7} {
		e := entry{detail: &detail{base: 5, sent: 8}, last: 9, life: life}
		if e.rewind(); e.sent != 5 || e.last != want {
			t.Errorf("of a life since %d: sent %d, last %d", life, e.sent, e.last)
		}
	}
}
