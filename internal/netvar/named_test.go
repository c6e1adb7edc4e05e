package netvar

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Cases that have broken other replication systems, each in a test of its name. Cases with a rule
// of their own in docs/WIRE.md are in rules_test.go and visible_test.go.

func TestAcknowledgementLost(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{X: 1}, 1)
	packets, first := q.next()
	mustApply(t, q.r, nil, packets...) // its acknowledgement is lost
	for i := range int32(5) {          // and so are all later ones
		q.edit(o).X = 10 + i
		packets, _ = q.next()
		mustApply(t, q.r, nil, packets...)
		if got := q.rock(o.ID()).X; got != 10+i {
			t.Fatalf("the client shows %d, want %d", got, 10+i)
		}
	}
	if st := q.w.stats; st.Deltas != 0 || st.FullFirst != 6 {
		t.Errorf("%d deltas, %d full: nothing is acknowledged, so nothing may be a baseline", st.Deltas, st.FullFirst)
	}
	q.p.Ack([]Range{{first, first + 5}}) // one that arrives names all packets
	if q.p.pending.Count() != 0 || q.w.stats.Lost != 0 {
		t.Errorf("%d owed, %d lost", q.p.pending.Count(), q.w.stats.Lost)
	}
	if got := kinds(q.r.Events()); got != "S" {
		t.Errorf("events %s", got)
	}
}

func TestAcknowledgementsReordered(t *testing.T) {
	for _, together := range []bool{false, true} { // one after the other, or in one datagram
		q := newPair(t, 0)
		o := q.spawnRock(q.w, rock{}, 1)
		var ranges []Range
		for i := range int32(6) {
			q.edit(o).X = i
			packets, id := q.next()
			mustApply(t, q.r, nil, packets...)
			ranges = append(ranges, Range{id, id})
		}
		slices.Reverse(ranges)
		for len(ranges) > 0 {
			n := 1
			if together {
				n = len(ranges)
			}
			q.p.Ack(ranges[:n])
			ranges = ranges[n:]
			if base := q.p.detailed(o.ID().Slot()).base; base != o.Changed() || q.p.pending.Count() != 0 {
				t.Fatalf("the baseline is %d, not %d; %d owed", base, o.Changed(), q.p.pending.Count())
			}
		}
		q.edit(o).Y = 7
		q.deliver()
		if q.rock(o.ID()) != (rock{X: 5, Y: 7}) || q.w.stats.Deltas != 1 {
			t.Errorf("the client shows %+v, %d deltas", q.rock(o.ID()), q.w.stats.Deltas)
		}
	}
}

func TestAcknowledgementDuplicated(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnRock(q.w, rock{}, 1)
	packets, first := q.next()
	mustApply(t, q.r, nil, packets...)
	again := []Range{{first, first}}
	q.p.Ack(again)
	q.edit(o).X = 3
	lost, _ := q.next()
	q.p.Ack(again) // it does not cover later packets
	if st := q.w.stats; st.Acked != 1 || st.AckStale != 1 || st.Lost != 0 || q.p.pending.Count() != 1 {
		t.Errorf("acked %d, stale %d, lost %d, owed %d", st.Acked, st.AckStale, st.Lost, q.p.pending.Count())
	}
	q.deliver()
	q.p.Ack(again)
	if q.rock(o.ID()).X != 3 || q.p.pending.Count() != 0 || len(lost) != 1 {
		t.Errorf("the client shows %+v, %d owed", q.rock(o.ID()), q.p.pending.Count())
	}
}

// An acknowledgement from before a change of owner makes its version the baseline. The owner is a
// part of the version, so the new owner is still pending.
func TestAcknowledgementFromBeforeTheOwnerChanged(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnShip(q.w, ship{Name: "a"}, 3, 1)
	old, first := q.next()
	mustApply(t, q.r, nil, old...)
	q.w.SetOwner(o, 4)
	q.next() // lost
	q.w.SetOwner(o, 3)
	q.next() // lost, and the owner is again the one that the client has
	q.w.SetOwner(o, 5)
	q.next() // lost
	q.p.Ack([]Range{{first, first}})
	if q.p.pending.Count() != 1 {
		t.Fatal("the acknowledgement of the old owner pays for the new one")
	}
	q.deliver()
	q.deliver() // the copies in flight are known to be lost
	if c, _ := q.r.Get(o.ID()); c.Owner() != 5 || live[ship](c).Name != "a" || q.p.pending.Count() != 0 {
		t.Errorf("owner %d, %+v, %d owed", c.Owner(), live[ship](c), q.p.pending.Count())
	}
}

