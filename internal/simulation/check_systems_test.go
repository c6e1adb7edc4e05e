package simulation

import (
	"fmt"
	"slices"

	"github.com/netloop/netloop"
)

// extras are systems that the game of a room adds, moves, disables and removes while the room runs.
// They check the tree of systems. The documents: the comments of netloop.Loop and
// netloop.Room.Loop.
//
//   - A tree takes effect with the next tick. Then each of its systems runs once in a tick, in the
//     order of the anchors, unless it is disabled.
//   - A tree with an error changes nothing.
type extras struct {
	h        *gameRoom
	made     int
	names    []string // of the tree, in any order
	disabled map[string]bool
	want     []string // that run in this tick, sorted
	ran      []string // in this tick
	sorted   []string // scratch
	fresh    bool     // the tree takes effect in the next tick
}

const (
	extraGroup = "extras"
	mostExtras = 6
)

// openExtras registers the first system.
func (h *gameRoom) openExtras(r *netloop.Room) {
	x := &extras{h: h, disabled: map[string]bool{}}
	h.extras = x
	r.Group(extraGroup)
	name := x.name()
	x.names, x.want = []string{name}, []string{name}
	r.On(netloop.Update, name, x.run(name), netloop.InSystemGroup(extraGroup))
	r.On(netloop.PreLateUpdate, "simulation.extras", func(*netloop.Tick) { x.check() })
}

func (x *extras) name() string {
	x.made++
	return fmt.Sprint("extra ", x.made)
}

func (x *extras) run(name string) func(*netloop.Tick) {
	return func(*netloop.Tick) { x.ran = append(x.ran, name) }
}

// change changes the tree.
func (x *extras) change(o command) {
	l, names, disabled := x.h.room.Loop(), slices.Clone(x.names), map[string]bool{}
	one := names[o.N>>8%uint64(len(names))]
	for name := range x.disabled {
		disabled[name] = true
	}
	fresh, bad := x.name(), false
	s := netloop.NewSystem(netloop.Update, fresh, x.run(fresh))
	i := slices.Index(names, one)
	switch kind := o.N % 8; {
	case kind < 3 && len(names) < mostExtras:
		[]func(){func() { l.InsertBefore(one, s) }, func() { l.InsertAfter(one, s) }, func() { l.Append(s) }}[kind]()
		if kind == 2 {
			l.Move(fresh, netloop.InSystemGroup(extraGroup))
		}
		names = append(names, fresh)
	case kind == 3:
		l.Replace(one, s)
		names[i] = fresh
		delete(disabled, one)
	case kind == 4 && len(names) > 1:
		l.Remove(one)
		names = slices.Delete(names, i, i+1)
		delete(disabled, one)
	case kind == 5:
		l.Move(one, netloop.After(names[o.N>>16%uint64(len(names))]))
	case kind == 6:
		if disabled[one] = !disabled[one]; disabled[one] {
			l.Disable(one)
		} else {
			l.Enable(one)
			delete(disabled, one)
		}
	case kind == 7:
		l.Remove("simulation.nothing")
		bad = true
	}
	err := l.Set()
	switch {
	case bad && err == nil:
		x.h.p.fail("systems", "room %q: a tree without a system that it removes is set", x.h.key.name)
	case err == nil:
		x.names, x.disabled, x.fresh = names, disabled, true
	}
}

// check compares the systems that have run with the tree.
func (x *extras) check() {
	x.sorted = append(x.sorted[:0], x.ran...)
	slices.Sort(x.sorted)
	if !slices.Equal(x.sorted, x.want) {
		x.h.p.fail("systems", "room %q has run the systems %q, want %q", x.h.key.name, x.ran, x.want)
	}
	if x.fresh {
		x.fresh = false
		x.want = slices.DeleteFunc(slices.Sorted(slices.Values(x.names)), func(name string) bool { return x.disabled[name] })
	} else if len(x.ran) > 1 {
		x.ordered()
	}
	x.ran = x.ran[:0]
}

// ordered looks for systems that have run in the wrong order.
func (x *extras) ordered() {
	for node := range x.h.room.Loop().All() {
		if node.Group != extraGroup {
			continue
		}
		at := slices.Index(x.ran, node.Name)
		for _, later := range node.Before {
			if i := slices.Index(x.ran, later); i >= 0 && at > i {
				x.h.p.fail("systems", "room %q has run %q before %q, in %q", x.h.key.name, later, node.Name, x.ran)
			}
		}
		for _, earlier := range node.After {
			if i := slices.Index(x.ran, earlier); i >= 0 && at >= 0 && at < i {
				x.h.p.fail("systems", "room %q has run %q before %q, in %q", x.h.key.name, node.Name, earlier, x.ran)
			}
		}
	}
}
