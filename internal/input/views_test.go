package input

import (
	"testing"

	"github.com/netloop/netloop/internal/codec"
)

// A view is rounded down to 64ths of the way, and an invalid one becomes none.
func TestViewsAreRounded(t *testing.T) {
	for _, c := range [][2]View{
		{{3, 4, 0.5}, {3, 4, 0.5}},
		{{3, 4, 0.51}, {3, 4, 0.5}},
		{{3, 4, 0.999}, {3, 4, 63. / 64}},
		{{3, 4, 1}, {4, 4, 0}},
		{{3, 4, -0.1}, {}},
		{{4, 3, 0.5}, {}},
		{{3, 3 + maxSpan, 0}, {}},
		{{3, 2 + maxSpan, 0}, {3, 2 + maxSpan, 0}},
		{{maxView - 1, maxView, 0}, {}},
		{{maxView - 2, maxView - 1, 0}, {maxView - 2, maxView - 1, 0}},
		{{}, {}},
	} {
		if got := c[0].rounded(); got != c[1] {
			t.Errorf("%+v becomes %+v, want %+v", c[0], got, c[1])
		}
	}
}

// Views too far apart for a line are written separately.
func TestViewsFarApartAreWrittenSeparately(t *testing.T) {
	f := opaque()
	for _, ticks := range []uint64{maxAdvance/places - 1, maxAdvance / places, maxAdvance/places + 1} {
		for _, forth := range []bool{false, true} {
			newer, older := View{1 << 20, 1<<20 + 1, 0}, View{1<<20 - ticks, 1<<20 - ticks + 1, 0}
			if forth {
				newer, older = older, newer
			}
			w, r := writer{form: f}, NewReader(f, MinRepeats)
			values := codec.Values{Blobs: [][]byte{nil}}
			r.Begin(w.append(nil, MaxPacket, 0, []*item{{2, newer, values}, {1, older, values}}), 2)
			for _, want := range []View{newer, older} {
				if !r.Next() {
					t.Fatalf("%d ticks apart: %v", ticks, r.Err())
				}
				if _, got, ok := r.Read(); !ok || got != want {
					t.Errorf("%d ticks apart: %+v is read as %+v, %v", ticks, want, got, r.Err())
				}
			}
		}
	}
}

// The status of a buffer reports whether an input has arrived.
func TestTheStatusReportsTheFirstInput(t *testing.T) {
	f := opaque()
	b := NewBuffer(window)
	if _, _, ok := b.Status(); ok {
		t.Error("an empty buffer has a status")
	}
	b.Take(NewReader(f, MinRepeats), packetOf(f, 0, []uint64{1}, []string{"a0"}), 0)
	if newest, before, ok := b.Status(); newest != 1 || before != 0 || !ok {
		t.Errorf("step %d, %b, %t", newest, before, ok)
	}
}
