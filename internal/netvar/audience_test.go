package netvar

import (
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// only is an audience of one client, or of none.
type only struct{ p *Peer }

func (a only) Includes(p *interest.Viewer) bool { return a.p != nil && &a.p.Viewer == p }

var nobodyMay = only{}

func TestHideAndShowInOneTickIsNothing(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{X: 1}, 1)
	q.deliver()
	q.w.SetAudience(o, nobodyMay)
	if q.p.Shows(o) {
		t.Error("a client that will lose the object observes it")
	}
	q.w.SetAudience(o, nil)
	q.deliver()
	if got := kinds(q.r.Events()); got != "S" || q.w.stats.Records != 1 {
		t.Errorf("events %s, %d records", got, q.w.stats.Records)
	}
	fresh := q.spawnRock(q.w, rock{}, q.tick)
	q.w.SetAudience(fresh, nobodyMay)
	if q.p.Shows(fresh) {
		t.Error("what is spawned hidden is observed")
	}
	q.deliver()
	if q.w.stats.Records != 1 {
		t.Error("what is spawned hidden is sent")
	}
}

// Rule 2: a hidden change makes no record pending.
func TestHiddenChangesAreNotPending(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.w.SetAudience(o, nobodyMay)
	q.deliver()
	sent := q.w.stats.Records
	for range 5 {
		q.edit(o).X++
		q.deliver()
	}
	if q.w.stats.Records != sent || q.p.pending.Count() != 0 {
		t.Errorf("%d records of what is hidden", q.w.stats.Records-sent)
	}
	q.w.SetAudience(o, only{q.p})
	q.deliver()
	if got := kinds(q.r.Events()); got != "SDS" || q.rock(o.ID()).X != 5 {
		t.Errorf("events %s", got)
	}
	if q.w.stats.FullVisible != 1 || q.w.stats.Shown != 1 || q.w.stats.Hidden != 1 {
		t.Errorf("counted %+v", q.w.stats)
	}
	q.w.SetAudience(o, nobodyMay)
	q.deliver()
	q.w.SetAudience(o, nil)
	q.edit(o) // it has one version, of an earlier tick
	q.deliver()
	q.w.SetAudience(o, nobodyMay)
	q.deliver()
	q.w.SetAudience(o, nil)
	q.edit(o).X++ // and then one of this tick
	q.deliver()
	if q.w.stats.FullVisible != 3 || q.w.stats.Shown != 3 || q.w.stats.Hidden != 3 {
		t.Errorf("counted %+v", q.w.stats)
	}
	q.edit(o).X++
	q.deliver()
	if q.w.stats.Deltas != 1 || q.rock(o.ID()).X != 7 {
		t.Errorf("%d deltas after it was shown again", q.w.stats.Deltas)
	}
}

// Rule 4: the acknowledgement of a packet from before the object was hidden and shown, twice in a
// row before a record of the second lifetime was sent, does not count.
func TestAcknowledgementFromBeforeItWasHiddenAndShown(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{X: 1}, 1)
	lost, first := q.next() // never arrives
	for range 2 {
		q.w.SetAudience(o, nobodyMay)
		q.tick++
		q.w.Capture(q.tick)
		q.w.SetAudience(o, nil)
		q.tick++
		q.w.Capture(q.tick)
	}
	q.p.Ack([]Range{{first, first + uint64(len(lost)) - 1}})
	if q.p.pending.Count() != 1 || q.p.detailed(0).base != 0 {
		t.Fatal("the old acknowledgement counts for the new lifetime")
	}
	q.deliver()
	if q.rock(o.ID()).X != 1 || q.p.pending.Count() != 0 {
		t.Error("the object is not there")
	}
}

// Rule 8: an object that is shown again has a new lifetime. A client that missed the despawn has
// the events despawn, spawn.
func TestShownAgainAfterALostDespawn(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{X: 1}, 1)
	q.deliver()
	q.w.SetAudience(o, nobodyMay)
	q.next() // lost
	q.w.SetAudience(o, nil)
	q.edit(o).X = 2
	q.deliver()
	events := q.r.Events()
	if got := kinds(events); got != "SDS" || events[1].Object == events[2].Object || events[2].Object.ID() != o.ID() {
		t.Errorf("events %s", got)
	}
}

// Rule 8: the server remembers that a record was sent until a despawn is acknowledged, also if the
// hidden object is despawned and the next of its slot is hidden from the start.
func TestHiddenThenDespawnedIsToldOnce(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.w.SetAudience(o, nobodyMay)
	q.next() // lost
	q.w.Despawn(o)
	q.next() // lost
	next := q.spawnRock(q.w, rock{}, q.tick)
	q.w.SetAudience(next, nobodyMay)
	q.next() // both copies were in flight, so it has no record
	q.edit(next).X++
	q.deliver() // its acknowledgement proves that the others are lost
	q.edit(next).X++
	q.deliver()
	if got := kinds(q.r.Events()); got != "SD" || q.p.pending.Count() != 0 {
		t.Errorf("events %s, %d owed", got, q.p.pending.Count())
	}
	if next.ID().Slot() != o.ID().Slot() {
		t.Fatal("the slot was not used again")
	}
}

