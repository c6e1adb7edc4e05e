package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// TestAnswerOfAnotherMethodIsDropped: a server cannot make a call see a value of another
// type than it asked for.
func TestAnswerOfAnotherMethodIsDropped(t *testing.T) {
	var cs calls
	var got []any
	id := cs.add(3, 0, time.Second, func(_ *netloop.Tick, answer any, _ error) { got = append(got, answer) })
	cs.answer(nil, &transport.Message{Method: 4, Call: id, Reply: true}, "of another method")
	cs.answer(nil, &transport.Message{Method: 0, Call: id, Reply: true, Code: 7}, nil)
	if cs.late != 2 || len(got) != 0 {
		t.Fatalf("%d dropped, it got %v", cs.late, got)
	}
	cs.answer(nil, &transport.Message{Method: 3, Call: id, Reply: true}, "its own")
	if len(got) != 1 || got[0] != "its own" || len(cs.waiting) != 0 {
		t.Errorf("it got %v", got)
	}
}

// Each call fails at its own deadline, the oldest first: not before, and not later because of other
// calls.
func TestEachCallHasItsDeadline(t *testing.T) {
	var cs calls
	var failed []uint64
	add := func(now, timeout time.Duration) {
		id := cs.last + 1
		cs.add(1, now, timeout, func(_ *netloop.Tick, _ any, err error) {
			if failed = append(failed, id); !errors.Is(err, ErrTimeout) {
				t.Errorf("call %d failed with %v", id, err)
			}
		})
	}
	expire := func(now time.Duration, want ...uint64) {
		t.Helper()
		failed = nil
		if cs.expire(nil, now); !slices.Equal(failed, want) {
			t.Errorf("at %v the calls %v failed, want %v", now, failed, want)
		}
	}
	add(0, 50)
	add(0, 30)
	add(0, 40)
	add(0, 60)
	expire(29)
	expire(30, 2)
	expire(39)
	if _, ok := cs.take(3); !ok { // It was answered.
		t.Error("call 3 does not wait")
	}
	expire(40)
	expire(49)
	add(49, 3)
	expire(50, 1)
	expire(52, 5)
	expire(59)
	expire(60, 4)
	expire(1000)
	add(1000, 500)
	expire(1499)
	expire(1500, 6)
	if len(cs.waiting) != 0 {
		t.Errorf("%d wait", len(cs.waiting))
	}
}

// A callback that asks again does so behind all others, and its question waits as long as any.
func TestACallInACallbackIsQueuedLast(t *testing.T) {
	var cs calls
	asked := 0
	var again func(*netloop.Tick, any, error)
	again = func(*netloop.Tick, any, error) {
		if asked++; asked < 5 {
			cs.add(1, time.Duration(asked), 10, again)
		}
	}
	cs.add(1, 0, 10, again)
	cs.add(1, 0, 20, func(*netloop.Tick, any, error) { t.Error("the other has failed") })
	cs.expire(nil, 10)
	cs.expire(nil, 10)
	if asked != 1 || len(cs.waiting) != 2 {
		t.Errorf("asked %d times, %d wait", asked, len(cs.waiting))
	}
	if cs.expire(nil, 11); asked != 2 {
		t.Errorf("at its second deadline asked %d times", asked)
	}
}

// A call's answer ends its waiting, and so does a refusal, in the server's words.
func TestACallIsAnsweredOrRefused(t *testing.T) {
	r := newJoined(t)
	m := bridge.Netloop.Method(rigAsk).Queue
	var got []string
	ask := func() {
		Call(r.Client, rigAsk, rigWord{}, func(_ *netloop.Tick, w rigWord, err error) { got = append(got, fmt.Sprint(w.N, " ", err)) })
	}
	answer := transport.Arrival{
		Kind: transport.MessageArrived, Message: transport.Message{Method: m.ID, Reply: true, Call: 1}, Decoded: schema.Erase(rigWord{7}),
	}
	refusal := transport.Arrival{
		Kind: transport.MessageArrived, Message: transport.Message{Method: m.ID, Reply: true, Call: 2, Code: uint32(netloop.CodeGame), Text: "no"},
	}
	ask()
	ask()
	ask()
	if r.frame(0); r.Stats().Calls != 3 {
		t.Errorf("%d calls wait", r.Stats().Calls)
	}
	r.arrives(refusal, answer, answer)
	if s := r.Stats(); s.Rejected != 0 || s.Unknown != 0 {
		t.Errorf("of the answers %d were rejected, %d of no method", s.Rejected, s.Unknown)
	}
	if s := r.Stats(); len(got) != 2 || !strings.HasSuffix(got[0], ": no") || got[1] != "7 <nil>" || s.Calls != 1 || s.LateCalls != 1 {
		t.Errorf("got %q, %d wait, %d late", got, s.Calls, s.LateCalls)
	}
	if r.frame(999 * ms); len(got) != 2 {
		t.Errorf("before its deadline got %q", got)
	}
	if r.frame(ms); len(got) != 3 || got[2] != "0 "+ErrTimeout.Error() {
		t.Errorf("at its deadline got %q", got)
	}
}

