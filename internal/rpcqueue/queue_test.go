package rpcqueue

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/loop"
)

func TestAMessageRunsAtTheDefaultStageOfItsMethod(t *testing.T) {
	plain, early := method(1, "plain"), method(2, "early", loop.PreUpdate, loop.PostLateUpdate)
	r := newRoom(t, plain, early)
	r.sent = []Item{{Method: plain, Msg: 1}, {Method: early, Msg: 2}, {Method: early, Stage: loop.PostLateUpdate, Msg: 3}}
	r.step(1)
	r.wantRan("PreUpdate 2", "Update 1", "PostLateUpdate 3")
}

func TestEveryStageRunsItsMessagesInOrder(t *testing.T) {
	all := loop.Stages()
	m := method(0, "m", all[:]...)
	r := newRoom(t, m)
	var want []string
	for i, s := range all {
		for k := range 3 {
			r.sent = append(r.sent, Item{Method: m, Stage: s, Msg: 10*i + k})
		}
		if s != loop.Initialization {
			want = append(want, fmt.Sprintf("%v %d", s, 10*i), fmt.Sprintf("%v %d", s, 10*i+1), fmt.Sprintf("%v %d", s, 10*i+2))
		}
	}
	r.step(1)
	r.wantRan(want...)
	r.step(1)
	r.wantRan("Initialization 0", "Initialization 1", "Initialization 2")
}

func TestABadMessageDoesNotAffectOthers(t *testing.T) {
	m, silent := method(3, "m", loop.Update, loop.PreUpdate), method(5, "silent")
	r := newRoom(t, m)
	r.handleOnly(m, (*room).note, silent)
	r.sent = []Item{
		{Method: m, Msg: "first"},
		{Method: nil, Msg: "no method"},
		{Method: method(9, "elsewhere"), Msg: "of no table"},
		{Method: method(3, "m"), Msg: "an impostor with the same id"},
		{Method: m, Stage: loop.PostLateUpdate, Msg: "not allowed"},
		{Method: m, Stage: 8, Msg: "no stage"},
		{Method: silent, Msg: "unheard"},
		{Method: m, Msg: "last"},
	}
	r.step(1)
	want := []Outcome{Accepted, UnknownMethod, UnknownMethod, UnknownMethod, StageNotAllowed, UnknownStage, NoHandler, Accepted}
	if !slices.Equal(r.got, want) {
		t.Fatalf("outcomes %v, want %v", r.got, want)
	}
	r.wantRan("Update first", "Update last")
	counted := make(map[string]uint64)
	r.queue.Counts(func(m *Method, s loop.Stage, o Outcome, n uint64) {
		counted[fmt.Sprintf("%s %v %v", m.Name, s, o)] = n
	})
	wantCounts := map[string]uint64{
		"m Update accepted": 2, "m Update ran": 2, "(unknown) unset unknown_method": 3,
		"m PostLateUpdate stage_not_allowed": 1, "m unset unknown_stage": 1, "silent Update no_handler": 1,
	}
	if fmt.Sprint(counted) != fmt.Sprint(wantCounts) {
		t.Fatalf("counts %v, want %v", counted, wantCounts)
	}
}

func TestOfPolledMessagesOnlyInitializationIsLate(t *testing.T) {
	all := loop.Stages()
	m := method(1, "m", all[:]...)
	r := newRoom(t, m)
	for range 2 {
		for _, s := range all {
			r.sent = append(r.sent, Item{Method: m, Stage: s})
		}
		r.step(1)
		if want := []Outcome{Late, Accepted, Accepted, Accepted, Accepted, Accepted, Accepted}; !slices.Equal(r.got, want) {
			t.Fatalf("outcomes %v, want %v", r.got, want)
		}
	}
}