// A joining client is judged at the next capture, after OnJoin.
func TestAudienceIsAskedForJoiners(t *testing.T) {
	q := newPair(t, 0)
	a, b, c := q.spawnRock(q.w, rock{X: 1}, 1), q.spawnRock(q.w, rock{X: 2}, 1), q.spawnRock(q.w, rock{X: 3}, 1)
	q.w.SetAudience(a, only{q.p})
	q.deliver()
	p, r := q.w.NewPeer(q.tick+1), replica.New(q.table)
	q.w.SetAudience(b, only{p})
	if p.Shows(a) || !p.Shows(b) || !p.Shows(c) {
		t.Error("observers before the judgement are not what it will be")
	}
	q.edit(a).X = 9
	q.deliver()
	packets, _ := snap(p, q.tick, wide)
	mustApply(t, r, p, packets...)
	if got := kinds(r.Events()); got != "SS" {
		t.Errorf("the joiner sees %s", got)
	}
	if got := kinds(q.r.Events()); got != "SSSD" {
		t.Errorf("the other sees %s", got)
	}
	if q.w.Digest(p) == q.w.Digest(q.p) {
		t.Error("two different views have one digest")
	}
	gone := q.w.NewPeer(q.tick + 1)
	q.w.ClosePeer(gone)
	q.deliver()
}

// A doubted pair is judged once, at the next capture, beside other reasons; and not if its client
// has just joined, for which all objects are judged, or is closed.
func TestADoubtedPairIsAskedAboutOnce(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	q.w.SetAudience(o, only{q.p})
	other := q.w.NewPeer(1)
	q.deliver()
	asked := func(what string, want uint64, do func()) {
		t.Helper()
		before := q.w.stats.Judged
		do()
		q.deliver()
		if n := q.w.stats.Judged - before; n != want {
			t.Errorf("%s: %d questions, want %d", what, n, want)
		}
	}
	asked("doubted twice", 1, func() { q.w.RecheckFor(o, &q.p.Viewer); q.w.RecheckFor(o, &q.p.Viewer) })
	asked("not any more", 0, func() {})
	asked("doubted anew", 1, func() { q.w.RecheckFor(o, &q.p.Viewer) })
	asked("doubted again", 1, func() { q.w.RecheckFor(o, &other.Viewer) })
	asked("judged for all", 2, func() { q.w.RecheckFor(o, &other.Viewer); q.w.Recheck(o) })
	asked("judged for all first", 2, func() { q.w.Recheck(o); q.w.RecheckFor(o, &other.Viewer) })
	asked("a joiner", 1, func() {
		q.w.ClosePeer(other)
		other = q.w.NewPeer(q.tick + 1)
		q.w.RecheckFor(o, &other.Viewer)
	})
	asked("a joiner, and judged for all", 2, func() {
		q.w.ClosePeer(other)
		other = q.w.NewPeer(q.tick + 1)
		q.w.Recheck(o)
	})
	asked("a leaver", 0, func() { q.w.RecheckFor(o, &other.Viewer); q.w.ClosePeer(other) })
	if !q.w.Map.Settled() {
		t.Error("a client that has gone is still doubtful")
	}
	asked("what is gone", 0, func() { q.w.RecheckFor(o, &q.p.Viewer); q.w.Despawn(o) })
}

// An audience that refers to the observers of its own object gets those as of the last check.
func TestAudienceMayAskForItsOwnObject(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.w.SetAudience(o, self{o, q.w})
	q.deliver()
	if !q.p.Shows(o) || kinds(q.r.Events()) != "S" {
		t.Error("what was visible is not any more")
	}
}

type self struct {
	o *state.Object
	w *World
}

func (a self) Includes(p *interest.Viewer) bool { return a.w.Shows(a.o, p) }

// The iteration over objects with an audience is in id order, and may stop.
func TestGuardedIsInOrderAndMayBeLeft(t *testing.T) {
	q := newPair(t, 0)
	var guarded []*state.Object
	for i := range 200 {
		if o := q.spawnRock(q.w, rock{}, 1); i%3 == 0 {
			q.w.SetAudience(o, nobodyMay)
			guarded = append(guarded, o)
		}
	}
	for most := range len(guarded) + 1 {
		var got []*state.Object
		for o := range q.w.Guarded {
			if got = append(got, o); len(got) > most {
				break
			}
		}
		if want := guarded[:min(most+1, len(guarded))]; !slices.Equal(got, want) {
			t.Fatalf("%d objects of the first %d", len(got), len(want))
		}
	}
}

func TestSnapshotOfHalfHiddenWorldDoesNotAllocate(t *testing.T) {
	f := newField(t, 250, 3, 6)
	for i, o := range f.rocks {
		if i%2 == 0 {
			f.w.SetAudience(o, only{f.peers[i%3]})
		}
	}
	f.warm(true)
	i := 0
	if n := testing.AllocsPerRun(200, func() {
		i++
		f.w.Recheck(f.rocks[i*2%250])
		f.step(true)
	}); n != 0 {
		t.Errorf("judge, capture, acknowledge and encode: %v allocations, want 0", n)
	}
}
