package netloop_test

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// seeds returns the seeds that a property is tried with: 1 to n. The environment
// variable NETLOOP_SEEDS asks for another n, NETLOOP_SEED for one seed alone.
func seeds(t *testing.T, n int) iter.Seq[uint64] {
	t.Helper()
	number := func(name string) (uint64, bool) {
		text := os.Getenv(name)
		if text == "" {
			return 0, false
		}
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v, true
	}
	first, last := uint64(1), uint64(n)
	if testing.Short() {
		last = max(1, last/10)
	}
	if more, ok := number("NETLOOP_SEEDS"); ok {
		last = more
	}
	if one, ok := number("NETLOOP_SEED"); ok {
		first, last = one, one
	}
	return func(yield func(uint64) bool) {
		for seed := first; seed <= last && yield(seed); seed++ {
		}
	}
}

// mirror is what the test knows of the server's objects: it makes every change
// itself and does not ask the runtime.
type mirror struct {
	rng    *rand.Rand
	things map[netloop.Ref[thing]]thing
	notes  map[netloop.Ref[note]]note
	objT   map[netloop.Ref[thing]]*netloop.Object[thing]
	objN   map[netloop.Ref[note]]*netloop.Object[note]
}

// newMirror returns the mirror of an empty world; streams of one seed differ.
func newMirror(seed, stream uint64) *mirror {
	return &mirror{
		rng:    rand.New(rand.NewPCG(seed, stream)),
		things: map[netloop.Ref[thing]]thing{}, notes: map[netloop.Ref[note]]note{},
		objT: map[netloop.Ref[thing]]*netloop.Object[thing]{}, objN: map[netloop.Ref[note]]*netloop.Object[note]{},
	}
}

// order returns the keys of a map in an order that the seed decides alone.
func order[S, V any](m map[netloop.Ref[S]]V) []netloop.Ref[S] {
	return slices.SortedFunc(maps.Keys(m), netloop.Ref[S].Compare)
}

// change makes a few random changes. A thing's N counts its edits, so that an old
// value after a newer one is seen.
func (m *mirror) change(t *netloop.Tick) {
	for range m.rng.IntN(6) {
		switch k := m.rng.IntN(20); {
		case k < 2 && len(m.things) < 60:
			v := thing{X: m.coordinate()}
			o := things.Spawn(t, v)
			m.things[o.Ref()], m.objT[o.Ref()] = v, o
		case k < 3 && len(m.notes) < 20:
			v := note{Text: "new", List: []int16{1}}
			o := notes.Spawn(t, v)
			m.notes[o.Ref()], m.objN[o.Ref()] = v, o
		case k < 4:
			for _, r := range order(m.things)[:min(1, len(m.things))] {
				m.objT[r].Despawn(t)
				delete(m.things, r)
			}
		case k < 8:
			for r, o := range m.pickNote() {
				n := o.Edit(t)
				n.Text = fmt.Sprint("text ", m.rng.IntN(1000))
				n.List = append(n.List[:0:0], make([]int16, m.rng.IntN(8))...)
				m.notes[r] = note{Text: n.Text, List: slices.Clone(n.List)}
			}
		default:
			for r, o := range m.pickThing() {
				e := o.Edit(t)
				e.N++
				e.X = m.coordinate()
				e.Tags[m.rng.IntN(2)] = uint8(m.rng.IntN(3))
				m.things[r] = *e
			}
		}
	}
}

// coordinate draws a value that survives the quantisation to sixteenths.
func (m *mirror) coordinate() float32 { return float32(m.rng.IntN(4000)-2000) / 16 }

func (m *mirror) pickThing() map[netloop.Ref[thing]]*netloop.Object[thing] {
	keys := order(m.things)
	if len(keys) == 0 {
		return nil
	}
	r := keys[m.rng.IntN(len(keys))]
	return map[netloop.Ref[thing]]*netloop.Object[thing]{r: m.objT[r]}
}

func (m *mirror) pickNote() map[netloop.Ref[note]]*netloop.Object[note] {
	keys := order(m.notes)
	if len(keys) == 0 {
		return nil
	}
	r := keys[m.rng.IntN(len(keys))]
	return map[netloop.Ref[note]]*netloop.Object[note]{r: m.objN[r]}
}

// observer checks what a client is told, change by change.
type observer struct {
	t     *testing.T
	c     *client.Client
	link  netlooptest.Link
	alive map[netloop.Ref[thing]]int32 // the newest N seen
}

