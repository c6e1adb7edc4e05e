package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// desk is a game that keeps the replies that it owes.
type desk struct {
	kept []netloop.Reply[sum]
	from []netloop.ClientID
}

func (d *desk) open(t *testing.T, o ...netlooptest.Option) *netlooptest.World {
	t.Helper()
	keep := func(_ *netloop.Tick, from *netloop.Client, _ pair, reply netloop.Reply[sum]) {
		d.kept, d.from = append(d.kept, reply), append(d.from, from.ID())
	}
	return open(t, func(r *netloop.Room) {
		add.HandleLater(r, keep)
		quick.HandleLater(r, keep)
	}, o...)
}

// asked asks and returns where the answer will be.
func asked(c *client.Client, k *netloop.Call[pair, sum]) *[]string {
	got := new([]string)
	client.Ask(c, k, pair{}, func(_ *netloop.Tick, s sum, err error) { *got = append(*got, fmt.Sprint(s.Sum, " ", err)) })
	return got
}

func wantAnswer(t *testing.T, what string, got *[]string, want string) {
	t.Helper()
	if len(*got) != 1 || !strings.Contains((*got)[0], want) {
		t.Errorf("%s: answered %q, want %q once", what, *got, want)
	}
}

func TestHandleLaterAnswersInALaterTick(t *testing.T) {
	var d desk
	w := d.open(t)
	c := play(t, w, bad)
	ok, refused, secret := asked(c, add), asked(c, add), asked(c, add)
	w.Until(300, func() bool { return len(d.kept) == 3 })
	w.Step(120) // Two seconds of thought.
	w.Tick(func(tick *netloop.Tick) {
		d.kept[0].Send(tick, sum{42}, nil)
		d.kept[1].Send(tick, sum{}, netloop.Refuse(netloop.CodeGame, "not today"))
		d.kept[2].Send(tick, sum{}, errors.New("the secret"))
		if d.kept[0].Waiting(tick) {
			t.Error("a call that was answered is still waited for")
		}
	})
	w.Until(300, func() bool { return c.Stats().Calls == 0 })
	wantAnswer(t, "a result", ok, "42 <nil>")
	wantAnswer(t, "a refusal", refused, "not today")
	wantAnswer(t, "an error", secret, "internal error")
}

func TestHandleLaterMayAnswerAtOnce(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		add.HandleLater(r, func(tick *netloop.Tick, _ *netloop.Client, q pair, reply netloop.Reply[sum]) {
			switch q.A {
			case 1:
				panic("before the answer")
			case 2:
				reply.Send(tick, sum{2}, nil)
				panic("after the answer")
			}
			reply.Send(tick, sum{q.A + q.B}, nil)
		})
		quick.Handle(r, func(*netloop.Tick, *netloop.Client, pair) (sum, error) { panic("without a reply") })
	}, netlooptest.AllowPanics())
	c := play(t, w, perfect)
	var got []string
	for a := range int64(3) {
		client.Ask(c, add, pair{a, 5}, func(_ *netloop.Tick, s sum, err error) { got = append(got, fmt.Sprint(s.Sum, err)) })
	}
	other := asked(c, quick) // What the handler before it has answered is no answer to this one.
	w.Step(2)                // This frame sends, the next tick answers.
	wantAnswer(t, "a panic of another handler", other, "internal error")
	if len(got) != 3 || got[0] != "5 <nil>" || !strings.Contains(got[1], "internal error") || got[2] != "2 <nil>" {
		t.Errorf("answered %q", got)
	}
	w.Step(5)
	if n := c.Stats().LateCalls; n != 0 {
		t.Errorf("%d calls were answered twice", n)
	}
}

func TestACallIsAnsweredExactlyOnce(t *testing.T) {
	var d desk
	w := d.open(t)
	c := play(t, w, perfect)
	got := asked(c, add)
	w.Step(3)
	w.Tick(func(tick *netloop.Tick) {
		d.kept[0].Send(tick, sum{1}, nil)
		d.kept[0].Send(tick, sum{2}, nil)
		d.kept[0].Send(tick, sum{}, errors.New("three"))
	})
	w.Step(3)
	wantAnswer(t, "three answers", got, "1 <nil>")
	if n := c.Stats().LateCalls; n != 0 {
		t.Errorf("%d further answers were sent", n)
	}
}

