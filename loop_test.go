package netloop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
)

// trees is a world whose systems write down that they ran.
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

// tick runs a tick and compares who ran.
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
	l.Append(first, x.system("last", netloop.Priority(netloop.Last)))
	l.Replace("c", x.system("c2"))
	x.tick(t, w, "a b c") // It is a value until it is Set.
	set(t, l)
	x.tick(t, w, "first a after-a before-b b c2 last")
	if l.Set() == nil {
		t.Error("a tree was set twice")
	}
	first.Remove() // The handle is one like any other.
	x.tick(t, w, "a after-a before-b b c2 last")

	l = x.room.Loop()
	l.Disable("b", "after-a")
	l.Remove("before-b")
	l.Change("a", netloop.Priority(netloop.Late))
	set(t, l)
	x.tick(t, w, "c2 a last")
	l = x.room.Loop()
	l.Enable("b")
	set(t, l)
	x.tick(t, w, "b c2 a last")

	set(t, x.room.Loop().Default())
	x.tick(t, w, "")
	w.Step(3) // Messages, state and timers go on without them.
}

func TestGroupsRunAsOneWhileTheirConditionHolds(t *testing.T) {
	x, w := newTrees(t)
	day, asked := true, 0
	l := x.room.Loop()
	ai := l.Group("ai", netloop.After("a"), netloop.Before("b"), netloop.RunIf(func(*netloop.Tick) bool { asked++; return day }))
	ai.Append(x.system("act", netloop.After("think")), x.system("think", netloop.Priority(netloop.Last)))
	ai.Group("senses", netloop.Before("think")).Append(x.system("look"), x.system("listen", netloop.Every(40*time.Millisecond)))
	l.Append(x.system("whole", netloop.After("ai")), x.system("across", netloop.Before("look"), netloop.Priority(netloop.Late)))
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

	// A group goes with all that is in it, and a system may come in later.
	x.room.On(netloop.Update, "dream", x.note("dream"), netloop.In("ai"), netloop.Before("think"))
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
		r.On(netloop.Update, "inside", x.note("inside"), netloop.In("late")) // Its group follows.
		r.On(netloop.Update, "outside", x.note("outside"))
		r.Group("late", netloop.Priority(netloop.Late))
	})
	x.tick(t, w, "outside inside")
}

func TestATreeThatIsWrongChangesNothing(t *testing.T) {
	x, w := newTrees(t)
	for what, c := range map[string]struct {
		change func(*netloop.Loop)
		want   []string
	}{
		"unknown anchor":   {func(l *netloop.Loop) { l.Append(x.system("d", netloop.After("nobody"))) }, []string{`"d"`, `"nobody"`}},
		"cycle":            {func(l *netloop.Loop) { l.Change("a", netloop.After("b")); l.Change("b", netloop.After("a")) }, []string{`"a"`, `"b"`}},
		"cycle of groups":  {func(l *netloop.Loop) { l.Group("g", netloop.After("a")).Append(x.system("d", netloop.Before("a"))) }, []string{`"g"`, `"a"`}},
		"twice":            {func(l *netloop.Loop) { l.Append(x.system("a")) }, []string{`"a"`}},
		"missing":          {func(l *netloop.Loop) { l.Remove("b", "nobody") }, []string{`"nobody"`}},
		"anchor removed":   {func(l *netloop.Loop) { l.InsertBefore("b", x.system("d")); l.Remove("b") }, []string{`"d"`, `"b"`}},
		"built-in removed": {func(l *netloop.Loop) { l.Remove("transport.poll") }, []string{`"transport.poll"`, "nothing from clients"}},
		"built-in off":     {func(l *netloop.Loop) { l.Disable("transport.flush") }, []string{`"transport.flush"`, "nothing would reach"}},
		"built-in other":   {func(l *netloop.Loop) { l.Replace("netvar.snapshot", x.system("netvar.snapshot")) }, []string{`"netvar.snapshot"`}},
		"own group":        {func(l *netloop.Loop) { l.Group("g").Append(x.system("d", netloop.After("g"))) }, []string{`"d"`, `"g"`}},
		"no group":         {func(l *netloop.Loop) { l.Change("a", netloop.In("b")) }, []string{`"a"`, `"b"`}},
		"group in itself":  {func(l *netloop.Loop) { l.Group("g", netloop.In("g")) }, []string{`"g"`}},
		"no function":      {func(l *netloop.Loop) { l.Append(netloop.NewSystem(netloop.Update, "d", nil)) }, []string{`"d"`}},
		"handle reused":    {func(l *netloop.Loop) { d := x.system("d"); l.Append(d, d) }, []string{`"d"`}},
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
	const want = `transport.poll  built in
rpc.drain  built in
room.timers  built in
netvar.snapshot  built in
transport.flush  built in
c  at [Update]  disabled
ai  group  on a condition
  think  at [Update]  priority -1  every 100ms  up to 5 times
`
	if got := l.String(); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
	n, ok := l.Find("think")
	if !ok || n.Group != "ai" || n.Period != 100*time.Millisecond || n.CatchUp != netloop.DefaultCatchUp || !slices.Equal(n.Stages, []netloop.Stage{netloop.Update}) {
		t.Errorf("found %+v", n)
	}
}

func TestAClientHasALoopToo(t *testing.T) {
	x := new(trees)
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	c.On(0, "a", x.note("a"))
	l := c.Loop()
	l.InsertBefore("a", x.system("b"))
	set(t, l)
	x.tick(t, w, "b a")
	l = c.Loop()
	l.Disable("transport.poll")
	if err := l.Set(); err == nil || !strings.Contains(err.Error(), "nothing from the server") {
		t.Errorf("error %v", err)
	}
}

func TestClosingAClientRemovesItsSystems(t *testing.T) {
	x := new(trees)
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	var told []string
	for _, name := range []string{"a", "b"} {
		c.On(0, name, x.note(name), netloop.OnRemove(func() { told = append(told, name) }))
	}
	x.tick(t, w, "a b")
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		x.tick(t, w, "")
	}
	if !slices.Equal(told, []string{"a", "b"}) {
		t.Errorf("told %v", told)
	}
}

func ExampleRoom_Loop() {
	_, err := netloop.New(netloop.Config{}, script(func(r *netloop.Room) {
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
