package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

func TestUnreliableMessagesAreNeverSeenTwice(t *testing.T) {
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

func TestServerToClientRPCRunsAtItsStage(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.tell", func(tick *netloop.Tick) {
			told.Send(tick, netloop.Everyone(), text{N: 0})
			told.Send(tick, netloop.Everyone(), text{N: 1}, netloop.RunAt(netloop.PostLateUpdate))
		})
	})
	c := play(t, w, perfect)
	at := map[uint64]netloop.Stage{}
	client.Handle(c, told, func(tick *netloop.Tick, m text) { at[m.N] = tick.Stage() })
	w.Step(5)
	if at[0] != netloop.PreUpdate || at[1] != netloop.PostLateUpdate {
		t.Errorf("ran at %v", at)
	}
}

func TestTargetsNameWhoGetsIt(t *testing.T) {
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
		"everyone":                  {netloop.Everyone(), []int{1, 1, 1}},
		"to":                        {netloop.To(ids[2], ids[0]), []int{1, 0, 1}},
		"to nobody":                 {netloop.To(), []int{0, 0, 0}},
		"zero":                      {netloop.Target{}, []int{0, 0, 0}},
		"except":                    {netloop.Except(ids[0]), []int{0, 1, 1}},
		"owner":                     {netloop.OwnerOf(owned), []int{0, 1, 0}},
		"owner of nobody's":         {netloop.OwnerOf(ofNobody), []int{0, 0, 0}},
		"observers":                 {netloop.Observers(owned), []int{1, 1, 1}},
		"observers of what is gone": {netloop.Observers(gone), []int{0, 0, 0}},
		"observers but one":         {netloop.Observers(owned).Except(ids[1]), []int{1, 0, 1}},
		"except twice":              {netloop.Except(ids[0]).Except(ids[2]), []int{0, 1, 0}},
		"both":                      {netloop.Except(ids[2]).And(netloop.To(ids[1], ids[2])), []int{0, 1, 0}},
		"either, once":              {netloop.OwnerOf(owned).Or(netloop.Where(first)).Or(netloop.To(ids[0])), []int{1, 1, 0}},
		"nobody and all":            {netloop.To().And(netloop.Everyone()), []int{0, 0, 0}},
		"where":                     {netloop.Where(func(c *netloop.Client) bool { return c.ID() == ids[2] }), []int{0, 0, 1}},
	} {
		clear(got)
		send = func(tick *netloop.Tick) { told.Send(tick, c.to, text{}) }
		w.Step(3)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: reached %v, want %v", name, got, c.want)
		}
	}
}

func TestCallsAnswerRefuseAndFail(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		add.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, q pair) (sum, error) {
			switch {
			case q.A < 0:
				return sum{}, netloop.Refuse(netloop.CodeGame, "%d is negative", q.A)
			case q.A > 100:
				return sum{}, errors.New("the secret of large numbers")
			case q.A == 42:
				panic("the secret of 42")
			}
			return sum{q.A + q.B}, nil
		})
	}, netlooptest.AllowPanics())
	c := play(t, w, bad)
	ask := func(q pair) (answer string) {
		done := false
		client.Ask(c, add, q, func(_ *netloop.Tick, s sum, err error) {
			answer, done = fmt.Sprint(s.Sum, " ", err), true
		})
		w.Until(600, func() bool { return done })
		return answer
	}
	if got := ask(pair{1, 2}); got != "3 <nil>" {
		t.Error(got)
	}
	if got := ask(pair{A: -1}); !strings.Contains(got, "-1 is negative") {
		t.Error(got)
	}
	for _, a := range []int64{101, 42} {
		if got := ask(pair{A: a}); !strings.Contains(got, "internal error") || strings.Contains(got, "secret") {
			t.Error(got)
		}
	}
	var err error
	client.Ask(c, add, pair{1, 1}, func(_ *netloop.Tick, _ sum, e error) { err = e })
	if closeErr := c.Close(); closeErr != nil {
		t.Fatal(closeErr)
	}
	var closed *netloop.Closed
	if !errors.As(err, &closed) {
		t.Errorf("a call that was open at the end got %v", err)
	}
}

func TestUnansweredCallsTimeOut(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		quick.Handle(r, func(*netloop.Tick, *netloop.Client, pair) (sum, error) { return sum{}, nil })
	})
	c := play(t, w, perfect)
	w.Cut(c)
	start := w.Now()
	var err error
	client.Ask(c, quick, pair{}, func(_ *netloop.Tick, _ sum, e error) { err = e })
	w.Until(60*11, func() bool { return err != nil })
	if waited := w.Now() - start; !errors.Is(err, client.ErrTimeout) || waited < time.Second || waited > 2*time.Second {
		t.Errorf("after %v: %v", waited, err)
	}
}

func TestHandlerThatPanicsCostsOneMessage(t *testing.T) {
	var got []uint64
	w := open(t, func(r *netloop.Room) {
		echo.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m text) error {
			if m.N%3 == 1 {
				panic(m.N)
			}
			got = append(got, m.N)
			return nil
		})
	}, netlooptest.AllowPanics())
	c := play(t, w, perfect)
	for n := range uint64(9) {
		client.Send(c, echo, text{N: n})
	}
	w.Step(3)
	if want := []uint64{0, 2, 3, 5, 6, 8}; !slices.Equal(got, want) {
		t.Errorf("handled %v, want %v", got, want)
	}
}

