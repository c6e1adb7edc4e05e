package netvar

import (
	"testing"

	"github.com/netloop/netloop/internal/netvar/state"
)

// From the digests of another world, a world names the fields that differ, and the object if only
// one differs.
func TestADifferenceHasItsFieldsAndObject(t *testing.T) {
	world := func(change func(q *pair, rocks []*state.Object, s *state.Object)) *World {
		q := newPair(t, 0)
		var rocks []*state.Object
		for range 20 {
			rocks = append(rocks, q.spawnRock(q.w, rock{X: 3}, 1))
		}
		s := q.spawnShip(q.w, ship{Name: "b"}, 300, 1)
		q.deliver()
		for _, o := range rocks {
			q.edit(o).X++
		}
		q.w.Edit(s)
		change(q, rocks, s)
		q.deliver()
		return q.w
	}
	digests := world(func(*pair, []*state.Object, *state.Object) {}).AppendChangeDigests(nil)
	for _, c := range []struct {
		want   string
		change func(q *pair, rocks []*state.Object, s *state.Object)
	}{
		{"", func(*pair, []*state.Object, *state.Object) {}},
		{"rock.X of object 7.1", func(q *pair, rocks []*state.Object, _ *state.Object) { q.edit(rocks[7]).X++ }},
		{"rock.X of object 8.1", func(q *pair, rocks []*state.Object, _ *state.Object) { q.edit(rocks[8]).X-- }},
		{"rock.X of several objects", func(q *pair, rocks []*state.Object, _ *state.Object) { q.edit(rocks[7]).X++; q.edit(rocks[8]).X++ }},
		{"ship.Name of object 20.1", func(_ *pair, _ []*state.Object, s *state.Object) { (*ship)(s.Live()).Name = "c" }},
		{"rock.(owner) of object 9.1", func(q *pair, rocks []*state.Object, _ *state.Object) { q.w.SetOwner(rocks[9], 5) }},
		{"rock.X of an object in slot 6, which the replay does not have", func(q *pair, rocks []*state.Object, _ *state.Object) { q.w.Despawn(rocks[6]) }},
	} {
		if got := world(c.change).NameDifference(digests); got != c.want {
			t.Errorf("named %q, want %q", got, c.want)
		}
	}
	w := world(func(q *pair, rocks []*state.Object, _ *state.Object) { q.edit(rocks[7]).X++ })
	for n := range digests { // Cut off, or damaged.
		_ = w.NameDifference(digests[:n])
		damaged := append([]byte(nil), digests...)
		damaged[n] ^= 0xff
		_ = w.NameDifference(damaged)
	}
	if n := testing.AllocsPerRun(10, func() { digests = w.AppendChangeDigests(digests[:0]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if len(digests) > 16 {
		t.Errorf("%d bytes for two classes with a changed field", len(digests))
	}
}

// A field that only one of two worlds has changed is named, for each of 1000 values.
func TestADifferenceNamesTheFieldOfEachValue(t *testing.T) {
	ours, theirs := newPair(t, 0), newPair(t, 0)
	var changed *state.Object
	for _, q := range []*pair{ours, theirs} {
		for range 3 {
			changed = q.spawnRock(q.w, rock{}, 1)
		}
		q.deliver()
	}
	changed, _ = ours.w.Get(changed.ID())
	for x := range int32(1000) {
		ours.edit(changed).X = 1 + x
		ours.deliver()
		theirs.deliver()
		if got := ours.w.NameDifference(theirs.w.AppendChangeDigests(nil)); got != "rock.X of object 2.1" {
			t.Fatalf("X is %d, and the difference is in %q", 1+x, got)
		}
	}
}