// A game may be refused as many calls in a frame as may wait, and in the next frame as many again.
func TestRefusedCallsAreBoundedPerFrame(t *testing.T) {
	r := newJoined(t)
	refused := 0
	ask := func(n int) {
		for range n {
			Call(r.Client, rigAsk, rigWord{}, func(_ *netloop.Tick, _ rigWord, err error) {
				if errors.Is(err, ErrTooManyCalls) {
					refused++
				}
			})
		}
	}
	ask(maxCalls)
	for range 3 {
		ask(maxCalls)
		r.frame(0)
	}
	if refused != 3*maxCalls || r.Stats().Calls != maxCalls || r.Stats().Panics != 0 {
		t.Errorf("%d were refused, %d wait, %d panicked", refused, r.Stats().Calls, r.Stats().Panics)
	}
	if id := ask1(r); id != 0 { // A call that was given up must not cancel another.
		t.Errorf("a call that was refused has the id %d", id)
	}
	r.frame(0)
	defer func() {
		if recover() == nil {
			t.Error("one more was refused, and nothing said")
		}
	}()
	ask(maxCalls + 1)
}

func ask1(r *rig) uint64 {
	return startCall(r.Client, rigAsk, rigWord{}, func(*netloop.Tick, rigWord, error) {}, nil)
}

// Requests of other goroutines without a Step are limited, and a call with an ended context is not
// sent.
func TestAwaitIsBoundedAndSkipsEndedContexts(t *testing.T) {
	r := newJoined(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range maxCalls { // The second function of each cancels the call of the first.
		if _, err := Await(ended, r.Client, rigAsk, rigWord{}); n < maxCalls/2 && !errors.Is(err, context.Canceled) {
			t.Fatalf("question %d: %v", n, err)
		}
	}
	if n := len(r.posted); n != maxCalls {
		t.Errorf("%d requests wait", n)
	}
	if _, err := Await(t.Context(), r.Client, rigAsk, rigWord{}); !errors.Is(err, ErrTooManyCalls) {
		t.Errorf("one more: %v", err)
	}
	r.frame(0)
	if s := r.Stats(); s.Calls != 0 || r.messages.calls.last != 0 {
		t.Errorf("%d calls wait, %d were asked", s.Calls, r.messages.calls.last)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var closed *netloop.Closed
	if _, err := Await(t.Context(), r.Client, rigAsk, rigWord{}); !errors.As(err, &closed) {
		t.Errorf("after the end: %v", err)
	}
}

// Before it is connected and after its end a client sends no messages, and returns an error.
func TestUnsendableMessagesAreCounted(t *testing.T) {
	r := newRig(t)
	if err := Send(r.Client, rigWords, rigWord{}); err == nil || r.Stats().Dropped != 1 {
		t.Errorf("before it is connected: %v, %d dropped", err, r.Stats().Dropped)
	}
	r = newJoined(t)
	if err := Send(r.Client, rigWords, rigWord{}); err != nil || r.Stats().Dropped != 0 {
		t.Errorf("%v, %d dropped", err, r.Stats().Dropped)
	}
	r.conn.session.Close(transport.CodeProtocol, "")
	if err := Send(r.Client, rigWords, rigWord{}); err == nil || r.Stats().Dropped != 1 {
		t.Errorf("before the client knows of the end: %v, %d dropped", err, r.Stats().Dropped)
	}
	r.link.End(transport.Closed{Code: netloop.CodeLost})
	r.frame(0)
	var closed *netloop.Closed
	if err := Send(r.Client, rigWords, rigWord{}); !errors.As(err, &closed) || closed.Code != transport.CodeProtocol || r.Stats().Dropped != 2 {
		t.Errorf("after the end: %v, %d dropped", err, r.Stats().Dropped)
	}
}

// Programming errors panic with a message.
func TestMisuseOfMessagesPanics(t *testing.T) {
	r := newJoined(t)
	other := netloop.NewRPC[rigWord](netloop.NewSchema("other", 1, 0), "words")
	Handle(r.Client, rigWords, func(*netloop.Tick, rigWord) {})
	for want, fn := range map[string]func(){
		"WithState is for the server":            func() { _ = Send(r.Client, rigWords, rigWord{}, netloop.WithState()) },
		"it does not run at PreUpdate":           func() { _ = Send(r.Client, rigWords, rigWord{}, netloop.RunAt(netloop.PreUpdate)) },
		`sending "words": it belongs to another`: func() { _ = Send(r.Client, other, rigWord{}) },
		`handling "words": it belongs`:           func() { Handle(r.Client, other, func(*netloop.Tick, rigWord) {}) },
		"client: Handle: ":                       func() { Handle(r.Client, rigWords, func(*netloop.Tick, rigWord) {}) },
	} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.Contains(v, want) {
					t.Errorf("want a panic with %q, got %s", want, v)
				}
			}()
			fn()
		}()
	}
	if err := Send(r.Client, rigWords, rigWord{}, netloop.RunAt(netloop.Update)); err != nil {
		t.Error(err)
	}
}