func TestOwnerAndValueOfOneTickArriveTogether(t *testing.T) {
	for _, lost := range []bool{false, true} {
		q := newPair(t, 0)
		o := q.spawnShip(q.w, ship{Name: "a"}, 3, 1)
		q.deliver()
		q.r.Events()
		q.w.Edit(o)
		live[ship](o).Name = "b"
		q.w.SetOwner(o, 4)
		live[ship](o).Armed = true
		if lost {
			q.next()
		}
		q.deliver()
		events := q.r.Events()
		if kinds(events) != "C" {
			t.Fatalf("events %s: owner and value are one change", kinds(events))
		}
		c, old := events[0].Object, (*ship)(events[0].Old)
		if v := live[ship](c); c.Owner() != 4 || v.Name != "b" || !v.Armed || old.Name != "a" || old.Armed {
			t.Errorf("owner %d, %+v, before %+v", c.Owner(), v, old)
		}
	}
}

// If any packets with its spawn and its despawn are lost, an object's events form pairs or there
// are none, and it does not exist at the end.
func TestSpawnAndDespawnWithinLostPackets(t *testing.T) {
	for pattern := range 1 << 6 {
		q := newPair(t, 0)
		var o *state.Object
		for tick := range 6 {
			switch tick {
			case 0:
				o = q.spawnRock(q.w, rock{X: 1}, q.tick+1)
			case 1:
				q.edit(o).X = 2
			case 3:
				q.w.Despawn(o)
			}
			if packets, _ := q.next(); pattern>>tick&1 == 0 {
				mustApply(t, q.r, q.p, packets...)
			}
		}
		q.deliver()
		q.deliver()
		if got := kinds(q.r.Events()); got != "" && got != "SD" && got != "SCD" || len(ids(q.r)) != 0 {
			t.Errorf("losses %06b: events %q, %d objects", pattern, got, len(ids(q.r)))
		}
		if _, n := q.next(); q.p.pending.Count() != 0 || q.p.flight.next != n+1 {
			t.Errorf("losses %06b: %d owed", pattern, q.p.pending.Count())
		}
	}
}

func TestEditsWithNoClientReachTheFirstJoiner(t *testing.T) {
	s := newSchema(t)
	w := NewWorld(s.table)
	o, gone := s.spawnRock(w, rock{}, 1), s.spawnRock(w, rock{}, 1)
	for tick := uint64(1); tick <= 3*state.Horizon; tick++ {
		w.Edit(o)
		live[rock](o).X = int32(tick)
		if tick == state.Horizon {
			w.Despawn(gone)
		}
		w.Capture(tick)
	}
	p, r := w.NewPeer(3*state.Horizon+1), replica.New(s.table)
	w.Capture(3*state.Horizon + 1)
	packets, _ := snap(p, 3*state.Horizon+1, wide)
	mustApply(t, r, p, packets...)
	c, ok := r.Get(o.ID())
	if got := kinds(r.Events()); got != "S" || !ok || live[rock](c).X != 3*state.Horizon || p.pending.Count() != 0 {
		t.Errorf("events %s, found %v, %d owed", got, ok, p.pending.Count())
	}
}

// A game may keep copies of a state, which share the memory of its slices, and assign one back.
// Each version is the state at its capture, whichever copy was written to, and so is the baseline
// of a delta.
func TestSliceAliasedByAnOlderCopy(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 5))
		q := newPair(t, 0)
		o := q.spawnShip(q.w, ship{Bag: make([]item, 1, 4)}, 0, 1)
		older, checked := *live[ship](o), 0
		for range 60 {
			q.w.Edit(o)
			v := live[ship](o)
			switch rng.IntN(5) {
			case 0:
				older = *v
			case 1:
				*v = older
			case 2:
				if len(v.Bag) < cap(v.Bag) {
					v.Bag = append(v.Bag, item{Name: "n"}) // within the memory of the older copy
				}
			case 3:
				v.Bag = v.Bag[:rng.IntN(len(v.Bag)+1)]
			}
			for i := range v.Bag {
				v.Bag[i].Count += uint8(rng.IntN(2)) // in place
			}
			want := slices.Clone(v.Bag)
			packets, _ := q.next()
			for i := range older.Bag {
				older.Bag[i].Count++ // after the capture, and without Edit
			}
			if rng.IntN(3) == 0 {
				continue // lost
			}
			mustApply(t, q.r, q.p, packets...)
			c, _ := q.r.Get(o.ID())
			if c.Changed() != o.Changed() {
				continue // versions in flight are not sent a third time
			}
			checked++
			if got := live[ship](c).Bag; len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, tick %d: the client shows %v, captured was %v", seed, q.tick, got, want)
			}
		}
		if checked < 10 {
			t.Errorf("seed %d: only %d versions were looked at", seed, checked)
		}
	}
}
