package history

import (
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// A bucket counts 2048 clients and methods; known ones are counted on.
func TestCountsAreBounded(t *testing.T) {
	var counts []count
	for range 2 {
		for n := range uint64(2049) {
			counts = addCount(counts, count{client: n, n: 1})
		}
	}
	if last := counts[len(counts)-1]; len(counts) != 2048 || last != (count{client: 2047, n: 2}) {
		t.Errorf("%d are counted, the last is %+v", len(counts), last)
	}
}

// A frame that was cut anywhere is an error.
func TestACutFrameIsAnError(t *testing.T) {
	w, table := worldOf(t)
	tr, rng := newTracker(table), rand.New(rand.NewPCG(1, 2))
	var frames [][]byte
	before := func() *State {
		s := &State{classes: table.Classes()}
		for _, frame := range frames {
			if err := s.apply(frame); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	var alive []*state.Object
	for tick := uint64(1); tick <= 15; tick++ {
		alive = act(rng, w, table, alive, tick)
		w.Capture(tick)
		tr.observe(w, tick)
		frame := tr.appendChanges(nil, tick)
		for r := wire.NewReader(frame); r.Len() > 0; {
			class, body := table.Classes()[r.Uvarint()], r.Block(r.Len())
			for n := range body {
				if before().group(class, body[:n], nil) == nil {
					t.Fatalf("tick %d: %d of %d bytes are a group", tick, n, len(body))
				}
			}
		}
		frames = append(frames, frame)
	}
}
