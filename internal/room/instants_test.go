package room

import (
	"math"
	"slices"
	"testing"
	"time"
)

// A room stores each awaited moment once, in order, and removes past ones.
func TestMomentsAreAwaitedInOrder(t *testing.T) {
	var in instants
	if in.next() != math.MaxInt64 || in.pass(0) {
		t.Errorf("nothing is awaited at %v", in.next())
	}
	for _, at := range []time.Duration{7, 3, 9, 3, 7, 9} {
		in.add(at)
	}
	if want := []time.Duration{3, 7, 9}; !slices.Equal(in.list, want) || in.next() != 3 {
		t.Errorf("%v are awaited, want %v", in.list, want)
	}
	for now, want := range map[time.Duration]time.Duration{2: 3, 3: 7, 4: 7, 7: 9, 8: 9, 9: math.MaxInt64} {
		of := instants{list: slices.Clone(in.list)}
		if of.pass(now) || of.next() != want {
			t.Errorf("at %v the next is %v, want %v", now, of.next(), want)
		}
	}
}

// Beyond the limit of stored moments only the latest is kept, and until then later ones are
// reported.
func TestMomentsBeyondTheBoundKeepARoomAwake(t *testing.T) {
	var in instants
	for i := range time.Duration(maxInstants) {
		in.add(i)
	}
	if len(in.list) != maxInstants || in.pass(0) {
		t.Errorf("%d are kept of %d, and there are more", len(in.list), maxInstants)
	}
	in = instants{}
	for i := range time.Duration(maxInstants) {
		in.add(i)
	}
	in.add(5) // It is stored already.
	in.add(1000)
	in.add(900)
	if len(in.list) != maxInstants || !in.pass(999) || in.pass(1000) || in.next() != math.MaxInt64 {
		t.Errorf("%d are kept, the next is %v", len(in.list), in.next())
	}
}
