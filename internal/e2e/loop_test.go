package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// trees is a world with systems that record their calls.
type trees struct {
	room *netloop.Room
	ran  []string
}

func (x *trees) system(name string, o ...netloop.SystemOption) *netloop.System {
	return netloop.NewSystem(netloop.Update, name, x.note(name), o...)
}

func (x *trees) note(name string) func(*netloop.Tick) {
	return func(*netloop.Tick) { x.ran = append(x.ran, name) }
}

// tick runs a tick and compares the systems that ran.
func (x *trees) tick(t *testing.T, w interface{ Step(int) }, want string) {
	t.Helper()
	x.ran = nil
	w.Step(1)
	if got := strings.Join(x.ran, " "); got != want {
		t.Errorf("ran %q, want %q", got, want)
	}
}

// newTrees opens a room with the systems a, b and c at Update.
func newTrees(t *testing.T) (*trees, interface{ Step(int) }) {
	x := new(trees)
	w := open(t, func(r *netloop.Room) {
		x.room = r
		for _, name := range []string{"a", "b", "c"} {
			r.On(netloop.Update, name, x.note(name))
		}
	})
	x.tick(t, w, "a b c")
	return x, w
}

func set(t *testing.T, l *netloop.Loop) {
	t.Helper()
	if err := l.Set(); err != nil {
		t.Fatal(err)
	}
}

func TestATreeIsChangedAndSet(t *testing.T) {
	x, w := newTrees(t)
	l := x.room.Loop()
	l.InsertBefore("b", x.system("before-b"))
	l.InsertAfter("a", x.system("after-a"))
	first := x.system("first", netloop.Before("room.timers"))
	l.Append(first, x.system("last", netloop.Priority(netloop.PriorityLast)))
	l.Replace("c", x.system("c2"))
	x.tick(t, w, "a b c") // It has no effect before Set.
	set(t, l)
	x.tick(t, w, "first a after-a before-b b c2 last")
	if l.Set() == nil {
		t.Error("a tree was set twice")
	}
	first.Remove() // The handle works like any other.
	x.tick(t, w, "a after-a before-b b c2 last")

	l = x.room.Loop()
	l.Disable("b", "after-a")
	l.Remove("before-b")
	l.Change("a", netloop.Priority(netloop.PriorityLate))
	set(t, l)
	x.tick(t, w, "c2 a last")
	l = x.room.Loop()
	l.Enable("b")
	set(t, l)
	x.tick(t, w, "b c2 a last")

	set(t, x.room.Loop().Default())
	x.tick(t, w, "")
	w.Step(3) // Messages, state and timers work without these systems.
}

// A system can be inserted before the first system of the tree.
func TestASystemMayComeBeforeAllOthers(t *testing.T) {
	x, w := newTrees(t)
	l := x.room.Loop()
	l.InsertBefore("transport.poll", netloop.NewSystem(netloop.EarlyUpdate, "earliest", x.note("earliest")))
	set(t, l)
	x.tick(t, w, "earliest a b c")
}

func TestANewSystemMayHaveTheNameOfARemovedOne(t *testing.T) {
	x, w := newTrees(t)
	l := x.room.Loop()
	fresh := netloop.NewSystem(netloop.Update, "a", x.note("new a"))
	l.Append(fresh)
	l.Remove("a")
	set(t, l)
	x.tick(t, w, "b c new a")
	fresh.Change(netloop.Priority(netloop.PriorityFirst))
	x.tick(t, w, "new a b c")
	fresh.Remove()
	x.tick(t, w, "b c")
}

