package netloop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

var loopSchema = netloop.NewSchema("loop", 1, 0)

// loopGame is a game made of one function.
type loopGame func(r *netloop.Room)

func (loopGame) Schema() *netloop.Schema         { return loopSchema }
func (open loopGame) Open(r *netloop.Room) error { open(r); return nil }

// stand runs a room for an example: 60 ticks and fixed steps a second, in virtual time.
type stand struct {
	testing.TB // never called: the world uses only the methods below
	world      *netlooptest.World
	ended      []func()
}

func newStand(g loopGame) *stand {
	x := new(stand)
	x.world = netlooptest.New(x, g, netlooptest.AllowPanics())
	return x
}

// run runs ticks and prints where each begins.
func (x *stand) run(ticks int) {
	for range ticks {
		x.world.Tick(func(t *netloop.Tick) { fmt.Printf("tick %d:", t.Number()+1) })
		x.world.Step(1)
		fmt.Println()
	}
}

// end ends the room.
func (x *stand) end() {
	for i := len(x.ended) - 1; i >= 0; i-- {
		x.ended[i]()
	}
}

func (x *stand) Helper()                   {}
func (x *stand) Failed() bool              { return false }
func (x *stand) Cleanup(fn func())         { x.ended = append(x.ended, fn) }
func (x *stand) Errorf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
func (x *stand) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// A plain script takes part in three stages of every tick: one name, one value, and
// a function for each stage that it asks for.
func Example_plainScript() {
	x := newStand(func(r *netloop.Room) {
		input, position := 0, 0
		r.Add("script", func(s netloop.Stage) func(*netloop.Tick) {
			switch s {
			case netloop.EarlyUpdate:
				return func(*netloop.Tick) { input++ }
			case netloop.FixedUpdate:
				return func(*netloop.Tick) { position += 10 * input }
			case netloop.PostLateUpdate:
				return func(t *netloop.Tick) { fmt.Printf(" in %v it is at %d", t.Stage(), position) }
			default:
				return nil // It has no function in the other stages, which costs nothing.
			}
		})
	})
	defer x.end()
	x.run(3)
	// Output:
	// tick 1: in PostLateUpdate it is at 10
	// tick 2: in PostLateUpdate it is at 30
	// tick 3: in PostLateUpdate it is at 60
}

// The script of a game's object is a system for as long as the object lives, also when the object
// dies in the midst of a stage.
func Example_objectScript() {
	type bomb struct {
		fuse   int
		system *netloop.System
	}
	spawn := func(r *netloop.Room, name string, fuse int) {
		b := &bomb{fuse: fuse}
		b.system = r.On(netloop.Update, name, func(*netloop.Tick) {
			if b.fuse--; b.fuse > 0 {
				fmt.Printf(" %s ticks", name)
				return
			}
			fmt.Printf(" %s goes off", name)
			b.system.Remove()
		}, netloop.OnRemove(func() { fmt.Printf(" (%s is gone)", name) }))
	}
	x := newStand(func(r *netloop.Room) {
		spawn(r, "mine", 2)
		spawn(r, "dud", 100)
		r.On(netloop.PreUpdate, "thrower", func(t *netloop.Tick) {
			if t.Number() == 2 {
				spawn(r, "grenade", 2) // It runs from the next tick on.
			}
		})
	})
	x.run(4)
	fmt.Print("the room ends:")
	x.end()
	// Output:
	// tick 1: mine ticks dud ticks
	// tick 2: mine goes off (mine is gone) dud ticks
	// tick 3: dud ticks grenade ticks
	// tick 4: dud ticks grenade goes off (grenade is gone)
	// the room ends: (dud is gone)
}

// Two systems have a priority and a period each: their order does not depend on the order of
// registration, and each gets the time since its last call.
func Example_prioritisedSystems() {
	const tick = time.Second / 60
	say := func(name string) func(*netloop.Tick) {
		return func(t *netloop.Tick) { fmt.Printf(" %s after %v", name, t.Delta().Round(time.Millisecond)) }
	}
	x := newStand(func(r *netloop.Room) {
		r.On(netloop.Update, "render", say("render"), netloop.Priority(netloop.PriorityLast), netloop.Every(2*tick))
		r.On(netloop.Update, "physics", say("physics"), netloop.Priority(netloop.PriorityFirst), netloop.Every(3*tick))
	})
	defer x.end()
	x.run(7)
	// Output:
	// tick 1: physics after 17ms render after 17ms
	// tick 2:
	// tick 3: render after 33ms
	// tick 4: physics after 50ms
	// tick 5: render after 33ms
	// tick 6:
	// tick 7: physics after 50ms render after 33ms
}