func TestALateMessageRunsNextTickOrIsDropped(t *testing.T) {
	next, drop := method(1, "next", loop.PreUpdate), method(2, "drop", loop.PreUpdate)
	drop.LateDrop = true
	r := newRoom(t, next, drop)
	r.add("sender", func(r *room) {
		if r.tick == 1 {
			r.sent = []Item{{Method: next, Msg: "next"}, {Method: drop, Msg: "drop"}}
			r.poll()
		}
	}, loop.Update)
	r.step(1)
	if want := []Outcome{Late, LateDropped}; !slices.Equal(r.got, want) {
		t.Fatalf("outcomes %v, want %v", r.got, want)
	}
	r.step(1)
	r.wantRan("PreUpdate next")
}

// Without a fixed step, FixedUpdate is over once a later stage runs.
func TestMessagesForASkippedStageAreLate(t *testing.T) {
	ask, answer := method(1, "ask", loop.PreUpdate), method(2, "answer", loop.FixedUpdate)
	r := newRoom(t, ask, answer)
	var got Outcome
	r.queue.handlers[ask.ID] = func(r *room, _ *Item) error {
		got = r.queue.Push(Item{Method: answer, Msg: "answer"})
		return nil
	}
	r.sent = []Item{{Method: ask}}
	r.step(0)
	if got != Late {
		t.Fatalf("outcome %v, want late", got)
	}
	r.step(1)
	r.wantRan("FixedUpdate answer")
}

func TestBetweenTicksNothingIsLate(t *testing.T) {
	m := method(1, "m", loop.Initialization)
	r := newRoom(t, m)
	r.step(1)
	r.queue.Begin(2, 0)
	if o := r.queue.Push(Item{Method: m, Msg: "early"}); o != Accepted {
		t.Fatalf("outcome %v", o)
	}
	r.step(1)
	r.wantRan("Initialization early")
}

// A message that a handler queues for its own stage runs in the next tick, also with LateDrop.
func TestADrainRunsOnlyMessagesQueuedBeforeIt(t *testing.T) {
	const many = 100
	for _, lateDrop := range []bool{false, true} {
		ping, pong := method(1, "ping"), method(2, "pong")
		pong.LateDrop = lateDrop
		r := newRoom(t, pong)
		table, err := NewTable(ping, pong)
		if err != nil {
			t.Fatal(err)
		}
		r.queue = New[*room](table)
		err = errors.Join(r.queue.Handle(pong, (*room).note), r.queue.Handle(ping, func(r *room, it *Item) error {
			for range 2 * many { // the ring grows under the drain
				if o := r.queue.Push(Item{Method: pong, Msg: "pong"}); o != Accepted {
					t.Errorf("outcome %v", o)
				}
			}
			return r.note(it)
		}))
		if err != nil {
			t.Fatal(err)
		}
		r.sent = []Item{{Method: ping, Msg: "ping"}, {Method: pong, Msg: "second"}}
		r.step(1)
		r.wantRan("Update ping", "Update second")
		r.step(1)
		if len(r.ran) != 2*many {
			t.Fatalf("%d answers, want %d", len(r.ran), 2*many)
		}
	}
}

func TestAFullStageDropsAndCounts(t *testing.T) {
	const capacity = 16384
	m := method(1, "m", loop.FixedUpdate, loop.Update)
	r := newRoom(t, m)
	for range capacity + 3 {
		r.sent = append(r.sent, Item{Method: m})
	}
	r.sent = append(r.sent, Item{Method: m, Stage: loop.Update, Msg: "elsewhere"})
	r.step(0)
	r.wantRan("Update elsewhere")
	if r.count(Full) != 3 || r.queue.Depth(loop.FixedUpdate) != capacity {
		t.Fatalf("%d dropped, %d queued", r.count(Full), r.queue.Depth(loop.FixedUpdate))
	}
	r.step(1)
	if len(r.ran) != capacity || r.queue.Depth(loop.FixedUpdate) != 0 {
		t.Fatalf("%d ran, %d queued", len(r.ran), r.queue.Depth(loop.FixedUpdate))
	}
}

