package room

import (
	"fmt"
	"testing"
	"time"
)

// Repeated short visits are counted until a minute has passed without one, and the first few have
// no consequence.
func TestShortVisitsAreRemembered(t *testing.T) {
	var v visits
	now := time.Hour
	for n := range freeVisits + 1 {
		if v.often("a", now) {
			t.Fatalf("%d short visits are often", n)
		}
		v.left("a", now-shortVisit, now) // Long enough.
		v.left("a", now-shortVisit+1, now)
		v.left("", now, now) // The holder is unknown.
		now += time.Second
	}
	if !v.often("a", now) || v.often("b", now) || v.often("", now) {
		t.Errorf("a, b and nobody come often: %v, %v, %v", v.often("a", now), v.often("b", now), v.often("", now))
	}
	now += visitMemory - 2*time.Second
	v.left("a", now, now)
	now += visitMemory - 1
	if !v.often("a", now) || v.often("a", now+1) {
		t.Error("its last short visit is not remembered for as long as it shall")
	}
	v.left("a", now+1, now+1)
	if v.often("a", now+1) {
		t.Error("after a quiet minute one visit is often")
	}
	now += 2
	v.left("c", now, now)
	for range freeVisits {
		v.left("c", now+visitMemory, now+visitMemory)
	}
	if v.often("c", now+visitMemory) {
		t.Error("a visit of a minute ago counts")
	}
}

// The stored visits are limited, and those of a minute ago are removed.
func TestVisitsAreForgotten(t *testing.T) {
	var v visits
	for n := range 2 * maxVisitors {
		v.left(fmt.Sprint(n), 0, time.Second)
		v.left(fmt.Sprint(n), 0, 2*time.Second)
	}
	if len(v.of) != maxVisitors || len(v.order) != maxVisitors {
		t.Errorf("%d and %d of %d visitors are remembered", len(v.of), len(v.order), maxVisitors)
	}
	v.left("late", visitMemory, visitMemory+2*time.Second)
	if len(v.of) != 1 || len(v.order) != 1 {
		t.Errorf("%d and %d are remembered for longer than a minute", len(v.of), len(v.order))
	}
}

// In a world of many objects fewer clients join in a tick, and at least one in any.
func TestALargeWorldLetsFewerIn(t *testing.T) {
	for slots, want := range map[int]int{0: 4, 1: 4, 5120: 4, 5121: 3, 10_000: 2, 10_241: 1, 65_536: 1} {
		if n := entering(slots); n != want {
			t.Errorf("%d objects: %d come in in a tick, want %d", slots, n, want)
		}
	}
}
