package interest

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/grid"
	"github.com/netloop/netloop/internal/netvar/state"
)

type rock struct{ X, Y int32 }

// world is a map with a space of rocks.
type world struct {
	*Map
	t     *testing.T
	set   state.Set
	class *state.Class
	space *Space
}

func newWorld(t *testing.T) *world {
	class, err := state.NewClass("rock", reflect.TypeFor[rock]())
	if err != nil {
		t.Fatal(err)
	}
	shape, err := grid.NewShape(10, 30, 20)
	if err != nil {
		t.Fatal(err)
	}
	table := state.NewTable(class)
	w := &world{t: t, set: state.NewSet(table), class: class}
	w.Map = NewMap(&w.set, table, new(Stats))
	if w.space, err = w.NewSpace(shape, nil); err != nil {
		t.Fatal(err)
	}
	at := func(live unsafe.Pointer) (x, y, z float64) { r := (*rock)(live); return float64(r.X), float64(r.Y), 0 }
	if err := w.space.Hold(class, at); err != nil {
		t.Fatal(err)
	}
	w.Start(1)
	return w
}

// spawn adds a captured rock.
func (w *world) spawn(x int32) *state.Object {
	o := state.NewObject(state.MakeID(len(w.set.Slots), 1), w.class, unsafe.Pointer(&rock{X: x}), 0)
	w.set.Add(o)
	w.Place(o)
	w.Publish(o)
	o.Hist.Push(w.tick, &codec.Values{Words: make([]uint64, w.class.Words())})
	o.SetChanged(w.tick)
	return o
}

// step ends a capture and begins the next one.
func (w *world) step() {
	w.Update()
	w.Start(w.tick + 1)
}

// copies are the objects that a client has.
type copies map[int]bool

func (c copies) Begin(slot int, _ uint64, _ bool) { c[slot] = true }
func (c copies) End(slot int, _ uint64)           { delete(c, slot) }
func (c copies) Remask(int)                       {}
func (c copies) Shown(slot int) bool              { return c[slot] }

func (w *world) join() (*Viewer, copies) {
	v, has := new(Viewer), copies{}
	w.Join(v, has, true)
	return v, has
}

// A map and its space release clients and objects: no references remain behind the ends of lists.
func TestASpaceLetsGoOfClientsAndObjects(t *testing.T) {
	w := newWorld(t)
	body := w.spawn(0)
	v, has := w.join()
	w.spawn(20)
	w.step()
	w.RecheckFor(body, v)
	w.Recheck(body)
	w.step()
	for name, list := range map[string][]*state.Object{"entering": w.entering, "rechecks": w.rechecks} {
		if list = list[:cap(list)]; len(list) == 0 || slices.ContainsFunc(list, func(o *state.Object) bool { return o != nil }) {
			t.Errorf("the list %s holds %v after the capture", name, list)
		}
	}
	for name, list := range map[string][]*Viewer{"fresh": w.fresh, "listed": w.listed} {
		if list = list[:cap(list)]; len(list) == 0 || slices.ContainsFunc(list, func(v *Viewer) bool { return v != nil }) {
			t.Errorf("the list %s holds %v after the capture", name, list)
		}
	}
	w.space.SetViewpoints(v, Viewpoint{Object: body}, Viewpoint{Object: body}, Viewpoint{X: 5})
	w.step()
	if s := w.space; len(s.taken) != 1 || cap(s.moving) == 0 || cap(s.listed) == 0 || len(has) != 2 {
		t.Fatalf("no viewpoint has moved, or no object was a candidate: %v are visible", has)
	}
	own := v.observers[0]
	w.space.SetViewpoints(v, Viewpoint{X: 1000})
	w.step()
	for _, p := range own.wanted[:cap(own.wanted)] {
		if p.Object != nil {
			t.Error("a wanted viewpoint holds its object after the capture")
		}
	}
	for _, p := range own.viewpoints[:cap(own.viewpoints)] {
		if p.object != nil {
			t.Error("a removed viewpoint holds its object")
		}
	}
	w.Leave(v)
	w.step()
	for name, list := range map[string][]*observer{"moving": w.space.moving, "taken": w.space.taken, "listed": w.space.listed} {
		for _, o := range list[:cap(list)] {
			if o != nil {
				t.Errorf("the list %s holds a client that has left", name)
			}
		}
	}
}

// The viewpoints of a client that has left are free for others, and a despawned object is in no
// cell.
func TestViewpointsAreFreeOnceTheirClientHasLeft(t *testing.T) {
	w := newWorld(t)
	body := w.spawn(0)
	for range 5 {
		v, _ := w.join()
		w.space.SetViewpoints(v, Viewpoint{Object: body}, Viewpoint{X: 5})
		w.step()
		w.Leave(v)
		w.step()
	}
	for id, o := range w.space.observers {
		if o != nil {
			t.Errorf("a client that has left is still at viewpoint %d", id)
		}
	}
	if n := len(w.space.observers); n != 2 || len(w.space.free) != 2 {
		t.Errorf("%d viewpoints were made, %d of them are free", n, len(w.space.free))
	}
	if _, ok := w.space.index.Eye(0); ok {
		t.Error("a free viewpoint is still in the index")
	}
	w.set.End(body)
	w.Map.Despawn(body)
	if _, ok := w.space.index.Thing(body.Slot()); ok {
		t.Error("a despawned object is still in its cell")
	}
}
