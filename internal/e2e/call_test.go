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
		client.Call(c, add, q, func(_ *netloop.Tick, s sum, err error) {
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
	client.Call(c, add, pair{1, 1}, func(_ *netloop.Tick, _ sum, e error) { err = e })
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
	client.Call(c, quick, pair{}, func(_ *netloop.Tick, _ sum, e error) { err = e })
	w.Until(60*11, func() bool { return err != nil })
	if waited := w.Now() - start; !errors.Is(err, client.ErrTimeout) || waited < time.Second || waited > 2*time.Second {
		t.Errorf("after %v: %v", waited, err)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	var d deferredReplies
	w := d.open(t)
	c := play(t, w, perfect)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := client.Await(ctx, c, add, pair{})
		ended <- err
	}()
	for len(d.kept) == 0 { // The other goroutine asks at any time.
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

func TestAwaitReportsUnsendableCalls(t *testing.T) {
	var d deferredReplies
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

func TestPendingCallsAreBounded(t *testing.T) {
	var d deferredReplies
	w := d.open(t, netlooptest.Limits(netloop.RPCLimits{Answers: 4096}))
	c := play(t, w, perfect)
	refused := 0
	then := func(_ *netloop.Tick, _ sum, err error) {
		if errors.Is(err, client.ErrTooManyCalls) {
			refused++
		}
	}
	for range 1024 + 10 {
		client.Call(c, add, pair{}, then)
	}
	if n := c.Stats().Calls; n != 1024 {
		t.Errorf("%d calls are pending", n)
	}
	w.Step(1)
	if refused != 10 {
		t.Errorf("%d were refused, want 10", refused)
	}
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "call again") {
			t.Errorf("recovered %q", v)
		}
	}()
	for range 1025 {
		client.Call(c, add, pair{}, then)
	}
}

func TestAClientThatDoesNotStepCountsLostMessages(t *testing.T) {
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
		t.Errorf("%d unhandled messages, %d overflowed", s.Rejected, s.Overflowed)
	}
	w.Freeze(c)
	w.Step(30)
	if s := c.Stats(); s.Overflowed == 0 {
		t.Error("nothing is counted")
	}
}

// A client that does not step for almost the whole timeout keeps its connection and gets every
// message.
func TestAClientThatDoesNotStepForLongKeepsItsMessages(t *testing.T) {
	n := uint64(0)
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.tell", func(tick *netloop.Tick) {
			if tick.Number()%60 == 0 {
				n++
				spawned.Send(tick, netloop.Everyone(), announcement{N: n})
			}
		})
	})
	c := play(t, w, netlooptest.Link{Delay: 20 * time.Millisecond})
	heard := uint64(0)
	client.Handle(c, spawned, func(*netloop.Tick, announcement) { heard++ })
	w.Freeze(c)
	w.Step(4 * 60)
	w.Thaw(c)
	w.Step(30)
	if s := c.Stats(); c.Closed() != nil || heard != n || s.Overflowed != 0 {
		t.Errorf("got %d of %d, closed: %v, %d overflowed", heard, n, c.Closed(), s.Overflowed)
	}
}

// A game that repeats a call in its error callback does so at the end of the connection too.
func TestRetriedCallsFailAfterTheEnd(t *testing.T) {
	var d deferredReplies
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
		client.Call(c, add, pair{}, again)
	}
	client.Call(c, add, pair{}, again)
	client.Call(c, add, pair{}, again)
	w.Step(3)
	if err := c.Close(); err != nil || failed != 2 {
		t.Errorf("%d calls failed, %v", failed, err)
	}
	c.Step(0)
	if failed != 4 {
		t.Errorf("%d calls failed, want the two calls of the end too", failed)
	}
}
