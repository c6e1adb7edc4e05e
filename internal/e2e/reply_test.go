package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// deferredReplies is a game that stores its unanswered replies.
type deferredReplies struct {
	kept []netloop.Reply[sum]
	from []netloop.ClientID
}

func (d *deferredReplies) open(t *testing.T, o ...netlooptest.Option) *netlooptest.World {
	t.Helper()
	keep := func(_ *netloop.Tick, from *netloop.Client, _ pair, reply netloop.Reply[sum]) {
		d.kept, d.from = append(d.kept, reply), append(d.from, from.ID())
	}
	return open(t, func(r *netloop.Room) {
		add.HandleLater(r, keep)
		quick.HandleLater(r, keep)
	}, o...)
}

// asked sends a call and returns the place of its answer.
func asked(c *client.Client, k *netloop.Call[pair, sum]) *[]string {
	got := new([]string)
	client.Call(c, k, pair{}, func(_ *netloop.Tick, s sum, err error) { *got = append(*got, fmt.Sprint(s.Sum, " ", err)) })
	return got
}

func wantAnswer(t *testing.T, what string, got *[]string, want string) {
	t.Helper()
	if len(*got) != 1 || !strings.Contains((*got)[0], want) {
		t.Errorf("%s: answered %q, want %q once", what, *got, want)
	}
}

func TestHandleLaterAnswersInALaterTick(t *testing.T) {
	var d deferredReplies
	w := d.open(t)
	c := play(t, w, bad)
	ok, refused, secret := asked(c, add), asked(c, add), asked(c, add)
	w.Until(300, func() bool { return len(d.kept) == 3 })
	w.Step(120) // Two seconds later.
	w.Tick(func(tick *netloop.Tick) {
		d.kept[0].Send(tick, sum{42}, nil)
		d.kept[1].Send(tick, sum{}, netloop.Refuse(netloop.CodeGame, "not today"))
		d.kept[2].Send(tick, sum{}, errors.New("the secret"))
		if d.kept[0].Waiting(tick) {
			t.Error("a call that was answered is still pending")
		}
	})
	w.Until(300, func() bool { return c.Stats().Calls == 0 })
	wantAnswer(t, "a result", ok, "42 <nil>")
	wantAnswer(t, "a refusal", refused, "not today")
	wantAnswer(t, "an error", secret, "internal error")
}

func TestHandleLaterMayAnswerInItsHandler(t *testing.T) {
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
		client.Call(c, add, pair{a, 5}, func(_ *netloop.Tick, s sum, err error) { got = append(got, fmt.Sprint(s.Sum, err)) })
	}
	other := asked(c, quick) // A reply belongs to the call of its own handler.
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
	var d deferredReplies
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

func TestUnansweredCallsAreBoundedPerClient(t *testing.T) {
	var d deferredReplies
	w := d.open(t, netlooptest.Limits(netloop.RPCLimits{Answers: 3}))
	c, other := play(t, w, perfect), play(t, w, perfect)
	var got []*[]string
	for range 5 {
		got = append(got, asked(c, quick))
	}
	calm := asked(other, quick)
	w.Step(3)
	if len(d.kept) != 4 {
		t.Errorf("%d are unanswered, want 3 and 1", len(d.kept))
	}
	for _, g := range got[3:] {
		wantAnswer(t, "one beyond", g, "answers are pending already")
	}
	w.Tick(func(tick *netloop.Tick) { d.kept[0].Send(tick, sum{7}, nil) })
	again := asked(c, quick)
	w.Step(3)
	if len(d.kept) != 5 {
		t.Errorf("another call was refused after an answer: %q", *again)
	}
	w.Step(70) // After the timeout of a second the others do not count.
	wantAnswer(t, "another client's", calm, client.ErrTimeout.Error())
	for range 3 {
		asked(c, quick)
	}
	w.Step(3)
	if len(d.kept) != 8 {
		t.Errorf("timed out calls still count: %d were handled", len(d.kept))
	}
}

func TestCallsOfALeaverNeedNoAnswer(t *testing.T) {
	var d deferredReplies
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
	wantAnswer(t, "the remaining client", still, "2 <nil>")
}

func TestALateAnswerIsDroppedAndCounted(t *testing.T) {
	var d deferredReplies
	w := d.open(t)
	c := play(t, w, netlooptest.Link{Delay: 100 * time.Millisecond})
	got, slow := asked(c, quick), asked(c, add)
	w.Until(60, func() bool { return len(d.kept) == 2 })
	w.Until(60, func() bool { return c.Stats().Calls == 1 })
	wantAnswer(t, "after its own timeout", got, client.ErrTimeout.Error())
	w.Tick(func(tick *netloop.Tick) {
		if !d.kept[0].Waiting(tick) { // Its second began when the question arrived.
			t.Error("the server's timeout was before the client's")
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
			t.Error("the reply is still pending")
		}
		d.kept[1].Send(tick, sum{1}, nil) // Not sent: it would be late.
	})
	w.Step(30)
	if s := c.Stats(); s.LateCalls != 1 {
		t.Errorf("%d late answers are counted", s.LateCalls)
	}
}
