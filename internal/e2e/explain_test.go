package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A game in which each reason occurs: a dial has a field of each kind, a lamp has low weight and
// is shed under overload, and a chart exceeds a packet.
var (
	explainSchema = netloop.NewSchema("explain", 1, 0)
	dials         = netloop.NewClass[dialState](explainSchema, "dial")
	lamps         = netloop.NewClass[lamp](explainSchema, "lamp", netloop.Weight(0.25), netloop.MinRate(0.01))
	charts        = netloop.NewClass[chart](explainSchema, "chart")
)

type dialState struct {
	Pos  struct{ X, Y int32 }
	Heat float32 `net:"quant=1/8,threshold=10"`
	Mode int32   `net:"interval=1s"`
	Key  int32   `net:"read=owner"`
	Pad  [100]byte
}

type lamp struct{ On int32 }

type chart struct {
	Cells []line `net:"max=1200"`
}

// asker plays with one client and explains its fields.
type asker struct {
	*netlooptest.World
	t    *testing.T
	c    *client.Client
	dial *netloop.Object[dialState]
}

func newAsker(t *testing.T, link netlooptest.Link, o ...netlooptest.Option) *asker {
	t.Helper()
	return askerOf(t, game{schema: explainSchema}, link, o...)
}

func askerOf(t *testing.T, g netloop.Game, link netlooptest.Link, o ...netlooptest.Option) *asker {
	t.Helper()
	a := &asker{t: t, World: netlooptest.New(t, g, o...)}
	a.Tick(func(tick *netloop.Tick) { a.dial = dials.Spawn(tick, dialState{}) })
	a.c = a.Join("", nil, link)
	a.Until(600, func() bool { return a.c.State().Phase == client.Playing })
	a.Step(30) // all packets are acknowledged
	return a
}

func (a *asker) change(fn func(tick *netloop.Tick, d *dialState)) {
	a.Tick(func(tick *netloop.Tick) { fn(tick, a.dial.Edit(tick)) })
}

func (a *asker) move() { a.change(func(_ *netloop.Tick, d *dialState) { d.Pos.X++ }) }

// ask explains a field of the dial.
func (a *asker) ask(field string) netloop.Explanation {
	a.t.Helper()
	return explain(a, a.dial, field)
}

func explain[S any](a *asker, o *netloop.Object[S], field string) (x netloop.Explanation) {
	a.t.Helper()
	a.Tick(func(tick *netloop.Tick) {
		c, ok := tick.Client(a.c.ID())
		if !ok {
			a.t.Fatal("the client has left")
		}
		var err error
		if x, err = o.Explain(tick, c, field); err != nil {
			a.t.Fatal(err)
		}
	})
	return x
}

// want fails unless the dial's field has this reason.
func (a *asker) want(field string, r netloop.Reason) {
	a.t.Helper()
	if x := a.ask(field); x.Reason != r {
		a.t.Errorf("want %v: %v", r, x)
	}
}

var far = netlooptest.Link{Delay: 100 * time.Millisecond}

func TestExplainNotEditedUnchangedAndAcknowledged(t *testing.T) {
	a := newAsker(t, perfect)
	a.want("Pos.X", netloop.ReasonNotEdited)
	a.change(func(*netloop.Tick, *dialState) {})
	a.Step(1)
	a.want("Pos.X", netloop.ReasonUnchanged)
	a.Step(1)
	a.want("Pos.X", netloop.ReasonNotEdited)
	a.move()
	a.Step(5)
	a.want("Pos.X", netloop.ReasonAcknowledged)
	a.want("Pos.Y", netloop.ReasonNotEdited)
}

func TestExplainSentAndInFlight(t *testing.T) {
	a := newAsker(t, far)
	a.move()
	a.Step(1)
	x := a.ask("Pos.X")
	if x.Reason != netloop.ReasonSent || x.Changed != x.Tick || x.Sent != x.Tick || x.Version != x.Tick || x.Copies != 1 || len(x.Packets) != 1 ||
		x.Baseline == 0 || x.Baseline >= x.Tick || x.Visible == 0 || x.Class != "dial" || x.Client != a.c.ID() || x.Object != a.dial.Ref().String() {
		t.Errorf("%+v", x)
	}
	a.Step(3) // the second copy, and no more
	y := a.ask("Pos.X")
	if y.Reason != netloop.ReasonInFlight || y.Changed != x.Changed || y.Copies != 2 || len(y.Packets) != 2 || y.Packets[0] != x.Packets[0] {
		t.Errorf("%+v after %+v", y, x)
	}
	if s := y.String(); strings.Contains(s, "held back") || !strings.Contains(s, "neither acknowledged nor lost") || !strings.Contains(s, "Pos.X") {
		t.Error(s)
	}
	a.Step(20)
	if z := a.ask("Pos.X"); z.Reason != netloop.ReasonAcknowledged || z.Baseline != x.Changed || len(z.Packets) != 0 {
		t.Errorf("%+v", z)
	}
}

