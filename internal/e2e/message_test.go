package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

func TestMessagesArriveInOrderExactlyOnce(t *testing.T) {
	var got []uint64
	w := open(t, func(r *netloop.Room) {
		echo.Handle(r, func(tick *netloop.Tick, from *netloop.Client, m text) error {
			got = append(got, m.N)
			echo.Send(tick, netloop.Everyone(), m)
			return nil
		})
	})
	c := play(t, w, bad)
	var back []uint64
	client.Handle(c, echo, func(_ *netloop.Tick, m text) { back = append(back, m.N) })
	var want []uint64
	for n := range uint64(300) {
		client.Send(c, echo, text{N: n})
		want = append(want, n)
		w.Step(1)
	}
	w.Step(300)
	if !slices.Equal(got, want) {
		t.Errorf("the server got %d of %d: %v", len(got), len(want), got)
	}
	if !slices.Equal(back, want) {
		t.Errorf("the client got %d of %d back: %v", len(back), len(want), back)
	}
}

func TestUnreliableMessagesAreNeverDuplicated(t *testing.T) {
	seen := map[uint64]int{}
	w := open(t, func(r *netloop.Room) {
		loose.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m text) error { seen[m.N]++; return nil })
	})
	c := play(t, w, bad)
	for n := range uint64(600) {
		client.Send(c, loose, text{N: n})
		w.Step(1)
	}
	w.Step(60)
	if len(seen) < 400 || len(seen) == 600 {
		t.Errorf("of 600 messages over a link that loses a fifth, %d arrived", len(seen))
	}
	for n, times := range seen {
		if times != 1 {
			t.Errorf("message %d ran %d times", n, times)
		}
	}
}

func TestTargetsSelectTheReceivers(t *testing.T) {
	var send func(tick *netloop.Tick)
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.tell", func(tick *netloop.Tick) {
			if send != nil {
				send(tick)
			}
			send = nil
		})
	})
	clients := []*client.Client{play(t, w, perfect), play(t, w, perfect), play(t, w, perfect)}
	ids := []netloop.ClientID{clients[0].ID(), clients[1].ID(), clients[2].ID()}
	got := make([]int, 3)
	for i, c := range clients {
		client.Handle(c, told, func(*netloop.Tick, text) { got[i]++ })
	}
	var owned *netloop.Object[thing]
	var gone, ofNobody *netloop.Object[thing]
	w.Tick(func(tick *netloop.Tick) {
		owned = things.Spawn(tick, thing{}, netloop.OwnedBy(ids[1]))
		ofNobody = things.Spawn(tick, thing{})
		gone = things.Spawn(tick, thing{})
	})
	w.Step(1)
	w.Tick(func(tick *netloop.Tick) { gone.Despawn(tick) })
	first := func(c *netloop.Client) bool { return c.ID() == ids[0] }
	for name, c := range map[string]struct {
		to   netloop.Target
		want []int
	}{
		"everyone":                   {netloop.Everyone(), []int{1, 1, 1}},
		"to":                         {netloop.To(ids[2], ids[0]), []int{1, 0, 1}},
		"to none":                    {netloop.To(), []int{0, 0, 0}},
		"zero":                       {netloop.Target{}, []int{0, 0, 0}},
		"except":                     {netloop.Except(ids[0]), []int{0, 1, 1}},
		"owner":                      {netloop.OwnerOf(owned), []int{0, 1, 0}},
		"owner of an unowned object": {netloop.OwnerOf(ofNobody), []int{0, 0, 0}},
		"observers":                  {netloop.Observers(owned), []int{1, 1, 1}},
		"observers of a despawned":   {netloop.Observers(gone), []int{0, 0, 0}},
		"observers but one":          {netloop.Observers(owned).Except(ids[1]), []int{1, 0, 1}},
		"except twice":               {netloop.Except(ids[0]).Except(ids[2]), []int{0, 1, 0}},
		"both":                       {netloop.Except(ids[2]).And(netloop.To(ids[1], ids[2])), []int{0, 1, 0}},
		"either, once":               {netloop.OwnerOf(owned).Or(netloop.Where(first)).Or(netloop.To(ids[0])), []int{1, 1, 0}},
		"none and all":               {netloop.To().And(netloop.Everyone()), []int{0, 0, 0}},
		"where":                      {netloop.Where(func(c *netloop.Client) bool { return c.ID() == ids[2] }), []int{0, 0, 1}},
	} {
		clear(got)
		send = func(tick *netloop.Tick) { told.Send(tick, c.to, text{}) }
		w.Step(3)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: reached %v, want %v", name, got, c.want)
		}
	}
}

func TestRefsResolveOnBothSides(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			a := things.Spawn(tick, thing{N: 1})
			things.Spawn(tick, thing{N: 2, Other: a.Ref()})
		})
	})
	c := play(t, w, perfect)
	check := func(tick *netloop.Tick) {
		for o := range things.All(tick) {
			other, ok := o.State().Other.Get(tick)
			if (o.State().N == 2) != ok || ok && other.State().N != 1 {
				t.Errorf("thing %d has a Ref to %v, %v", o.State().N, other, ok)
			}
			if _, ok := (netloop.Ref[note]{}).Get(tick); ok {
				t.Error("the zero Ref has an object")
			}
		}
	}
	w.Tick(check)
	w.Look(c, check)
}

// TestUnsendableMessagesPanic: the game itself is the sender, and without a panic the mistake
// would be hidden.
func TestUnsendableMessagesPanic(t *testing.T) {
	type long struct {
		S string `net:"max=2000"`
	}
	other := netloop.NewSchema("other", 1, 0)
	foreign := netloop.NewRPC[text](other, "foreign")
	own := netloop.NewSchema("own", 1, 0)
	dgram := netloop.NewRPC[long](own, "dgram", netloop.Unreliable())
	var room *netloop.Room
	w := netlooptest.New(t, game{own, func(r *netloop.Room) { room = r }})
	c := w.JoinAs(client.Config{}, perfect)
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
	panics := func(what string, fn func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		fn()
	}
	tooLong := long{strings.Repeat("x", 1500)}
	w.Tick(func(tick *netloop.Tick) {
		panics("too long for a datagram", func() { dgram.Send(tick, netloop.Everyone(), tooLong) })
		panics("of another schema", func() { foreign.Send(tick, netloop.Everyone(), text{}) })
		dgram.Send(tick, netloop.Everyone(), long{strings.Repeat("x", 1000)})
	})
	panics("client, of another schema", func() { client.Send(c, foreign, text{}) })
	if err := foreign.Post(room, text{}); err == nil {
		t.Error("a message of another schema was posted")
	}
}
