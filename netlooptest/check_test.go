package netlooptest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

type crate struct {
	Weight float32 `net:"quant=1/4,range=0:100"`
	Goods  []int16 `net:"max=4"`
}

var (
	yard   = netloop.NewSchema("yard", 1, 0)
	crates = netloop.NewClass[crate](yard, "crate")
)

type game struct{}

// hooked is a game with a target that panics.
type hooked struct{ game }

func (hooked) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) {
		crates.Spawn(t, crate{}, netloop.VisibleTo(netloop.Where(func(*netloop.Client) bool { panic("ouch") })))
	})
	return nil
}

func (game) Schema() *netloop.Schema    { return yard }
func (game) Open(r *netloop.Room) error { return nil }

// failureRecorder is a test that records its failures instead of failing.
type failureRecorder struct {
	testing.TB
	failures []string
}

func (l *failureRecorder) Errorf(format string, a ...any) {
	l.failures = append(l.failures, fmt.Sprintf(format, a...))
}

func (l *failureRecorder) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.failures, want) {
		t.Errorf("the test failed with %q, want %q", l.failures, want)
	}
	l.failures = nil
}

const remedy = " was changed without Edit: change state only through the pointer that Edit returns, in the call that asked for it, and copy a slice or map before you keep it"

// TestAFieldChangedWithoutEditFailsTheTest: named by class, object and field, once for many
// ticks.
func TestAFieldChangedWithoutEditFailsTheTest(t *testing.T) {
	l := &failureRecorder{TB: t}
	w := netlooptest.New(l, game{})
	var o *netloop.Object[crate]
	var kept *crate
	w.Tick(func(tick *netloop.Tick) {
		o = crates.Spawn(tick, crate{Goods: []int16{1, 2}})
		kept = o.Edit(tick)
		kept.Weight = 1
	})
	w.Step(3)
	l.want(t)
	for range 5 {
		kept.Weight++
		w.Step(1)
	}
	l.want(t, "netlooptest: field Weight of crate 0.1"+remedy)
	old := o.State() // shares its slice with the object
	old.Goods[0] = 9
	w.Step(1)
	l.want(t, "netlooptest: field Goods of crate 0.1"+remedy)
}

func TestAValueThatDoesNotFitFailsTheTest(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		l := &failureRecorder{TB: t}
		var options []netlooptest.Option
		if allowed {
			options = append(options, netlooptest.AllowMisfits())
		}
		w := netlooptest.New(l, game{}, options...)
		c := w.Join("", nil, netlooptest.Link{})
		var o *netloop.Object[crate]
		w.Step(5)
		w.Tick(func(tick *netloop.Tick) { o = crates.Spawn(tick, crate{Weight: 7}) })
		w.Step(3)
		w.Tick(func(tick *netloop.Tick) { o.Edit(tick).Weight = 101 })
		w.Step(3)
		want := float32(100)
		if !allowed {
			want = 7
			l.want(t, "netlooptest: field Weight of crate 0.1 has a value that does not fit float32 quant=1/4 steps=0:400, and is refused: clients keep the last one that did")
		}
		l.want(t)
		w.Look(c, func(tick *netloop.Tick) {
			for got := range crates.All(tick) {
				if got.State().Weight != want {
					t.Errorf("allowed %v: the client has %v, want %v", allowed, got.State().Weight, want)
				}
			}
		})
	}
}

// TestAHookThatPanicsFailsTheTest unless that is allowed.
func TestAHookThatPanicsFailsTheTest(t *testing.T) {
	for _, options := range [][]netlooptest.Option{nil, {netlooptest.AllowPanics()}} {
		l := &failureRecorder{TB: t}
		w := netlooptest.New(l, hooked{}, options...)
		w.Join("", nil, netlooptest.Link{})
		w.Step(5)
		if options == nil {
			l.want(t, "netlooptest: a hook panicked")
		}
		l.want(t)
	}
}

// A server or a client with an invalid configuration fails the test.
func TestAnInvalidConfigurationFailsTheTest(t *testing.T) {
	for name, begin := range map[string]func(l *failureRecorder){
		"server": func(l *failureRecorder) {
			netlooptest.New(l, game{}, netlooptest.Room(netloop.RoomSpec{MaxClients: -1}))
		},
		"client": func(l *failureRecorder) {
			netlooptest.New(l, game{}).JoinAs(client.Config{Schema: game{}.Schema(), LostAfter: -1}, netlooptest.Link{})
		},
	} {
		l := &failureRecorder{TB: t}
		func() {
			defer func() { _ = recover() }() // The test would end here.
			begin(l)
		}()
		if len(l.failures) != 1 || !strings.HasPrefix(l.failures[0], "netlooptest: ") {
			t.Errorf("%s: the test fails with %q", name, l.failures)
		}
	}
}

// A room of the spec Sleep runs no ticks while it has no work.
func TestAnIdleRoomSleeps(t *testing.T) {
	for _, sleeps := range []bool{false, true} {
		ticks := 0
		w := netlooptest.New(t, counting{&ticks}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(20), Sleep: sleeps}))
		w.Advance(10 * time.Second)
		if sleeps == (ticks > 40) {
			t.Errorf("sleeps: %v, and %d ticks have run in 10 s", sleeps, ticks)
		}
	}
}

// counting is a game that counts ticks.
type counting struct{ ticks *int }

func (g counting) Schema() *netloop.Schema { return game{}.Schema() }

func (g counting) Open(r *netloop.Room) error {
	r.On(netloop.Update, "test.count", func(*netloop.Tick) { *g.ticks++ })
	return nil
}

// The number of a room does not depend on the wall clock, which no seed repeats.
func TestARoomHasTheSameNumberInEachWorld(t *testing.T) {
	for range 2 {
		netlooptest.New(t, game{}).Tick(func(tick *netloop.Tick) {
			if n := tick.Room().Incarnation(); n != 1 {
				t.Errorf("its number is %d, want 1", n)
			}
		})
	}
}

// A room has the spec that the option gives.
func TestARoomHasItsSpec(t *testing.T) {
	w := netlooptest.New(t, game{}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(20)}))
	w.Step(20)
	if now := w.Now(); now < time.Second-50*time.Millisecond || now > time.Second+50*time.Millisecond {
		t.Errorf("20 ticks of a room of 20 Hz take %v", now)
	}
}