func TestExplainHiddenNewAndDespawned(t *testing.T) {
	a := newAsker(t, perfect)
	a.Tick(func(tick *netloop.Tick) { a.dial.SetVisible(tick, netloop.To()) })
	a.Step(1)
	a.want("Pos.X", netloop.ReasonHidden)
	var o *netloop.Object[dialState]
	a.Tick(func(tick *netloop.Tick) { o = dials.Spawn(tick, dialState{}) })
	if x := explain(a, o, "Pos.X"); x.Reason != netloop.ReasonNew {
		t.Error(x)
	}
	a.Step(1)
	a.Tick(func(tick *netloop.Tick) { o.Despawn(tick) })
	if x := explain(a, o, "Pos.X"); x.Reason != netloop.ReasonDespawned {
		t.Error(x)
	}
}

func TestExplainNoPermission(t *testing.T) {
	a := newAsker(t, perfect)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Key++ })
	a.Step(1)
	a.want("Key", netloop.ReasonNoPermission)
	a.want("Pos.X", netloop.ReasonUnchanged)
	a.Tick(func(tick *netloop.Tick) { a.dial.SetOwner(tick, a.c.ID()) })
	a.Step(1)
	a.want("Key", netloop.ReasonSent)
	a.want("(owner)", netloop.ReasonSent)
}

func TestExplainThresholdAndInterval(t *testing.T) {
	a := newAsker(t, perfect)
	a.Step(60)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Heat, d.Mode = 3, 1 })
	a.Step(1)
	a.want("Heat", netloop.ReasonThreshold)
	a.want("Mode", netloop.ReasonSent)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Mode = 2 })
	a.Step(10)
	x := a.ask("Mode")
	if x.Reason != netloop.ReasonInterval || x.Until != x.Changed+60 {
		t.Errorf("%+v", x)
	}
	a.Step(int(x.Until - x.Tick))
	a.want("Mode", netloop.ReasonSent)
}

// An object changes again while a version is in flight: the explanation still has that version.
func TestExplainReportsTheVersionInFlight(t *testing.T) {
	a := newAsker(t, far, netlooptest.Room(netloop.RoomSpec{SendEvery: 3}))
	for n := range 9 {
		a.move()
		a.Step(1)
		x := a.ask("Pos.X")
		if n < 3 { // the first snapshot with the change
			continue
		}
		if x.Sent != x.Tick-x.Tick%3 || x.Version > x.Sent || x.Copies != 1 || len(x.Packets) != 1 {
			t.Error(x)
		}
	}
}

// The name of a struct selects its most recently changed field.
func TestExplainAcceptsStructNamesAndTheEmptyName(t *testing.T) {
	a := newAsker(t, perfect)
	a.Step(60)
	if x := a.ask(""); x.Field == "(owner)" {
		t.Error("of fields that changed together the owner is explained")
	}
	a.change(func(_ *netloop.Tick, d *dialState) { d.Pos.Y++ })
	a.Step(2)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Mode++ })
	a.Step(2)
	for field, want := range map[string]string{"Pos": "Pos.Y", "": "Mode", "Pos.X": "Pos.X", "(owner)": "(owner)"} {
		if x := a.ask(field); x.Field != want {
			t.Errorf("%q is explained as %q", field, x.Field)
		}
	}
	a.Tick(func(tick *netloop.Tick) {
		c, _ := tick.Client(a.c.ID())
		for _, field := range []string{"Po", "Pos.", "pos", "Pos.X.Y"} {
			if _, err := a.dial.Explain(tick, c, field); err == nil || !strings.Contains(err.Error(), "Pos.X, Pos.Y") {
				t.Errorf("%q: %v", field, err)
			}
		}
	})
	var was *netloop.Client
	refused := func(why string) {
		t.Helper()
		a.Tick(func(tick *netloop.Tick) {
			if _, err := a.dial.Explain(tick, was, "Pos"); err == nil || !strings.Contains(err.Error(), why) {
				t.Error(err)
			}
		})
	}
	a.Tick(func(tick *netloop.Tick) { was, _ = tick.Client(a.c.ID()); was.Kick(tick, netloop.CodeKicked, "") })
	refused("has lost its connection, or is about to")
	a.Step(10)
	refused("is not in the room")
}

// Explain has no side effects: the sent bytes are equal.
func TestExplainChangesNothing(t *testing.T) {
	play := func(ask bool) (sent int) {
		a := newAsker(t, bad)
		for range 100 {
			a.move()
			a.Step(1)
			if ask {
				a.ask("")
				a.ask("Heat")
			}
		}
		return int(a.c.Stats().Packets)
	}
	if without, with := play(false), play(true); without != with {
		t.Errorf("%d packets without Explain, %d with it", without, with)
	}
}

// Every reason has its own name.
func TestReasonsHaveNames(t *testing.T) {
	var names []string
	for r := netloop.ReasonDespawned; r <= netloop.ReasonNext; r++ {
		names = append(names, r.String())
	}
	slices.Sort(names)
	if slices.Contains(names, "") || slices.Contains(names, "unknown") || len(slices.Compact(names)) != int(netloop.ReasonNext) {
		t.Error(names)
	}
	if s := netloop.Reason(0).String() + netloop.Reason(200).String(); s != "unknownunknown" {
		t.Error(s)
	}
}