// A hundred subscribers of an update manager are a hundred systems in a group: the group pauses
// them all, and a subscriber that leaves while the others run does not make the manager skip
// another.
func Example_updateManager() {
	calls := 0
	subscribers := make([]*netloop.System, 100)
	var group *netloop.System
	x := newStand(func(r *netloop.Room) {
		group = r.Group("subscribers")
		for i := range subscribers {
			subscribers[i] = r.On(netloop.Update, fmt.Sprint("subscriber ", i), func(t *netloop.Tick) {
				if calls++; t.Number() == 2 && i%2 == 0 {
					subscribers[i].Remove()
				}
			}, netloop.InSystemGroup("subscribers"))
		}
		r.On(netloop.PostLateUpdate, "count", func(*netloop.Tick) {
			fmt.Printf(" %d calls", calls)
			calls = 0
		})
	})
	defer x.end()
	x.run(3)
	group.Change(netloop.Disabled(true))
	x.run(1)
	group.Change(netloop.Disabled(false))
	x.run(1)
	// Output:
	// tick 1: 100 calls
	// tick 2: 100 calls
	// tick 3: 50 calls
	// tick 4: 0 calls
	// tick 5: 50 calls
}

// The tree of a room is taken, changed and Set as a whole, and printed in the order in which its
// systems run.
func Example_loopTree() {
	system := func(name string, o ...netloop.SystemOption) *netloop.System {
		return netloop.NewSystem(netloop.Update, name, func(*netloop.Tick) { fmt.Printf(" %s", name) }, o...)
	}
	var room *netloop.Room
	x := newStand(func(r *netloop.Room) { room = r })
	defer x.end()

	l := room.Loop().Default()
	l.Append(system("physics"), system("scores"))
	l.InsertBefore("physics", system("wind"))
	l.Group("ai", netloop.After("physics")).Append(system("think", netloop.Every(time.Second)), system("act"))
	if err := l.Set(); err != nil {
		fmt.Println(err)
	}
	x.run(1)

	l = room.Loop()
	l.Move("ai", netloop.Before("wind"))
	l.Replace("scores", system("ranking"))
	l.Disable("think")
	if err := l.Set(); err != nil {
		fmt.Println(err)
	}
	x.run(1)
	fmt.Print(room.Loop())
	// Output:
	// tick 1: wind physics scores think act
	// tick 2: act wind physics ranking
	// stage and system   place  priority  every        order
	// Initialization
	//   rpc.drain        head   0         -            -
	// EarlyUpdate
	//   transport.poll   head   0         -            -
	//   rpc.drain        head   0         -            -
	// FixedUpdate
	//   rpc.drain        head   0         once a tick  -
	// PreUpdate
	//   rpc.drain        head   0         -            -
	// Update
	//   rpc.drain        head   0         -            -
	//   room.timers      head   0         -            -
	//   ai / think       body   0         1s           disabled
	//   ai / act         body   0         -            -
	//   wind             body   0         -            before physics
	//   physics          body   0         -            -
	//   ranking          body   0         -            -
	// PreLateUpdate
	//   rpc.drain        head   0         -            -
	//   netvar.snapshot  tail   0         -            -
	// PostLateUpdate
	//   rpc.drain        head   0         -            -
	//   transport.flush  tail   0         -            -
}

// A game changes the tree of its room in Open, and walks over the result.
func ExampleRoom_Loop() {
	_, err := netloop.New(netloop.Config{}, loopGame(func(r *netloop.Room) {
		r.On(netloop.Update, "ships", func(*netloop.Tick) {})
		r.On(netloop.Update, "scores", func(*netloop.Tick) {})

		l := r.Loop()
		l.InsertBefore("ships", netloop.NewSystem(netloop.Update, "wind", func(*netloop.Tick) {}))
		l.Disable("scores")
		ai := l.Group("ai", netloop.After("ships"), netloop.RunIf(func(t *netloop.Tick) bool { return t.Number()%2 == 0 }))
		ai.Append(
			netloop.NewSystem(netloop.Update, "think", func(*netloop.Tick) {}, netloop.Every(100*time.Millisecond)),
			netloop.NewSystem(netloop.Update, "act", func(*netloop.Tick) {}),
		)
		if err := l.Set(); err != nil {
			fmt.Println(err)
		}
		for n := range r.Loop().All() {
			if !n.BuiltIn {
				fmt.Println(strings.TrimPrefix(n.Group+"/"+n.Name, "/"))
			}
		}
	}))
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// wind
	// ships
	// scores
	// ai
	// ai/think
	// ai/act
}
