package netlooptest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

type spot struct{ X, Y int16 }

type vault struct {
	Pos   spot
	Coins int32   `net:"read=owner"`
	Hint  string  `net:"max=32,read=guild"`
	Book  []int32 `net:"max=600,read=guild"` // may be larger than a packet
	Trap  [2]int8 `net:"read=owner"`
}

type guard struct{ Pos spot }

var (
	bankSchema = netloop.NewSchema("bank", 1, 0)
	vaults     = netloop.NewClass[vault](bankSchema, "vault")
	guards     = netloop.NewClass[guard](bankSchema, "guard")
	openVaults = netloop.NewClass[vault](netloop.NewSchema("elsewhere", 1, 0), "vault")
)

// bank is a game of vaults, with a guild.
type bank struct {
	joined func(*netloop.Tick, *netloop.Client) error
	guild  *netloop.ClientGroup
	who    func(o *netloop.Object[vault]) netloop.Target
}

func newBank() *bank {
	b := &bank{guild: netloop.NewClientGroup()}
	b.who = func(*netloop.Object[vault]) netloop.Target { return netloop.InGroup(b.guild) }
	return b
}

func (*bank) Schema() *netloop.Schema { return bankSchema }

func (b *bank) Open(r *netloop.Room) error {
	vaults.Reads(r, "guild", func(o *netloop.Object[vault]) netloop.Target { return b.who(o) })
	if b.joined != nil {
		r.OnJoin(b.joined)
	}
	return nil
}

// permits is the test's own rule for reading.
func (b *bank) permits(_ *netloop.Tick, to *netloop.Client, o *netloop.Object[vault], field string) bool {
	switch field {
	case "Coins", "Trap[0]", "Trap[1]":
		return o.Owner() == to.ID()
	case "Hint", "Book":
		return b.guild.Has(to)
	}
	return strings.HasPrefix(field, "Pos.")
}

func newVault() vault {
	v := vault{Pos: spot{1, 2}, Coins: 50, Hint: "left", Trap: [2]int8{3, 4}}
	for i := range int32(500) {
		v.Book = append(v.Book, 1<<20+i)
	}
	return v
}

// audited joins a client with an audit of its state, and lets it play.
func audited(w *netlooptest.World, b *bank, l netlooptest.Link) *client.Client {
	c := w.Join("", nil, l)
	netlooptest.Audit(w, c, vaults, b.permits)
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
	return c
}

func toggle(b *bank, t *netloop.Tick, c *client.Client) {
	if s, ok := t.Client(c.ID()); !ok {
		panic("the client is not there")
	} else if b.guild.Has(s) {
		b.guild.Remove(t, s)
	} else {
		b.guild.Add(t, s)
	}
}

// TestAuditReportsNoLeakOfCorrectRules: over bad links, with constant changes of owners, members,
// visibility and values, by packets and by the stream.
func TestAuditReportsNoLeakOfCorrectRules(t *testing.T) {
	b := newBank()
	w := netlooptest.New(t, b)
	bad := netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.2, Duplicate: 0.1, Reorder: 0.1}
	var cs []*client.Client
	for range 3 {
		cs = append(cs, audited(w, b, bad))
	}
	var list []*netloop.Object[vault]
	for i := range 300 {
		w.Tick(func(tick *netloop.Tick) {
			rnd := tick.Rand()
			if i%50 == 0 {
				guards.Spawn(tick, guard{Pos: spot{3, 4}}) // It is not audited.
				list = append(list, vaults.Spawn(tick, newVault(), netloop.OwnedBy(cs[0].ID())))
			}
			o := list[rnd.IntN(len(list))]
			v := o.Edit(tick)
			v.Coins, v.Hint, v.Trap[0] = int32(i), fmt.Sprint("hint ", i), int8(i)
			if i%3 == 0 {
				v.Pos.X++
			}
			c := cs[rnd.IntN(3)]
			switch rnd.IntN(12) {
			case 0:
				o.SetOwner(tick, c.ID())
			case 1:
				toggle(b, tick, c)
			case 2:
				o.SetVisible(tick, netloop.Except(c.ID()))
			case 3:
				o.SetVisible(tick, netloop.Everyone())
			}
		})
		w.Step(1)
	}
	agreed := 0
	for _, c := range cs {
		c.Verify(func(err error) {
			if err != nil {
				t.Error(err)
			}
			agreed++
		})
	}
	w.Until(300, func() bool { return agreed == len(cs) })
	read := 0
	for _, c := range cs {
		w.Look(c, func(tick *netloop.Tick) {
			for o := range vaults.All(tick) {
				read = max(read, len(o.State().Book))
			}
		})
	}
	if read != 500 {
		t.Errorf("the longest book has %d entries, want 500: more than a packet holds", read)
	}
}