func TestGroupsRunTogetherWhileTheirConditionHolds(t *testing.T) {
	x, w := newTrees(t)
	day, asked := true, 0
	l := x.room.Loop()
	ai := l.Group("ai", netloop.After("a"), netloop.Before("b"), netloop.RunIf(func(*netloop.Tick) bool { asked++; return day }))
	ai.Append(x.system("act", netloop.After("think")), x.system("think", netloop.Priority(netloop.PriorityLast)))
	ai.Group("senses", netloop.Before("think")).Append(x.system("look"), x.system("listen", netloop.Every(40*time.Millisecond)))
	l.Append(x.system("whole", netloop.After("ai")), x.system("across", netloop.Before("look"), netloop.Priority(netloop.PriorityLate)))
	set(t, l)
	x.tick(t, w, "a across look listen think act b c whole")
	x.tick(t, w, "a across look think act b c whole")
	if asked != 2 {
		t.Errorf("the condition was asked %d times in 2 ticks", asked)
	}
	day = false
	x.tick(t, w, "a across b c whole")
	day = true

	l = x.room.Loop()
	l.Disable("senses")
	set(t, l)
	x.tick(t, w, "a across think act b c whole")

	// A group moves with all its members, and gets another system later.
	x.room.On(netloop.Update, "dream", x.note("dream"), netloop.InSystemGroup("ai"), netloop.Before("think"))
	x.tick(t, w, "a across dream think act b c whole")
	l = x.room.Loop()
	l.Remove("ai")
	l.Change("whole", netloop.After())
	l.Change("across", netloop.Before())
	set(t, l)
	x.tick(t, w, "a b c whole across")
}

func TestAGroupOfOpenOrdersItsSystems(t *testing.T) {
	x := new(trees)
	w := open(t, func(r *netloop.Room) {
		// The system is registered before its group.
		r.On(netloop.Update, "inside", x.note("inside"), netloop.InSystemGroup("late"))
		r.On(netloop.Update, "outside", x.note("outside"))
		r.Group("late", netloop.Priority(netloop.PriorityLate))
	})
	x.tick(t, w, "outside inside")
}

func TestAnInvalidTreeChangesNothing(t *testing.T) {
	x, w := newTrees(t)
	for what, c := range map[string]struct {
		change func(*netloop.Loop)
		want   []string
	}{
		"unknown anchor":    {func(l *netloop.Loop) { l.Append(x.system("d", netloop.After("nobody"))) }, []string{`"d"`, `"nobody"`}},
		"cycle":             {func(l *netloop.Loop) { l.Change("a", netloop.After("b")); l.Change("b", netloop.After("a")) }, []string{`"a"`, `"b"`}},
		"cycle of groups":   {func(l *netloop.Loop) { l.Group("g", netloop.After("a")).Append(x.system("d", netloop.Before("a"))) }, []string{`"g"`, `"a"`}},
		"twice":             {func(l *netloop.Loop) { l.Append(x.system("a")) }, []string{`"a"`}},
		"missing":           {func(l *netloop.Loop) { l.Remove("b", "nobody") }, []string{`"nobody"`}},
		"anchor removed":    {func(l *netloop.Loop) { l.InsertBefore("b", x.system("d")); l.Remove("b") }, []string{`"d"`, `"b"`}},
		"built-in removed":  {func(l *netloop.Loop) { l.Remove("transport.poll") }, []string{`"transport.poll"`, "nothing from clients"}},
		"built-in off":      {func(l *netloop.Loop) { l.Disable("transport.flush") }, []string{`"transport.flush"`, "nothing would reach"}},
		"built-in other":    {func(l *netloop.Loop) { l.Replace("netvar.snapshot", x.system("netvar.snapshot")) }, []string{`"netvar.snapshot"`}},
		"own group":         {func(l *netloop.Loop) { l.Group("g").Append(x.system("d", netloop.After("g"))) }, []string{`"d"`, `"g"`}},
		"no group":          {func(l *netloop.Loop) { l.Change("a", netloop.InSystemGroup("b")) }, []string{`"a"`, `"b"`}},
		"no group any more": {func(l *netloop.Loop) { l.Change("a", netloop.InSystemGroup("b")); l.Remove("b") }, []string{`"a"`, `"b"`}},
		"group in itself":   {func(l *netloop.Loop) { l.Group("g", netloop.InSystemGroup("g")) }, []string{`"g"`}},
		"no function":       {func(l *netloop.Loop) { l.Append(netloop.NewSystem(netloop.Update, "d", nil)) }, []string{`"d"`}},
		"handle reused":     {func(l *netloop.Loop) { d := x.system("d"); l.Append(d, d) }, []string{`"d"`}},
	} {
		l := x.room.Loop()
		c.change(l)
		err := l.Set()
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one that has %s", what, err, want)
			}
		}
		x.tick(t, w, "a b c")
	}
	l := x.room.Loop()
	x.room.On(netloop.Update, "d", x.note("d"))
	l.Remove("a")
	if err := l.Set(); err == nil || !strings.Contains(err.Error(), "take it again") {
		t.Errorf("an outdated tree: error %v", err)
	}
	x.tick(t, w, "a b c d")
}

