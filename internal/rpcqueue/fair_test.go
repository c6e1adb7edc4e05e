package rpcqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/loop"
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

func TestMessagesBeyondABudgetWaitInOrder(t *testing.T) {
	r, m := flood(t, 4, 3, 3, 3)
	r.step(1)
	r.wantRan("Update 1.0", "Update 1.1", "Update 2.0", "Update 3.0")
	r.sent = []Item{{Method: m, From: 2, Msg: "2.3"}}
	r.step(1) // The remainder rotates to the second sender.
	r.wantRan("Update 1.2", "Update 2.1", "Update 2.2", "Update 3.1")
	r.step(1)
	r.wantRan("Update 3.2", "Update 2.3")
}

func TestABudgetSmallerThanTheNumberOfSendersRotates(t *testing.T) {
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

func TestTheShareOfALeaverIsReleased(t *testing.T) {
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

// Messages run in the order in which a search for the sender with the least cost, before each
// one, would find them.
func TestSharingFollowsItsModel(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		methods := []*Method{method(0, "a"), method(1, "b"), method(2, "c")}
		m := newMetered(t, Limits{Budget: 1 + rnd.IntN(60)}, methods...)
		m.SetPrices([]Price{{0, us(10)}, {1, us(25)}, {2, us(70)}})
		waiting := make([][]uint32, 2+rnd.IntN(40)) // by sender: the methods of its messages
		for range 300 {
			from, method := rnd.IntN(len(waiting)), rnd.IntN(len(methods))
			waiting[from] = append(waiting[from], uint32(method))
			m.send(method, uint64(from+1), 1, 0)
		}
		cursor := 0
		for m.Depth(loop.Update) > m.limits.Budget {
			want := make([]int, len(waiting))
			took := make([]time.Duration, len(waiting))
			start := cursor
			for range m.limits.Budget {
				next := -1
				for k := range waiting {
					from := (k + start) % len(waiting) // From the sender after the last one.
					if len(waiting[from]) > 0 && (next < 0 || took[from] < took[next]) {
						next = from
					}
				}
				took[next] += m.prices[waiting[next][0]]
				waiting[next] = waiting[next][1:]
				want[next]++
				cursor = next + 1
			}
			got := make([]int, len(waiting))
			for _, name := range m.drain() {
				from, _ := strconv.Atoi(name)
				got[from-1]++
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, tick %d: ran %v, want %v", seed, m.tick, got, want)
			}
		}
		if kept := m.senders.kept; slices.ContainsFunc(kept[:cap(kept)], func(it Item) bool { return it.Msg != nil }) {
			t.Fatalf("seed %d: a message that ran is kept", seed)
		}
		if line := m.senders.line; slices.ContainsFunc(line[:cap(line)], func(s *sender) bool { return s != nil }) {
			t.Fatalf("seed %d: senders are kept", seed)
		}
	}
}

// No sender in a heap sorts before its parent, so the first one has the least cost.
func TestSinkKeepsAHeap(t *testing.T) {
	const cursor = 7
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		heap := make([]*sender, n+1)
		for i := range heap {
			heap[i] = &sender{id: uint64(i), took: 1 << rnd.IntN(40)}
		}
		slices.SortFunc(heap, func(x, y *sender) int { return compareTurns(x, y, cursor) })
		for range 100 {
			heap[0].took += 1 << rnd.IntN(40)
			sink(heap, cursor)
			for i := 1; i <= n; i++ {
				if compareTurns(heap[(i-1)/2], heap[i], cursor) >= 0 {
					t.Fatalf("of %d senders the one at %d sorts before its parent", n+1, i)
				}
			}
		}
	}
}

// A drain that runs all messages uses no turn, also if they just fit.
func TestADrainWithinItsBudgetTakesNoTurn(t *testing.T) {
	for _, l := range []Limits{{Budget: 2}, {Time: us(20)}} {
		m := newMetered(t, l, method(0, "m"))
		m.SetPrices([]Price{{0, us(10)}})
		m.send(0, 1, 1, 0)
		m.send(0, 2, 1, 0)
		m.wantRan(t, "1", "2")
		for id := range uint64(3) {
			m.send(0, id+1, 1, 0)
		}
		m.wantRan(t, "1", "2")
	}
}