// TestAuditReportsLeaksOfARule: by class, object, field and client, a bounded number of times.
func TestAuditReportsLeaksOfARule(t *testing.T) {
	b := newBank()
	b.who = func(*netloop.Object[vault]) netloop.Target { return netloop.Everyone() }
	l := &failureRecorder{TB: t}
	w := netlooptest.New(l, b)
	audited(w, b, netlooptest.Link{Loss: 0.5}) // Lost packets count as sent.
	var o *netloop.Object[vault]
	w.Tick(func(tick *netloop.Tick) { o = vaults.Spawn(tick, vault{}) })
	w.Step(1)
	var at uint64
	w.Tick(func(tick *netloop.Tick) { at = tick.Number() })
	if len(l.failures) < 2 {
		t.Fatalf("heard %q", l.failures)
	}
	for i, field := range []string{"Hint", "Book"} {
		want := fmt.Sprintf("netlooptest: Audit: at tick %d client 1 of the world is sent field %s of vault %v, which it may not read", at, field, o.Ref())
		if l.failures[i] != want {
			t.Errorf("%s, want %s", l.failures[i], want)
		}
	}
	for range 30 {
		w.Tick(func(tick *netloop.Tick) { o.Edit(tick).Hint += "x" })
		w.Step(1)
	}
	if len(l.failures) != 10 {
		t.Errorf("%d reports, want 10", len(l.failures))
	}
}

// TestAuditKnowsAJoiningClient: the client owns an object from the tick of its join on, and over
// a slow link it learns of its join later.
func TestAuditKnowsAJoiningClient(t *testing.T) {
	b := newBank()
	b.joined = func(tick *netloop.Tick, c *netloop.Client) error {
		vaults.Spawn(tick, vault{Coins: 7, Trap: [2]int8{1, 2}}, netloop.OwnedBy(c.ID()))
		return nil
	}
	l := &failureRecorder{TB: t}
	w := netlooptest.New(l, b)
	for range 2 {
		audited(w, b, netlooptest.Link{Delay: 100 * time.Millisecond})
	}
	l.want(t)
}

// TestAuditReportsAForgottenInvalidate: a rule that the server did not evaluate again, and an
// object that should have been hidden.
func TestAuditReportsAForgottenInvalidate(t *testing.T) {
	for name, forget := range map[string]bool{"forgotten": true, "not forgotten": false} {
		member := true
		b := newBank()
		b.who = func(*netloop.Object[vault]) netloop.Target {
			return netloop.Where(func(*netloop.Client) bool { return member })
		}
		l := &failureRecorder{TB: t}
		w := netlooptest.New(l, b)
		c := w.Join("", nil, netlooptest.Link{})
		netlooptest.Audit(w, c, vaults, func(_ *netloop.Tick, _ *netloop.Client, _ *netloop.Object[vault], field string) bool {
			return field != "Coins" && field != "Trap[0]" && field != "Trap[1]" && (member || field != "Hint" && field != "Book")
		})
		w.Until(60, func() bool { return c.State().Phase == client.Playing })
		var o *netloop.Object[vault]
		w.Tick(func(tick *netloop.Tick) { o = vaults.Spawn(tick, newVault()) })
		w.Step(10)
		l.want(t)
		w.Tick(func(tick *netloop.Tick) {
			member = false
			o.Edit(tick).Hint = "right"
			if !forget {
				o.Invalidate(tick)
			}
		})
		w.Step(3)
		if forget != (len(l.failures) > 0) {
			t.Errorf("%s: heard %q", name, l.failures)
		}
	}
}

