package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

type vessel struct {
	X    int32
	Ammo int32 `net:"read=owner"`
	Team uint8
	Plan struct {
		Text string `net:"max=32"`
		Hint int8   `net:"read=all"`
	} `net:"read=team"`
	Fuel int16 `net:"read=pumps"`
}

var (
	readsSchema = netloop.NewSchema("reads", 1, 0)
	vessels     = netloop.NewClass[vessel](readsSchema, "vessel")
)

// readsGame is a game of vessels, with teams.
type readsGame struct {
	teams [3]*netloop.ClientGroup
	pumps func(*netloop.Client) bool
	asked int
	open  func(r *netloop.Room)
}

func newReadsGame() *readsGame {
	f := &readsGame{pumps: func(*netloop.Client) bool { return false }}
	for i := range f.teams {
		f.teams[i] = netloop.NewClientGroup()
	}
	return f
}

func (*readsGame) Schema() *netloop.Schema { return readsSchema }

func (f *readsGame) Open(r *netloop.Room) error {
	vessels.Reads(r, "team", func(o *netloop.Object[vessel]) netloop.Target {
		f.asked++
		return netloop.InGroup(f.teams[o.State().Team])
	})
	vessels.Reads(r, "pumps", func(*netloop.Object[vessel]) netloop.Target {
		return netloop.Where(func(c *netloop.Client) bool { return f.pumps(c) })
	})
	if f.open != nil {
		f.open(r)
	}
	return nil
}

// shownVessel returns a client's only vessel.
func shownVessel(t *testing.T, w *netlooptest.World, c *client.Client) (v vessel) {
	t.Helper()
	found := 0
	w.Look(c, func(tick *netloop.Tick) {
		for o := range vessels.All(tick) {
			v = o.State()
			found++
		}
	})
	if found != 1 {
		t.Fatalf("the client shows %d vessels", found)
	}
	return v
}

func newVessel(team uint8) vessel {
	v := vessel{X: 1, Ammo: 7, Team: team, Fuel: 9}
	v.Plan.Text, v.Plan.Hint = "north", 2
	return v
}

func wantVessel(t *testing.T, who string, got, want vessel) {
	t.Helper()
	if got != want {
		t.Errorf("%s shows %+v, want %+v", who, got, want)
	}
}

// agreed compares the state of each client with the server's by digest.
func agreed(t *testing.T, w *netlooptest.World, cs ...*client.Client) {
	t.Helper()
	n := 0
	for _, c := range cs {
		c.Verify(func(err error) {
			if err != nil {
				t.Error(err)
			}
			n++
		})
	}
	w.Until(60, func() bool { return n == len(cs) })
}

func TestFieldsAreReadByTheirTagsReaders(t *testing.T) {
	f := newReadsGame()
	w := netlooptest.New(t, f)
	a, b := play(t, w, perfect), play(t, w, perfect)
	var o *netloop.Object[vessel]
	w.Tick(func(tick *netloop.Tick) {
		f.teams[1].Add(tick, server(t, tick, b))
		o = vessels.Spawn(tick, newVessel(1), netloop.OwnedBy(a.ID()))
	})
	w.Step(3)
	owner, mate := newVessel(1), newVessel(1)
	owner.Plan.Text, owner.Fuel = "", 0
	mate.Ammo, mate.Fuel = 0, 0
	wantVessel(t, "the owner", shownVessel(t, w, a), owner)
	wantVessel(t, "the mate", shownVessel(t, w, b), mate)

	// A new team member, a new owner, a changed rule: each takes effect at once.
	var told []vessel
	client.Watch(a, vessels, client.Watcher[vessel]{Change: func(_ *netloop.Tick, o *netloop.Object[vessel], old vessel) {
		told = append(told, old, o.State())
	}})
	w.Tick(func(tick *netloop.Tick) { f.teams[1].Add(tick, server(t, tick, a)) })
	w.Step(3)
	before := owner
	owner.Plan.Text = "north"
	wantVessel(t, "the owner in the team", shownVessel(t, w, a), owner)
	if len(told) != 2 || told[0] != before || told[1] != owner {
		t.Errorf("the watcher got the change %+v", told)
	}
	w.Tick(func(tick *netloop.Tick) { o.SetOwner(tick, b.ID()) })
	w.Step(3)
	owner.Ammo, mate.Ammo = 0, 7
	wantVessel(t, "the former owner", shownVessel(t, w, a), owner)
	wantVessel(t, "the new owner", shownVessel(t, w, b), mate)

	f.pumps = func(c *netloop.Client) bool { return c.ID() == a.ID() }
	w.Step(3)
	wantVessel(t, "before Invalidate", shownVessel(t, w, a), owner)
	w.Tick(func(tick *netloop.Tick) { o.Invalidate(tick) })
	w.Step(3)
	owner.Fuel = 9
	wantVessel(t, "at the pumps", shownVessel(t, w, a), owner)

	w.Tick(func(tick *netloop.Tick) { // A changed field of the vessel runs the rule again.
		o.Edit(tick).Team = 2
		o.Invalidate(tick)
	})
	w.Step(3)
	owner.Team, owner.Plan.Text, mate.Team, mate.Plan.Text = 2, "", 2, ""
	wantVessel(t, "a former mate", shownVessel(t, w, a), owner)
	wantVessel(t, "the owner in another team", shownVessel(t, w, b), mate)
	agreed(t, w, a, b)
}