func TestAFloodDoesNotTakeTheShareOfOthers(t *testing.T) {
	const capacity, share = 16384, 256
	m := method(1, "m", loop.FixedUpdate)
	r := newRoom(t, m)
	for range capacity + 100 {
		r.sent = append(r.sent, Item{Method: m, From: 1})
	}
	for from := uint64(2); from < 5; from++ {
		for range share + 1 {
			r.sent = append(r.sent, Item{Method: m, From: from})
		}
	}
	r.step(0)
	if r.count(Full) != 103 || r.queue.Depth(loop.FixedUpdate) != capacity+3*share {
		t.Fatalf("%d dropped, %d queued", r.count(Full), r.queue.Depth(loop.FixedUpdate))
	}
	r.step(1)
	if len(r.ran) != capacity+3*share {
		t.Fatalf("%d ran", len(r.ran))
	}
}

func TestAPanicLosesOneMessage(t *testing.T) {
	m := method(1, "m")
	r := newRoom(t)
	r.handleOnly(m, func(r *room, it *Item) error {
		switch it.Msg {
		case "panic":
			panic("ouch")
		case "fail":
			return errors.New("no")
		}
		return r.note(it)
	})
	var told []string
	r.queue.OnPanic = func(it *Item, v any, stack []byte) {
		told = append(told, fmt.Sprint(it.From, " ", v))
		if !strings.Contains(string(stack), "queue_test.go") {
			t.Errorf("the stack lacks the panicking function: %s", stack)
		}
	}
	r.queue.OnError = func(it *Item, err error) { told = append(told, fmt.Sprint(it.From, " ", err)) }
	for i, msg := range []string{"1", "panic", "2", "fail", "panic", "3", "panic"} {
		r.sent = append(r.sent, Item{Method: m, From: uint64(i + 1), Msg: msg})
	}
	r.step(1)
	r.wantRan("Update 1", "Update 2", "Update 3")
	if want := []string{"2 ouch", "4 no", "5 ouch", "7 ouch"}; !slices.Equal(told, want) {
		t.Fatalf("told %q, want %q", told, want)
	}
	if r.count(Ran) != 3 || r.count(Failed) != 1 || r.count(Panicked) != 3 {
		t.Fatalf("%d ran, %d failed, %d panicked", r.count(Ran), r.count(Failed), r.count(Panicked))
	}
}

