package rpcqueue

import (
	"fmt"
	"slices"
	"testing"
)

// flood pushes as many messages as each sender, by id, is to have waiting.
func flood(t *testing.T, budget int, counts ...int) (r *room, m *Method) {
	t.Helper()
	m = method(1, "m")
	r = newRoom(t, m)
	if err := r.queue.SetLimits(Limits{Budget: budget}); err != nil {
		t.Fatal(err)
	}
	for i, n := range counts {
		for k := range n {
			r.sent = append(r.sent, Item{Method: m, From: uint64(i + 1), Msg: fmt.Sprintf("%d.%d", i+1, k)})
		}
	}
	return r, m
}

func TestABudgetIsSharedEqually(t *testing.T) {
	r, _ := flood(t, 100, 1000, 5, 5, 40, 5)
	r.step(1)
	if len(r.ran) != 100 {
		t.Fatalf("ran %d of a budget of 100", len(r.ran))
	}
	by := map[string]int{}
	for _, s := range r.ran {
		by[s[len("Update "):][:1]]++
	}
	if by["1"] != 45 || by["2"] != 5 || by["3"] != 5 || by["4"] != 40 || by["5"] != 5 {
		t.Errorf("ran by sender: %v", by)
	}
	if d := r.queue.Depth(5); d != 955 {
		t.Errorf("%d wait", d)
	}
}

func TestWhatABudgetLeavesWaitsInItsOrder(t *testing.T) {
	r, m := flood(t, 4, 3, 3, 3)
	r.step(1)
	r.wantRan("Update 1.0", "Update 1.1", "Update 2.0", "Update 3.0")
	r.sent = []Item{{Method: m, From: 2, Msg: "2.3"}}
	r.step(1) // What is left over goes round: this time to the second.
	r.wantRan("Update 1.2", "Update 2.1", "Update 2.2", "Update 3.1")
	r.step(1)
	r.wantRan("Update 3.2", "Update 2.3")
}

func TestABudgetSmallerThanTheSendersGoesRound(t *testing.T) {
	r, _ := flood(t, 2, 2, 2, 2, 2, 2)
	var ran []string
	for range 5 {
		r.step(1)
		if len(r.ran) != 2 {
			t.Fatalf("ran %v", r.ran)
		}
		ran = append(ran, r.ran...)
	}
	want := []string{"1.0", "2.0", "3.0", "4.0", "1.1", "5.0", "2.1", "3.1", "4.1", "5.1"}
	for i := range want {
		want[i] = "Update " + want[i]
	}
	if !slices.Equal(ran, want) {
		t.Errorf("ran %q", ran)
	}
}

func TestALeaverGivesItsShareBack(t *testing.T) {
	r, _ := flood(t, 4, 50, 3)
	r.step(1)
	if n := r.queue.Forget(1); n != 48 {
		t.Errorf("forgot %d", n)
	}
	r.step(1)
	r.wantRan("Update 2.2")
	if err := r.nothingLost(); err != nil {
		t.Error(err)
	}
}

func TestSharingABudgetAllocatesNothing(t *testing.T) {
	q, m := warm(t)
	if err := q.SetLimits(Limits{Budget: 100}); err != nil {
		t.Fatal(err)
	}
	round := func() {
		q.Begin(1, 0)
		for i := range 200 {
			q.Push(Item{Method: m, From: uint64(i % 10), Msg: pushed})
		}
		q.Drain(5, &sum)
		q.Drain(5, &sum)
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations per 200 messages", n)
	}
}