func TestATreeSetInATickTakesEffectInTheNext(t *testing.T) {
	x := new(trees)
	removed := 0
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "b", x.note("b"), netloop.OnRemove(func() { removed++ }))
		r.On(netloop.PreUpdate, "a", func(tick *netloop.Tick) {
			if tick.Number() == 1 {
				l := r.Loop()
				l.Replace("b", x.system("b", netloop.Every(0)))
				l.Append(x.system("c"))
				set(t, l)
				if removed != 0 {
					t.Error("removed before the tree takes effect")
				}
			}
		})
	})
	x.tick(t, w, "b")
	x.tick(t, w, "b c")
	if removed != 1 {
		t.Errorf("OnRemove of the replaced system was called %d times", removed)
	}
}

func TestALoopPrintsItsTree(t *testing.T) {
	x, _ := newTrees(t)
	l := x.room.Loop()
	l.Group("ai", netloop.RunIf(func(*netloop.Tick) bool { return true }), netloop.After("a")).
		Append(x.system("think", netloop.Every(100*time.Millisecond, netloop.CatchUp(0)), netloop.Priority(-1)))
	l.Disable("c")
	l.Remove("a", "b")
	l.Change("ai", netloop.After())
	l.Append(netloop.NewSystem(netloop.FixedUpdate, "push", nil, netloop.Stages()))
	const want = `stage and system   place  priority  every                 order
Initialization
  rpc.drain        head   0         -                     -
EarlyUpdate
  transport.poll   head   0         -                     -
  rpc.drain        head   0         -                     -
FixedUpdate
  rpc.drain        head   0         once a tick           -
PreUpdate
  rpc.drain        head   0         -                     -
Update
  rpc.drain        head   0         -                     -
  room.timers      head   0         -                     -
  c                body   0         -                     disabled
  ai / think       body   -1        100ms, up to 5 times  on a condition
PreLateUpdate
  rpc.drain        head   0         -                     -
  netvar.snapshot  tail   0         -                     -
PostLateUpdate
  rpc.drain        head   0         -                     -
  transport.flush  tail   0         -                     -
not placed yet
  push             body   0         -                     -
`
	if got := l.String(); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
	n, ok := l.Find("think")
	if !ok || n.Group != "ai" || n.Period != 100*time.Millisecond || n.CatchUp != netloop.DefaultCatchUp || !slices.Equal(n.Stages, []netloop.Stage{netloop.Update}) {
		t.Errorf("found %+v", n)
	}
}

// A printed tree shows the order in which systems will run, including systems that wait for Set.
func TestATreeIsPrintedInExecutionOrder(t *testing.T) {
	x, w := newTrees(t)
	x.room.Add("asked", func(s netloop.Stage) func(*netloop.Tick) {
		if s != netloop.Update {
			return nil
		}
		return x.note("asked")
	}, netloop.Priority(netloop.PriorityFirst))
	x.tick(t, w, "asked a b c")
	l := x.room.Loop()
	l.Append(x.system("new", netloop.Before("b")))
	l.Move("a", netloop.After("c"))
	l.Append(x.system("lost", netloop.Before("new"), netloop.After("b"))) // A cycle.
	var at, printed []string
	stage := ""
	for _, line := range strings.Split(l.String(), "\n")[1:] {
		if name := strings.Fields(line); len(name) > 0 && line[0] != ' ' {
			stage = line
		} else if len(name) > 0 && slices.Contains([]string{"a", "b", "c", "new", "asked", "lost"}, name[0]) {
			at, printed = append(at, stage), append(printed, name[0])
		}
	}
	if got := strings.Join(printed, " "); got != "asked new b c a lost" || at[0] != "Update" || at[5] != "not placed yet" {
		t.Errorf("printed %s at %q", got, at)
	}
	l.Remove("lost")
	set(t, l)
	x.tick(t, w, "asked new b c a")
}