// TestReadRulesRunOnlyAfterInvalidate: not in each tick, and once for all clients.
func TestReadRulesRunOnlyAfterInvalidate(t *testing.T) {
	f := newReadsGame()
	var o *netloop.Object[vessel]
	f.open = func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { o = vessels.Spawn(tick, newVessel(1)) })
	}
	w := netlooptest.New(t, f)
	a := play(t, w, perfect)
	play(t, w, perfect)
	w.Tick(func(tick *netloop.Tick) { o.Edit(tick).X++ })
	w.Step(5)
	if f.asked != 1 {
		t.Errorf("asked %d times, want once: at the spawn", f.asked)
	}
	for i, do := range []func(*netloop.Tick){
		func(tick *netloop.Tick) { o.Invalidate(tick); o.Invalidate(tick) },
		func(tick *netloop.Tick) { o.SetOwner(tick, a.ID()) },
	} {
		w.Tick(do)
		w.Step(3)
		if f.asked != 2+i {
			t.Errorf("step %d: asked %d times, want %d", i, f.asked, 2+i)
		}
	}
	for team := 1; team <= 2; team++ { // A change of a group uses the existing target.
		w.Tick(func(tick *netloop.Tick) { f.teams[team].Add(tick, server(t, tick, a)) })
		w.Step(3)
	}
	if f.asked != 3 {
		t.Error("the rule ran though only a group changed")
	}
}

// TestReadRulesApplyToJoiners: after OnJoin has run.
func TestReadRulesApplyToJoiners(t *testing.T) {
	f := newReadsGame()
	f.open = func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { vessels.Spawn(tick, newVessel(1)) })
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			if c.Join().Token == "red" {
				f.teams[1].Add(tick, c)
			}
			return nil
		})
	}
	w := netlooptest.New(t, f)
	a, b := w.Join("red", nil, perfect), w.Join("blue", nil, perfect)
	w.Step(10)
	mate := newVessel(1)
	mate.Ammo, mate.Fuel = 0, 0
	wantVessel(t, "red", shownVessel(t, w, a), mate)
	mate.Plan.Text = ""
	wantVessel(t, "blue", shownVessel(t, w, b), mate)
	agreed(t, w, a, b)
}

// TestAPanicOfAReadRuleHidesTheField: the room continues, and no client reads the field.
func TestAPanicOfAReadRuleHidesTheField(t *testing.T) {
	f := newReadsGame()
	f.pumps = func(*netloop.Client) bool { panic("no") }
	f.open = func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			v := newVessel(1)
			v.Team = 99
			vessels.Spawn(tick, v)
		})
	}
	w := netlooptest.New(t, f, netlooptest.AllowPanics())
	a := play(t, w, perfect)
	w.Step(3)
	if v := shownVessel(t, w, a); v.Fuel != 0 || v.Plan.Text != "" || v.X != 1 {
		t.Errorf("shows %+v", v)
	}
}