func TestAnswersOwedAreBoundedPerClient(t *testing.T) {
	var d desk
	w := d.open(t, netlooptest.Limits(netloop.RPCLimits{Answers: 3}))
	c, other := play(t, w, perfect), play(t, w, perfect)
	var got []*[]string
	for range 5 {
		got = append(got, asked(c, quick))
	}
	calm := asked(other, quick)
	w.Step(3)
	if len(d.kept) != 4 {
		t.Errorf("%d are owed, want 3 and 1", len(d.kept))
	}
	for _, g := range got[3:] {
		wantAnswer(t, "one beyond", g, "answers are owed already")
	}
	w.Tick(func(tick *netloop.Tick) { d.kept[0].Send(tick, sum{7}, nil) })
	again := asked(c, quick)
	w.Step(3)
	if len(d.kept) != 5 {
		t.Errorf("an answer made no room for another call: %q", *again)
	}
	w.Step(70) // Past the timeout of a second: all others count no more.
	wantAnswer(t, "another client's", calm, client.ErrTimeout.Error())
	for range 3 {
		asked(c, quick)
	}
	w.Step(3)
	if len(d.kept) != 8 {
		t.Errorf("timed out calls still count: %d were handled", len(d.kept))
	}
}

func TestALeaverIsOwedNothing(t *testing.T) {
	var d desk
	w := d.open(t)
	c, other := play(t, w, perfect), play(t, w, perfect)
	asked(c, add)
	still := asked(other, add)
	w.Step(3)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	w.Step(60)
	w.Tick(func(tick *netloop.Tick) {
		if d.kept[0].Waiting(tick) || !d.kept[1].Waiting(tick) {
			t.Errorf("waiting: %v, %v", d.kept[0].Waiting(tick), d.kept[1].Waiting(tick))
		}
		d.kept[0].Send(tick, sum{1}, nil)
		d.kept[1].Send(tick, sum{2}, nil)
	})
	w.Step(3)
	wantAnswer(t, "who stayed", still, "2 <nil>")
}

func TestALateAnswerIsDroppedAndCounted(t *testing.T) {
	var d desk
	w := d.open(t)
	c := play(t, w, netlooptest.Link{Delay: 100 * time.Millisecond})
	got, slow := asked(c, quick), asked(c, add)
	w.Until(60, func() bool { return len(d.kept) == 2 })
	w.Until(60, func() bool { return c.Stats().Calls == 1 })
	wantAnswer(t, "after its own timeout", got, client.ErrTimeout.Error())
	w.Tick(func(tick *netloop.Tick) {
		if !d.kept[0].Waiting(tick) { // Its second began when the question arrived.
			t.Error("the server gave up before the client did")
		}
		d.kept[0].Send(tick, sum{1}, nil)
	})
	w.Step(30)
	wantAnswer(t, "late", got, client.ErrTimeout.Error())
	if s := c.Stats(); s.LateCalls != 1 {
		t.Errorf("%d late answers are counted", s.LateCalls)
	}
	w.Step(60 * 11)
	wantAnswer(t, "the default timeout", slow, client.ErrTimeout.Error())
	w.Tick(func(tick *netloop.Tick) {
		if d.kept[1].Waiting(tick) {
			t.Error("the server waits for ever")
		}
		d.kept[1].Send(tick, sum{1}, nil) // Not sent: it would be late.
	})
	w.Step(30)
	if s := c.Stats(); s.LateCalls != 1 {
		t.Errorf("%d late answers are counted", s.LateCalls)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	var d desk
	w := d.open(t)
	c := play(t, w, perfect)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := client.Await(ctx, c, add, pair{})
		ended <- err
	}()
	for len(d.kept) == 0 { // The other goroutine asks whenever it gets to it.
		w.Step(1)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Await returned %v", err)
	}
	w.Step(1)
	if n := c.Stats().Calls; n != 0 {
		t.Errorf("%d calls wait", n)
	}
	w.Tick(func(tick *netloop.Tick) { d.kept[0].Send(tick, sum{1}, nil) })
	w.Step(3)
	if n := c.Stats().LateCalls; n != 1 {
		t.Errorf("%d late answers are counted", n)
	}
}

