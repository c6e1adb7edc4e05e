package history

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/seeds"
)

type ball struct {
	X, Y float32 `net:"quant=1/16"`
	Name string  `net:"max=8"`
	On   bool
}

type bag struct{ Items []int32 }

// worldOf makes a world of two classes.
func worldOf(t testing.TB) (*netvar.World, *state.Table) {
	t.Helper()
	var classes []*state.Class
	for _, typ := range []reflect.Type{reflect.TypeFor[ball](), reflect.TypeFor[bag]()} {
		c, err := state.NewClass(typ.Name(), typ)
		if err != nil {
			t.Fatal(err)
		}
		classes = append(classes, c)
	}
	table := state.NewTable(classes...)
	return netvar.NewWorld(table), table
}

// act changes a world at random: few slots, so that objects of both classes take turns in them.
func act(rng *rand.Rand, w *netvar.World, table *state.Table, alive []*state.Object, tick uint64) []*state.Object {
	for range rng.IntN(6) {
		i := 0
		if len(alive) > 0 {
			i = rng.IntN(len(alive))
		}
		switch n := rng.IntN(5); {
		case n == 0 && len(alive) > 0:
			w.Despawn(alive[i])
			alive = append(alive[:i], alive[i+1:]...)
		case n == 1 && len(alive) > 0:
			w.SetOwner(alive[i], rng.Uint64N(3))
		case n < 4 && len(alive) > 0:
			w.Edit(alive[i])
			switch o := alive[i]; o.Class().Index() {
			case 0:
				b := (*ball)(o.Live())
				b.X, b.On = b.X+float32(rng.IntN(3)), rng.IntN(2) == 0
				b.Name = "abcdefgh"[:rng.IntN(9)]
			default:
				l := (*bag)(o.Live())
				l.Items = append(l.Items, rng.Int32N(9))[rng.IntN(len(l.Items)+1):]
			}
		case len(alive) < 12:
			if rng.IntN(2) == 0 {
				alive = append(alive, w.Spawn(table.Classes()[0], unsafe.Pointer(new(ball)), 0, tick))
			} else {
				alive = append(alive, w.Spawn(table.Classes()[1], unsafe.Pointer(new(bag)), 1, tick))
			}
		}
	}
	return alive
}

func textOf(id state.ID, c *state.Class, owner uint64, values []byte) string {
	return fmt.Sprintf("%v %s %d %s; ", id, c.Name(), owner, values)
}

func captured(w *netvar.World) (text string) {
	for o := range w.Captured() {
		v := o.Newest()
		text += textOf(o.ID(), o.Class(), o.Class().Owner(&v), o.Class().AppendJSON(nil, &v, 0))
	}
	return text
}

func (s *State) text() (text string) {
	for _, o := range s.slots {
		if o != nil {
			text += textOf(o.ID, o.Class, o.Owner(), o.Class.AppendJSON(nil, &o.Values, 0))
		}
	}
	return text
}

// The state of any tick in the store is the captured one, whichever keyframe it begins with:
// objects of several classes take turns in a slot, and some ticks have no capture.
func TestStoreHasEveryCapturedState(t *testing.T) {
	seeds.Each(t, 200, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w, table := worldOf(t)
		s, err := newStore(table, t.TempDir(), maxTicks)
		if err != nil {
			t.Fatal(err)
		}
		tr := newTracker(table)
		var alive []*state.Object
		var want []string
		for tick := uint64(2); tick <= 300; tick += 2 { // as if a room had slept
			alive = act(rng, w, table, alive, tick)
			if rng.IntN(5) > 0 {
				w.Capture(tick)
			}
			n := tr.observe(w, tick)
			if err := s.append(tickInfo{tick: tick, changes: n}, func(dst []byte) []byte { return tr.appendChanges(dst, tick) }); err != nil {
				t.Fatal(err)
			}
			if err := s.appendKeyframe(func(dst []byte) []byte { return tr.appendKeyframe(dst, w) }); err != nil {
				t.Fatal(err)
			}
			want = append(want, captured(w))
		}
		if s.keys.len() == 0 {
			t.Fatal("no keyframe")
		}
		for position, want := range want {
			st, err := s.state(position)
			if err != nil || st.text() != want || st.Tick != uint64(2*position+2) {
				t.Fatalf("position %d: %v\ngot  %s\nwant %s", position, err, st.text(), want)
			}
		}
		at := &State{classes: s.classes}
		err = s.each(0, len(want), func(position int, frame []byte) (bool, error) {
			err := at.apply(frame)
			if at.text() != want[position] {
				t.Fatalf("position %d:\ngot  %s\nwant %s", position, at.text(), want[position])
			}
			return true, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if p := s.from(6); p != 2 || s.ticks.at(p).tick != 6 {
			t.Errorf("tick 6 is at %d", p)
		}
		if p := s.from(7); p != 3 || s.ticks.at(p).tick == 7 {
			t.Errorf("tick 7 is at %d", p)
		}
		if err := s.file.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A damaged frame is an error, never a panic.
func FuzzFrame(f *testing.F) {
	w, table := worldOf(f)
	rng := rand.New(rand.NewPCG(1, 1))
	tr := newTracker(table)
	var alive []*state.Object
	for tick := uint64(1); tick <= 4; tick++ {
		alive = act(rng, w, table, alive, tick)
		w.Capture(tick)
		tr.observe(w, tick)
		f.Add(tr.appendChanges(nil, tick))
	}
	f.Add(tr.appendKeyframe(nil, w))
	f.Fuzz(func(t *testing.T, frame []byte) {
		s := &State{classes: table.Classes()}
		for range 2 {
			if s.apply(frame) == nil {
				_ = s.text()
			}
		}
	})
}

// The replay's goroutine reuses its memory: a tick with changes of objects that it knows allocates
// nothing.
func TestTrackerDoesNotAllocate(t *testing.T) {
	w, table := worldOf(t)
	tr := newTracker(table)
	var balls []*state.Object
	for range 20 {
		balls = append(balls, w.Spawn(table.Classes()[0], unsafe.Pointer(new(ball)), 0, 1))
	}
	tick := uint64(0)
	var buf []byte
	run := func() {
		tick++
		for _, o := range balls {
			w.Edit(o)
			(*ball)(o.Live()).X++
		}
		w.Capture(tick)
		tr.observe(w, tick)
		buf = tr.appendChanges(buf[:0], tick)
	}
	for range 300 {
		run()
	}
	if n := testing.AllocsPerRun(200, run); n > 0 {
		t.Errorf("%v allocations in a tick", n)
	}
	if per := len(buf) / len(balls); per > 8 {
		t.Errorf("a changed coordinate takes %d bytes", per)
	}
}