func TestSendAtAStageThatIsNotAllowedPanics(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	panics := func(what string, fn func()) {
		t.Helper()
		defer func() {
			if v := fmt.Sprint(recover()); !strings.Contains(v, "does not run at") {
				t.Errorf("%s: recovered %q", what, v)
			}
		}()
		fn()
	}
	w.Tick(func(tick *netloop.Tick) {
		panics("server", func() { told.Send(tick, netloop.Everyone(), text{}, netloop.RunAt(netloop.Update)) })
	})
	panics("client", func() { client.Send(c, told, text{}, netloop.RunAt(netloop.Update)) })
	panics("call", func() {
		client.Ask(c, add, pair{}, func(*netloop.Tick, sum, error) { t.Error("it was answered") }, netloop.RunAt(netloop.PreUpdate))
	})
	if n := c.Stats().Calls; n != 0 {
		t.Errorf("%d calls wait", n)
	}
}

func TestInitializationRPCsAreLateAndFollowTheirPolicy(t *testing.T) {
	ran := map[string]netloop.Stage{}
	w := open(t, func(r *netloop.Room) {
		echo.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, m text) error { ran[m.S] = tick.Stage(); return nil })
		late.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, m text) error { ran[m.S] = tick.Stage(); return nil })
	})
	c := play(t, w, perfect)
	client.Send(c, echo, text{S: "next tick"}, netloop.RunAt(netloop.Initialization))
	client.Send(c, late, text{S: "dropped"})
	w.Step(2)
	if len(ran) != 0 {
		t.Errorf("ran in the tick of the poll: %v", ran)
	}
	w.Step(2)
	if ran["next tick"] != netloop.Initialization || len(ran) != 1 {
		t.Errorf("ran: %v", ran)
	}
}

func TestPostRunsInATickWithoutAClient(t *testing.T) {
	var room *netloop.Room
	var got []uint64
	w := open(t, func(r *netloop.Room) {
		room = r
		echo.Handle(r, func(_ *netloop.Tick, from *netloop.Client, m text) error {
			if from != nil {
				t.Error("a posted message has a sender")
			}
			got = append(got, m.N)
			return nil
		})
	})
	var wg sync.WaitGroup
	for n := range uint64(10) {
		wg.Go(func() {
			if err := echo.Post(room, text{N: n}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.Step(1)
	slices.Sort(got)
	if !slices.Equal(got, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("ran %v", got)
	}
	for n := range uint64(2000) {
		if err := echo.Post(room, text{N: n}); err != nil {
			if !errors.Is(err, netloop.ErrBusy) || n != 1024 {
				t.Errorf("post %d: %v", n, err)
			}
			return
		}
	}
	t.Error("posts are not bounded")
}

func TestGoHandsItsResultToALaterTick(t *testing.T) {
	release := make(chan struct{})
	var result string
	var asked, came uint64
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			asked = tick.Number()
			netloop.Go(tick, func(context.Context) (int, error) { <-release; return 6 * 7, nil },
				func(tick *netloop.Tick, n int, err error) { result, came = fmt.Sprint(n, err), tick.Number() })
			netloop.Go(tick, func(context.Context) (int, error) { panic("oops") },
				func(_ *netloop.Tick, _ int, err error) {
					if err == nil || !strings.Contains(err.Error(), "oops") {
						t.Errorf("a panic became %v", err)
					}
				})
		})
	}, netlooptest.AllowPanics())
	w.Step(3)
	if result != "" {
		t.Error("the result is there before the work is done")
	}
	close(release)
	w.Settle()
	w.Step(1)
	if result != "42 <nil>" || came <= asked {
		t.Errorf("got %q in tick %d", result, came)
	}
}

// TestSettleMakesWorkRepeatable: results come in the order of asking, whatever ends
// first, and before the virtual time of a call runs out.
func TestSettleMakesWorkRepeatable(t *testing.T) {
	const works = 8
	gates := make([]chan struct{}, works+1)
	for i := range gates {
		gates[i] = make(chan struct{})
	}
	var got []int
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			for n := range works { // The last one ends first.
				netloop.Go(tick, func(context.Context) (int, error) { <-gates[n+1]; close(gates[n]); return n, nil },
					func(_ *netloop.Tick, n int, _ error) { got = append(got, n) })
			}
		})
	})
	w.Step(1)
	close(gates[works])
	w.Settle()
	w.Step(1)
	if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("the results came as %v", got)
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
				t.Errorf("thing %d refers to %v, %v", o.State().N, other, ok)
			}
			if _, ok := (netloop.Ref[note]{}).Get(tick); ok {
				t.Error("the zero Ref refers to something")
			}
		}
	}
	w.Tick(check)
	w.Look(c, check)
}

// TestMessagesThatCannotLeavePanic: the sender is the game itself, and silence
// would hide it.
func TestMessagesThatCannotLeavePanic(t *testing.T) {
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

// game is a script with a schema of its own.
type game struct {
	schema *netloop.Schema
	script
}

func (g game) Schema() *netloop.Schema { return g.schema }

// TestObserversKnowWhatWasJustSpawned: an object of this very tick is on its way
// to everyone, a client of this very tick is shown what exists.
func TestObserversKnowWhatWasJustSpawned(t *testing.T) {
	var old *netloop.Object[thing]
	got := 0
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { old = things.Spawn(tick, thing{}) })
		r.OnJoin(func(tick *netloop.Tick, _ *netloop.Client) error {
			told.Send(tick, netloop.Observers(old), text{S: "old"})
			told.Send(tick, netloop.Observers(things.Spawn(tick, thing{})), text{S: "new"})
			return nil
		})
	})
	c := w.Join("", nil, perfect)
	client.Handle(c, told, func(*netloop.Tick, text) { got++ })
	w.Step(5)
	if got != 2 {
		t.Errorf("%d of 2 messages came", got)
	}
}