func TestAwaitReportsWhatCannotBeSent(t *testing.T) {
	var d desk
	w := d.open(t)
	c := play(t, w, perfect)
	ended := make(chan error)
	go func() {
		_, err := client.Await(t.Context(), c, add, pair{}, netloop.RunAt(netloop.PreUpdate))
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "does not run at") {
				t.Errorf("Await returned %v", err)
			}
			return
		default:
			w.Step(1)
		}
	}
}

func TestCallsThatWaitAreBounded(t *testing.T) {
	var d desk
	w := d.open(t, netlooptest.Limits(netloop.RPCLimits{Answers: 4096}))
	c := play(t, w, perfect)
	refused := 0
	then := func(_ *netloop.Tick, _ sum, err error) {
		if errors.Is(err, client.ErrTooManyCalls) {
			refused++
		}
	}
	for range 1024 + 10 {
		client.Ask(c, add, pair{}, then)
	}
	if n := c.Stats().Calls; n != 1024 {
		t.Errorf("%d calls wait", n)
	}
	w.Step(1)
	if refused != 10 {
		t.Errorf("%d were refused, want 10", refused)
	}
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "ask again") {
			t.Errorf("recovered %q", v)
		}
	}()
	for range 1025 {
		client.Ask(c, add, pair{}, then)
	}
}

func TestAClientThatDoesNotStepCountsWhatItLoses(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.tell", func(tick *netloop.Tick) {
			for range 100 {
				loose.Send(tick, netloop.Everyone(), text{})
			}
		})
	})
	c := play(t, w, netlooptest.Link{})
	w.Step(2)
	if s := c.Stats(); s.Rejected == 0 || s.Overflowed != 0 {
		t.Errorf("%d messages nobody handles, %d overflowed", s.Rejected, s.Overflowed)
	}
	w.Freeze(c)
	w.Step(30)
	if s := c.Stats(); s.Overflowed == 0 {
		t.Error("nothing is counted")
	}
}

// A client that loads a level for half a minute is still there, and has every message.
func TestAClientThatDoesNotStepForLongKeepsItsMessages(t *testing.T) {
	n := uint64(0)
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.tell", func(tick *netloop.Tick) {
			if tick.Number()%60 == 0 {
				n++
				spawned.Send(tick, netloop.Everyone(), birth{N: n})
			}
		})
	})
	c := play(t, w, netlooptest.Link{Delay: 20 * time.Millisecond})
	heard := uint64(0)
	client.Handle(c, spawned, func(*netloop.Tick, birth) { heard++ })
	w.Freeze(c)
	w.Step(40 * 60)
	w.Thaw(c)
	w.Step(30)
	if s := c.Stats(); c.Closed() != nil || heard != n || s.Overflowed != 0 {
		t.Errorf("heard %d of %d, closed: %v, %d overflowed", heard, n, c.Closed(), s.Overflowed)
	}
}

// A game that asks again whenever it gets no answer does so after the end, too.
func TestAskingAgainAfterEveryErrorEnds(t *testing.T) {
	var d desk
	w := d.open(t)
	c := play(t, w, perfect)
	failed := 0
	var again func(*netloop.Tick, sum, error)
	again = func(_ *netloop.Tick, _ sum, err error) {
		if err == nil {
			return
		}
		if failed++; failed > 100 {
			panic("it asks for ever")
		}
		client.Ask(c, add, pair{}, again)
	}
	client.Ask(c, add, pair{}, again)
	client.Ask(c, add, pair{}, again)
	w.Step(3)
	if err := c.Close(); err != nil || failed != 2 {
		t.Errorf("%d calls failed, %v", failed, err)
	}
	c.Step(0)
	if failed != 4 {
		t.Errorf("%d calls failed, want the two that were asked at the end too", failed)
	}
}