// If OnPanic panics too, the remaining messages still run.
func TestAPanicOfOnPanicLosesNoMessage(t *testing.T) {
	m := method(1, "m")
	table, err := NewTable(m)
	if err != nil {
		t.Fatal(err)
	}
	q := New[*[]any](table)
	q.OnPanic = func(*Item, any, []byte) { panic("me too") }
	err = q.Handle(m, func(got *[]any, it *Item) error {
		if it.Msg == 2 {
			panic("ouch")
		}
		*got = append(*got, it.Msg)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		q.Push(Item{Method: m, Msg: i + 1})
	}
	var got []any
	func() {
		defer func() {
			if v := recover(); v != "me too" {
				t.Errorf("recovered %v", v)
			}
		}()
		q.Drain(loop.Update, &got)
	}()
	q.Begin(2, 0)
	q.Drain(loop.Update, &got)
	if fmt.Sprint(got) != "[1 3 4]" {
		t.Fatalf("ran %v", got)
	}
}

func TestMessagesOfALeaverAreForgottenAndCounted(t *testing.T) {
	m := method(1, "m", loop.FixedUpdate, loop.Update)
	r := newRoom(t, m)
	for i := range 9 {
		r.sent = append(r.sent, Item{Method: m, From: uint64(i % 3), Msg: i})
	}
	r.step(0)
	if n := r.queue.Forget(2); n != 3 || r.count(ClientGone) != 3 {
		t.Fatalf("forgot %d, counted %d", n, r.count(ClientGone))
	}
	if n := r.queue.Forget(0) + r.queue.Forget(2); n != 0 {
		t.Fatalf("forgot %d of an unknown sender", n)
	}
	r.step(1)
	r.wantRan("FixedUpdate 0", "FixedUpdate 1", "FixedUpdate 3", "FixedUpdate 4", "FixedUpdate 6", "FixedUpdate 7")
}

func TestMessagesOfALeaverAreForgottenDuringADrain(t *testing.T) {
	m := method(1, "m")
	r := newRoom(t)
	r.handleOnly(m, func(r *room, it *Item) error {
		if it.Msg == 1 {
			r.queue.Push(Item{Method: m, From: 2, Msg: "new of 2"})
			r.queue.Push(Item{Method: m, From: 3, Msg: "new of 3"})
			if n := r.queue.Forget(2); n != 2 {
				t.Errorf("forgot %d, want 2", n)
			}
			r.queue.Push(Item{Method: m, From: 1, Msg: "new of 1"})
		}
		return r.note(it)
	})
	for i := range 6 {
		r.sent = append(r.sent, Item{Method: m, From: uint64(i%3 + 1), Msg: i})
	}
	r.step(1)
	r.wantRan("Update 0", "Update 1", "Update 2", "Update 3", "Update 5")
	r.step(1)
	r.wantRan("Update new of 3", "Update new of 1")
}

// The queue drops its reference to a message that has run.
func TestTheQueueReleasesMessagesThatRan(t *testing.T) {
	m := method(1, "m")
	r := newRoom(t, m)
	freed := make(chan bool, 1)
	q := r.queue
	func() {
		msg := new([64]byte)
		runtime.AddCleanup(msg, func(c chan bool) { c <- true }, freed)
		q.Push(Item{Method: m, Msg: msg})
	}()
	q.Begin(1, 0)
	q.handlers[m.ID] = func(*room, *Item) error { return nil }
	q.Drain(loop.Update, r)
	for range 100 {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(q)
			return
		default:
		}
	}
	t.Fatal("the message is still referenced")
}

func TestMisuseIsRefused(t *testing.T) {
	m := method(1, "m")
	r := newRoom(t, m)
	note := (*room).note
	for _, err := range []error{
		r.queue.Handle(m, note), r.queue.Handle(nil, note), r.queue.Handle(method(2, "x"), note), r.queue.Handle(m, nil),
	} {
		if err == nil {
			t.Error("a bad Handle was accepted")
		}
	}
	for _, stage := range []loop.Stage{0, 8} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.Contains(v, "no such stage") {
					t.Errorf("Drain of stage %d panics with %v", stage, v)
				}
			}()
			r.queue.Drain(stage, r)
		}()
	}
	r.queue.handlers[m.ID] = func(r *room, _ *Item) error { r.queue.Drain(loop.Update, r); return nil }
	r.sent = []Item{{Method: m}}
	r.step(1)
	if r.count(Panicked) != 1 || r.queue.Depth(9) != 0 {
		t.Error("Drain within a handler was accepted")
	}
}

func TestCountsAreKeptByMethod(t *testing.T) {
	a, b := method(0, "a"), method(1, "b")
	r := newRoom(t, a, b)
	if err := r.queue.SetLimits(Limits{Sender: Bucket{PerSecond: 1, Burst: 1}}); err != nil {
		t.Fatal(err)
	}
	r.sent = []Item{{Method: a, Msg: "1"}, {Method: b, Msg: "2"}, {Method: b, Msg: "3"}, {Msg: "4"}}
	for _, m := range []*Method{nil, nil, a, nil, b} { // The first two are within twice the burst.
		r.sent = append(r.sent, Item{Method: m, From: 1})
	}
	r.step(1)
	got := map[string]uint64{}
	r.queue.Counts(func(m *Method, _ loop.Stage, o Outcome, n uint64) { got[m.Name+" "+o.String()] += n })
	want := map[string]uint64{
		"a accepted": 1, "a ran": 1, "a client_limited": 1,
		"b accepted": 2, "b ran": 2, "b client_limited": 1,
		UnknownName + " unknown_method": 3, UnknownName + " client_limited": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
