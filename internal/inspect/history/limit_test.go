package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/room"
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

// An answer has the first 64 clients that were in the room during its ticks.
func TestLanesAreThoseOfTheTicks(t *testing.T) {
	l := newLanes()
	add := func(id, from, to uint64) {
		left := &lane{id: id, from: from}
		left.to.Store(to)
		l.add(left)
	}
	add(1, 1, 9)  // It left before.
	add(2, 21, 0) // It joins later.
	add(3, 20, 0)
	add(4, 1, 10)
	for id := range uint64(64) {
		add(5+id, 1, 0)
	}
	a := timeline{TicksAnswer: TicksAnswer{Ticks: []uint64{10}}, end: 1, every: 1}
	a.findLanes(l, 20)
	if len(a.Lanes) != 64 || a.MoreLanes != 2 || a.Lanes[0].Client != 3 || a.Lanes[1].Client != 4 || a.Lanes[1].To != 10 || len(a.shown) != 64 || a.shown[4] != 1 {
		t.Errorf("%d lanes and %d more, the first are %+v", len(a.Lanes), a.MoreLanes, a.Lanes[:2])
	}
}

// Clients that have all left are counted, and their lanes end.
func TestTheLastClientsLeave(t *testing.T) {
	ann, bob := &lane{id: 1}, &lane{id: 2}
	p := presence{ann, bob}
	n := arrivals{}
	p.compare(nil, 9, &n, nil)
	if n != (arrivals{leaves: 2}) || ann.to.Load() != 9 || bob.to.Load() != 9 || len(p) != 0 {
		t.Errorf("%+v, left at %d and %d", n, ann.to.Load(), bob.to.Load())
	}
}

// Counts that are too large for the index are the largest that fit.
func TestLargeCountsAreClipped(t *testing.T) {
	for n, want := range map[uint64]uint16{0: 0, 65534: 65534, 65535: 65535, 65536: 65535} {
		if got := clip(n); got != want {
			t.Errorf("%d is counted as %d", n, got)
		}
	}
}

// An object with a new owner has changed in field 0.
func TestANewOwnerIsAChange(t *testing.T) {
	_, table := worldOf(t)
	c := table.Classes()[0]
	object := func(owner uint64) *Object {
		o := &Object{ID: state.MakeID(1, 1), Class: c, Values: codec.Values{Words: make([]uint64, c.Words()), Blobs: make([][]byte, c.Plan().Blobs())}}
		o.Values.Words[c.Words()-1] = owner
		return o
	}
	if got := object(1).changedFrom(object(2)); !slices.Equal(got, []int{0}) {
		t.Errorf("fields %v", got)
	}
	if got := object(1).changedFrom(object(1)); got != nil {
		t.Errorf("fields %v of an equal object", got)
	}
}

// An answer takes rows up to its bounds, and none after one that did not fit.
func TestABudgetEndsWithTheFirstMisfit(t *testing.T) {
	b := budget{rows: 3, bytes: 10}
	for i, c := range []struct {
		size int
		fits bool
	}{{4, true}, {6, true}, {1, false}, {0, false}} {
		if b.take(c.size) != c.fits {
			t.Errorf("row %d of %d bytes: %v", i, c.size, !c.fits)
		}
	}
	b = budget{rows: 1, bytes: 10}
	if !b.take(10) || b.take(0) {
		t.Error("the rows are not bounded")
	}
}

// Of ended rooms only the last few have ticks, of each name the last one. Their ticks are dropped
// before those of running rooms.
func TestEndedRingsAreFew(t *testing.T) {
	rings := NewRings(time.Second)
	ended := func(name string) {
		g := &Ring{all: rings, spec: room.Spec{Name: name}, ticks: []keptTick{{frame: make([]byte, 100)}}, tick: 1}
		rings.bytes.Add(g.ticks[0].bytes())
		g.Close()
	}
	names := func() (all []string) {
		for _, row := range rings.EndedRows() {
			all = append(all, row.Room)
		}
		return all
	}
	for _, name := range []string{"a", "b", "a"} {
		ended(name)
	}
	if got := names(); !slices.Equal(got, []string{"a", "b"}) || rings.bytes.Load() != 2*(100+entrySize) {
		t.Errorf("%q in %d bytes", got, rings.bytes.Load())
	}
	rings.limit = rings.bytes.Load() - 1
	rings.release(0)
	if got := names(); !slices.Equal(got, []string{"a"}) || rings.bytes.Load() > rings.limit {
		t.Errorf("above the limit: %q in %d bytes", got, rings.bytes.Load())
	}
	for n := range maxEnded {
		ended(fmt.Sprint(n))
	}
	if got := names(); len(got) != maxEnded || slices.Contains(got, "a") || got[0] != fmt.Sprint(maxEnded-1) {
		t.Errorf("%q", got)
	}
	(&Ring{all: rings}).Close() // It has run no tick.
	if len(names()) != maxEnded {
		t.Error("a room without a tick is among the ended rooms")
	}
}