func TestAnAuditWithMissingDataFailsTheTest(t *testing.T) {
	b := newBank()
	for want, misuse := range map[string]func(w *netlooptest.World){
		"Audit belongs right after Join": func(w *netlooptest.World) {
			c := w.Join("", nil, netlooptest.Link{})
			w.Step(5)
			netlooptest.Audit(w, c, vaults, b.permits)
		},
		`class "vault" is not of the server's schema`: func(w *netlooptest.World) {
			c := w.Join("", nil, netlooptest.Link{})
			netlooptest.Audit(w, c, openVaults, b.permits)
		},
	} {
		l := &failureRecorder{TB: t}
		w := netlooptest.New(l, b)
		func() {
			defer func() { _ = recover() }()
			misuse(w)
		}()
		if len(l.failures) != 1 || !strings.Contains(l.failures[0], want) {
			t.Errorf("%q, want %s", l.failures, want)
		}
	}
}

// An audit follows its client over all connections and to a restarted server: permitted fields
// are no leak there, and others are.
func TestAuditFollowsAClient(t *testing.T) {
	b := newBank()
	l := &failureRecorder{TB: t}
	w := netlooptest.New(l, b)
	c := w.Join("", nil, netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.1})
	var not netloop.ClientID // no client with this id may be audited
	netlooptest.Audit(w, c, vaults, func(tick *netloop.Tick, to *netloop.Client, o *netloop.Object[vault], field string) bool {
		if to.ID() == not {
			t.Fatal("it is called for another client")
		}
		return b.permits(tick, to, o, field)
	})
	playing := func() bool { return c.State().Phase == client.Playing }
	w.Until(600, playing)
	edits := func(owner netloop.ClientID) {
		var o *netloop.Object[vault]
		w.Tick(func(tick *netloop.Tick) { o = vaults.Spawn(tick, newVault(), netloop.OwnedBy(owner)) })
		for i := range 150 {
			w.Tick(func(tick *netloop.Tick) { o.Edit(tick).Coins = int32(i) })
			if i%50 == 40 {
				w.Break(c)
			}
			w.Step(1)
		}
		w.Until(600, playing)
		w.Step(60)
	}
	edits(c.ID())
	if s := c.Stats(); s.Drops != 3 || s.Resumes != 3 || s.Malformed > 0 {
		t.Fatalf("%+v", s)
	}
	// There another, nearer client gets the old id of this one.
	other, was := w.Join("", nil, netlooptest.Link{}), c.ID()
	w.Step(60)
	not = was
	b = newBank()
	b.joined = func(tick *netloop.Tick, to *netloop.Client) error {
		vaults.Spawn(tick, newVault(), netloop.OwnedBy(to.ID()))
		return nil
	}
	w.Restart(b)
	w.Until(600, func() bool { return !playing() })
	w.Until(600, playing)
	w.Step(60)
	if other.ID() != was || c.ID() == was {
		t.Fatalf("the clients are %d and %d, and were %d and another", other.ID(), c.ID(), was)
	}
	edits(c.ID())
	l.want(t)
	b.who = func(*netloop.Object[vault]) netloop.Target { return netloop.Everyone() }
	w.Tick(func(tick *netloop.Tick) { vaults.Spawn(tick, vault{Hint: "everybody hears it"}) })
	w.Step(1)
	if said := strings.Join(l.failures, "\n"); !strings.Contains(said, "is sent field Hint of vault 3.1, which it may not read") {
		t.Errorf("a leak is reported as %q", said)
	}
	l.failures = nil
}