// TestMasksConvergeOverBadLinks: owners, teams and values change all the time, and finally each
// client has exactly the values that it may read.
func TestMasksConvergeOverBadLinks(t *testing.T) {
	f := newReadsGame()
	w := netlooptest.New(t, f)
	var cs []*client.Client
	for range 3 {
		cs = append(cs, play(t, w, bad))
	}
	var o *netloop.Object[vessel]
	w.Tick(func(tick *netloop.Tick) { o = vessels.Spawn(tick, newVessel(0)) })
	for i := range 200 {
		w.Tick(func(tick *netloop.Tick) {
			v := o.Edit(tick)
			v.X++
			v.Ammo, v.Plan.Text = int32(i), fmt.Sprint("plan ", i)
			if i%7 == 0 {
				o.SetOwner(tick, cs[tick.Rand().IntN(3)].ID())
			}
			g, c := f.teams[0], server(t, tick, cs[tick.Rand().IntN(3)])
			if i%5 == 0 && g.Has(c) {
				g.Remove(tick, c)
			} else if i%5 == 0 {
				g.Add(tick, c)
			}
		})
		w.Step(1)
	}
	agreed(t, w, cs...)
	for _, c := range cs {
		var want vessel
		w.Tick(func(tick *netloop.Tick) {
			want = o.State()
			if want.Fuel = 0; o.Owner() != c.ID() {
				want.Ammo = 0
			}
			if !f.teams[0].Has(server(t, tick, c)) {
				want.Plan.Text = ""
			}
		})
		wantVessel(t, fmt.Sprint("client ", c.ID()), shownVessel(t, w, c), want)
	}
}

func TestInvalidReadRulesAreRefusedByName(t *testing.T) {
	missing := func(*netloop.Room) {}
	both := func(r *netloop.Room) { _ = newReadsGame().Open(r) }
	who := func(*netloop.Object[vessel]) netloop.Target { return netloop.Everyone() }
	other := netloop.NewClass[vessel](netloop.NewSchema("other", 1, 0), "vessel")
	for want, open := range map[string]func(*netloop.Room){
		`class "vessel": field Plan.Text has read=team, and the rule is not defined: call Reads(room, "team", …)`: missing,
		`class "vessel": field Fuel has read=pumps`:                                                               missing,
		`class "vessel": Reads("crew"): no field is tagged read=crew`:                                             func(r *netloop.Room) { both(r); vessels.Reads(r, "crew", who) },
		`class "vessel": Reads("owner"): every class has this rule`:                                               func(r *netloop.Room) { both(r); vessels.Reads(r, "owner", who) },
		`class "vessel": Reads("team"): the rule is defined twice`:                                                func(r *netloop.Room) { both(r); vessels.Reads(r, "team", who) },
		`class "vessel" belongs to schema "other", but the room runs schema "reads"`:                              func(r *netloop.Room) { both(r); other.Reads(r, "team", who) },
	} {
		_, err := netloop.New(netloop.Config{}, game{readsSchema, open})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := netloop.New(netloop.Config{}, game{readsSchema, both}); err != nil {
		t.Error(err)
	}
	// An Open that fails has a reason of its own for a rule that is missing.
	if _, err := netloop.New(netloop.Config{}, closedGame{game{readsSchema, missing}}); err == nil || err.Error() != "netloop: the game's Open: no database" {
		t.Errorf("%v, want only the error of Open", err)
	}
}

// closedGame is a game whose Open fails.
type closedGame struct{ game }

func (closedGame) Open(*netloop.Room) error { return errors.New("no database") }

// TestMessagesRefuseReadTags: messages do not implement the read tag.
func TestMessagesRefuseReadTags(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "field Hint has read=owner, but a message has no read rules") {
			t.Errorf("panic %s", v)
		}
	}()
	netloop.NewRPC[struct {
		Hint int8 `net:"read=owner"`
	}](netloop.NewSchema("other", 1, 0), "hint")
}
