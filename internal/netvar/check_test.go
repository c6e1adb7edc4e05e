package netvar

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// watched is a pair with a world that reports misuse.
func watched(t *testing.T) (*pair, *[]string) {
	q, told := newPair(t, 0), new([]string)
	q.w.Check(true, true, func(o *state.Object, field string, what Misuse) {
		*told = append(*told, fmt.Sprintf("%s %v %s %v", o.Class().Name(), o.ID(), field, what))
	})
	return q, told
}

func wantTold(t *testing.T, told *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*told, want) {
		t.Errorf("told %q, want %q", *told, want)
	}
	*told = nil
}

// TestChangesWithoutEditAreFound: changes through a retained pointer, in an idle object and in one
// that is edited later, and through a retained slice are reported once each.
func TestChangesWithoutEditAreFound(t *testing.T) {
	q, told := watched(t)
	bag := []item{{"x", 1}}
	o := q.spawnShip(q.w, ship{Bag: bag}, 0, 1)
	other := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.w.Edit(o)
	live[ship](o).X = 5
	q.deliver()
	wantTold(t, told)

	live[ship](o).Armed = true
	live[ship](o).X = 5.0001 // rounds to the same value
	live[ship](o).Local = 7  // not replicated
	q.deliver()
	wantTold(t, told, "ship 0.1 Armed unedited")
	q.deliver()
	wantTold(t, told)

	bag[0].Count = 9 // an older copy of the state shares it
	q.deliver()
	wantTold(t, told, "ship 0.1 Bag unedited")

	live[rock](other).X = 3
	q.w.Edit(other)
	live[rock](other).Y = 4
	wantTold(t, told, "rock 1.1 X unedited")
	q.deliver()
	wantTold(t, told)
	live[rock](other).Spin = 1
	q.w.Despawn(other)
	q.deliver()
	wantTold(t, told)
}

// TestHeldBackIsNotUnedited: a change that an interval or a threshold holds back differs from the
// version for long, but was made with Edit.
func TestHeldBackIsNotUnedited(t *testing.T) {
	h := newHeldWorld(t)
	h.w.Check(true, true, func(o *state.Object, field string, what Misuse) { t.Errorf("%s: %v", field, what) })
	o := h.spawn(buoy{})
	h.deliver()
	h.change(o, func(b *buoy) { b.Slow, b.Heat = 1, 1 })
	for range 20 {
		h.deliver()
	}
	if h.seen(o).Slow != 1 {
		t.Error("it was never captured")
	}
}

// TestMisfitsAreRefused: clients keep the last value of the field and receive the others, and a new
// object has the nearest value.
func TestMisfitsAreRefused(t *testing.T) {
	q, told := watched(t)
	o := q.spawnShip(q.w, ship{X: 1, Name: "long enough to be cut"}, 0, 1)
	q.deliver()
	wantTold(t, told, "ship 0.1 Name misfit")
	q.w.Edit(o)
	s := live[ship](o)
	s.X, s.Y, s.Name, s.Angle = float32(math.Inf(1)), 2, "short", float32(math.NaN())
	q.deliver()
	wantTold(t, told, "ship 0.1 X misfit", "ship 0.1 Angle misfit")
	q.w.Edit(o)
	s.Bag = make([]item, 5)
	q.deliver()
	c, _ := q.r.Get(o.ID())
	if got := live[ship](c); got.X != 1 || got.Y != 2 || got.Name != "short" || got.Angle != 0 || got.Bag != nil {
		t.Errorf("the client has %+v", got)
	}
	wantTold(t, told, "ship 0.1 X misfit", "ship 0.1 Angle misfit", "ship 0.1 Bag misfit")
	if q.w.stats.Clamped != 1+2+3 {
		t.Errorf("%d counted", q.w.stats.Clamped)
	}
}

// TestChecksAreApart: each check reports only its own findings.
func TestChecksAreApart(t *testing.T) {
	for _, edits := range []bool{false, true} {
		q, told := watched(t)
		q.w.check.edits, q.w.check.values = edits, !edits
		gone := q.spawnRock(q.w, rock{}, 1)
		o := q.spawnShip(q.w, ship{X: 1}, 0, 1)
		q.deliver()
		q.w.Despawn(gone)
		live[ship](o).Armed = true
		q.deliver()
		q.w.Edit(o)
		live[ship](o).X = float32(math.Inf(1))
		q.deliver()
		c, _ := q.r.Get(o.ID())
		if edits {
			wantTold(t, told, "ship 1.1 Armed unedited")
		} else {
			wantTold(t, told, "ship 1.1 X misfit")
		}
		if x := live[ship](c).X; (x == 1) == edits {
			t.Errorf("edits are checked %v: X is %v", edits, x)
		}
	}
}

// TestCheckingChangesNothing: a checked world sends the same bytes.
func TestCheckingChangesNothing(t *testing.T) {
	q, told := watched(t)
	plain := newPair(t, 0)
	for _, q := range []*pair{q, plain} {
		for i := range 20 {
			q.spawnShip(q.w, ship{X: float32(i), Name: "a", Foe: codec.Ref{ID: 3}}, 0, 1)
		}
	}
	for tick := range 50 {
		var sent [2][][]byte
		for k, q := range []*pair{q, plain} {
			for slot := tick % 3; slot < 20; slot += 3 {
				q.w.Edit(q.w.objects.Slots[slot])
				live[ship](q.w.objects.Slots[slot]).X += 0.5
			}
			sent[k], _ = q.next()
			mustApply(t, q.r, q.p, sent[k]...)
		}
		if !slices.EqualFunc(sent[0], sent[1], slices.Equal) {
			t.Fatalf("tick %d differs", tick)
		}
	}
	wantTold(t, told)
}
