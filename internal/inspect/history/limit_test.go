package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netvar/packet"
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

// A frame that adds an object behind the last slot, or that changes one of another class, is
// damaged.
func TestAFrameOfWrongSlotsIsDamaged(t *testing.T) {
	_, table := worldOf(t)
	balls, bags := table.Classes()[0], table.Classes()[1]
	s := &State{classes: table.Classes(), slots: []*Object{{Class: balls}}}
	for name, body := range map[string][]byte{
		"a slot behind the last": append(wire.AppendUvarint([]byte{0, 1}, packet.MaxSlots), make([]byte, 8)...),
		"another class":          {0, 0, 1, 0, 0, 0},
		"an empty slot":          {0, 0, 1, 2, 0, 0},
		"a removal of none":      {1, 1, 0, 0},
	} {
		if err := s.group(bags, body, nil); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The list of a folder has its 1000 newest files, the newest first.
func TestTheNewestFilesAreListed(t *testing.T) {
	dir := t.TempDir()
	for n := range int64(1001) {
		name := filepath.Join(dir, fmt.Sprint(n*8%1001))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, time.Unix(n, 0), time.Unix(n, 0)); err != nil {
			t.Fatal(err)
		}
	}
	rows, more, err := NewRecordings(RecordingsConfig{Dir: dir}).Files()
	if err != nil || more != 1 || len(rows) != 1000 || rows[0].Modified != 1000 || rows[999].Modified != 1 {
		t.Errorf("%d files and %d more, %v", len(rows), more, err)
	}
}