func TestSystemsAndGroupsCanBeMoved(t *testing.T) {
	x, w := newTrees(t)
	move := func(name, want string, to ...netloop.SystemOption) {
		t.Helper()
		l := x.room.Loop()
		l.Move(name, to...)
		set(t, l)
		x.tick(t, w, want)
	}
	move("c", "c a b", netloop.Before("a"))
	move("c", "a c b", netloop.After("a")) // It drops its old position.
	l := x.room.Loop()
	l.Group("g", netloop.Priority(netloop.PriorityLate)).Append(x.system("d"), x.system("e"))
	set(t, l)
	x.tick(t, w, "a c b d e")
	move("b", "a c d b e", netloop.Before("e"))        // Into the group of e.
	move("a", "d b e a c", netloop.InSystemGroup("g")) // c remains after a.
	move("g", "d b e a c", netloop.Before("c"))
	move("d", "b e a c d", netloop.InSystemGroup(""))
	move("e", "b a c d e", netloop.After("d"), netloop.Priority(netloop.PriorityFirst))

	for what, c := range map[string]struct {
		change func(*netloop.Loop)
		want   string
	}{
		"nobody":   {func(l *netloop.Loop) { l.Move("nobody", netloop.InSystemGroup("g")) }, `"nobody"`},
		"nowhere":  {func(l *netloop.Loop) { l.Move("a", netloop.Before("nobody")) }, `"nobody"`},
		"built in": {func(l *netloop.Loop) { l.Move("transport.poll", netloop.Before("a")) }, `"transport.poll"`},
		"itself":   {func(l *netloop.Loop) { l.Move("g", netloop.InSystemGroup("g")) }, `"g"`},
		"no group": {func(l *netloop.Loop) { l.Move("b", netloop.InSystemGroup("a")) }, `"a"`},
	} {
		l := x.room.Loop()
		c.change(l)
		if err := l.Set(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that has %s", what, err, c.want)
		}
	}
}

func TestANodeReportsHandleStateAndCost(t *testing.T) {
	x := new(trees)
	w := open(t, func(r *netloop.Room) {
		x.room = r
		r.On(netloop.Update, "a", x.note("a"))
		r.On(netloop.Update, "b", x.note("b"))
	}, netlooptest.AllowPanics())
	w.Step(1)
	x.room.On(netloop.PreUpdate, "bad", func(*netloop.Tick) { panic("always") })
	find := func(l *netloop.Loop, name string) netloop.Node {
		n, ok := l.Find(name)
		if !ok {
			t.Fatalf("%s is not found", name)
		}
		return n
	}
	if n := find(x.room.Loop(), "bad"); !n.Pending || n.Costs != nil || n.Panics != 0 {
		t.Errorf("before its first tick: %+v", n)
	}
	w.Step(4)
	l := x.room.Loop()
	n := find(l, "bad")
	if n.Pending || n.Panics != 3 || n.Quarantine == 0 || len(n.Costs) != 1 || n.Costs[0].Stage != netloop.PreUpdate || n.Costs[0].Calls != 3 {
		t.Errorf("in quarantine: %+v", n)
	}
	n.System.Remove()
	if _, ok := x.room.Loop().Find("bad"); ok {
		t.Error("its handle does not remove it")
	}
	if n := find(l, "transport.poll"); n.System != nil || len(n.Costs) == 0 {
		t.Errorf("a built-in system: %+v", n)
	}
	l = x.room.Loop()
	fresh := x.system("fresh")
	l.Append(fresh)
	l.Disable("a")
	if n := find(l, "fresh"); n.System != fresh || !n.Pending {
		t.Errorf("to be added: %+v", n)
	}
	for range l.All() { // A loop may stop early.
		break
	}
	if n := find(l, "a"); !n.Pending || !n.Disabled || n.System.Name() != "a" || find(l, "b").Pending {
		t.Errorf("to be changed: %+v", n)
	}
}

func TestAllStagesListsTheStagesInOrder(t *testing.T) {
	var ran []netloop.Stage
	w := open(t, func(r *netloop.Room) {
		r.Add("all", func(s netloop.Stage) func(*netloop.Tick) {
			return func(*netloop.Tick) { ran = append(ran, s) }
		})
	})
	w.Step(1)
	if !slices.Equal(ran, netloop.AllStages()) {
		t.Errorf("ran %v, AllStages is %v", ran, netloop.AllStages())
	}
}