func observe(t *testing.T, c *client.Client) *observer {
	o := &observer{t: t, c: c, alive: map[netloop.Ref[thing]]int32{}}
	client.Watch(c, things, client.Watcher[thing]{
		Spawn: func(_ *netloop.Tick, obj *netloop.Object[thing]) {
			if _, twice := o.alive[obj.Ref()]; twice {
				t.Errorf("client %d: a thing spawned twice", c.ID())
			}
			o.alive[obj.Ref()] = obj.State().N
		},
		Change: func(_ *netloop.Tick, obj *netloop.Object[thing], old thing) {
			last, ok := o.alive[obj.Ref()]
			if now := obj.State().N; !ok || old.N != last || now < last {
				t.Errorf("client %d: a thing went from %d (told %d) to %d", c.ID(), last, old.N, now)
			}
			o.alive[obj.Ref()] = obj.State().N
		},
		Despawn: func(_ *netloop.Tick, obj *netloop.Object[thing], _ thing) {
			if _, ok := o.alive[obj.Ref()]; !ok {
				t.Errorf("client %d: a thing despawned without a spawn", c.ID())
			}
			delete(o.alive, obj.Ref())
		},
	})
	return o
}

// compare reports in what a client differs from the mirror.
func (m *mirror) compare(w *netlooptest.World, o *observer) error {
	var err error
	w.Look(o.c, func(t *netloop.Tick) {
		n := 0
		for obj := range things.All(t) {
			n++
			if want, ok := m.things[obj.Ref()]; !ok || want != obj.State() {
				err = fmt.Errorf("thing %+v, want %+v (%v)", obj.State(), want, ok)
			}
		}
		if n != len(m.things) || n != len(o.alive) {
			err = fmt.Errorf("%d things, %d told, want %d", n, len(o.alive), len(m.things))
		}
		n = 0
		for obj := range notes.All(t) {
			n++
			want, got := m.notes[obj.Ref()], obj.State()
			if want.Text != got.Text || !slices.Equal(want.List, got.List) {
				err = fmt.Errorf("note %+v, want %+v", got, want)
			}
		}
		if n != len(m.notes) {
			err = fmt.Errorf("%d notes, want %d", n, len(m.notes))
		}
	})
	return err
}

// TestEveryClientConvergesOverBadLinks plays random worlds over links that lose,
// double and reorder, with clients that come and go, and compares every client
// with a mirror kept by the test once the edits have stopped.
func TestEveryClientConvergesOverBadLinks(t *testing.T) {
	for seed := range seeds(t, 200) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { converge(t, seed) })
	}
}

func converge(t *testing.T, seed uint64) {
	m := newMirror(seed, 1)
	w := open(t, func(*netloop.Room) {}, netlooptest.Seed(seed))
	var observers []*observer
	join := func() {
		l := netlooptest.Link{
			Delay:  time.Duration(m.rng.IntN(100)) * time.Millisecond,
			Jitter: time.Duration(m.rng.IntN(30)) * time.Millisecond,
			Loss:   0.2, Duplicate: 0.1, Reorder: 0.1,
		}
		o := observe(t, w.Join("", nil, l))
		o.link = l
		observers = append(observers, o)
	}
	join()
	for range 200 + m.rng.IntN(200) { // Some worlds are idle for longer than versions are kept.
		w.Step(1)
		if m.rng.IntN(10) > 0 {
			w.Tick(m.change)
		}
		switch m.rng.IntN(60) {
		case 0:
			if len(observers) < 5 {
				join()
			}
		case 1:
			if i := m.rng.IntN(len(observers)); len(observers) > 1 && observers[i].c.State().Phase == client.Playing {
				if err := observers[i].c.Close(); err != nil {
					t.Fatal(err)
				}
				observers = slices.Delete(observers, i, i+1)
			}
		}
	}
	w.Until(600, func() bool { // Who came last may still be shaking hands.
		return !slices.ContainsFunc(observers, func(o *observer) bool { return o.c.State().Phase != client.Playing })
	})
	// Healing: within 1 s + 2 RTT, at most 260 ms each, of the end of the losses.
	for _, o := range observers {
		o.link.Loss = 0
		w.SetLink(o.c, o.link)
	}
	w.Step(60 + 2*16)
	agreed := 0
	for _, o := range observers {
		if err := m.compare(w, o); err != nil {
			t.Errorf("client %d: %v", o.c.ID(), err)
		}
		o.c.Verify(func(err error) {
			if err != nil {
				t.Errorf("client %d: %v", o.c.ID(), err)
			}
			agreed++
		})
	}
	w.Until(600, func() bool { return agreed == len(observers) })
}
