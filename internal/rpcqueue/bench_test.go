package rpcqueue

import (
	"testing"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// warm returns a queue with its ring and counts allocated.
func warm(tb testing.TB) (*Queue[*int], *Method) {
	m := method(1, "m")
	table, err := NewTable(m)
	if err != nil {
		tb.Fatal(err)
	}
	q := New[*int](table)
	q.Tariff = NewTariff(table, func() time.Duration { return 0 })
	if err := q.Handle(m, func(n *int, it *Item) error { *n += int(it.From); return nil }); err != nil {
		tb.Fatal(err)
	}
	pushAndDrain(q, m, 1000)
	return q, m
}

var (
	pushed = new(struct{ a, b int })
	sum    int
)

func pushAndDrain(q *Queue[*int], m *Method, n int) {
	q.Begin(1, 0)
	for range n {
		q.Push(Item{Method: m, From: 1, Msg: pushed})
	}
	q.Drain(loop.Update, &sum)
}

func TestPushAndDispatchAllocateNothing(t *testing.T) {
	q, m := warm(t)
	if n := testing.AllocsPerRun(100, func() { pushAndDrain(q, m, 500) }); n != 0 {
		t.Fatalf("%v allocations per 500 messages, want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() { q.Counts(func(*Method, loop.Stage, Outcome, uint64) {}) }); n != 0 {
		t.Fatalf("%v allocations per walk of the counts, want 0", n)
	}
}

// BenchmarkPushAndDispatch measures the cost per message without decoding.
func BenchmarkPushAndDispatch(b *testing.B) {
	q, m := warm(b)
	b.ReportAllocs()
	const n = 1000
	for b.Loop() {
		pushAndDrain(q, m, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/message")
}

func BenchmarkDrainOfNothing(b *testing.B) {
	q, _ := warm(b)
	b.ReportAllocs()
	for b.Loop() {
		q.Drain(loop.Update, nil)
	}
}
