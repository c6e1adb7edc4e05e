package rpcqueue

import (
	"slices"
	"testing"
)

// A wait lasts from the arrival until the handler runs, also after others of the same drain, and
// after a message that panics or fails. Messages without a time of arrival are not counted.
func TestWaitsAreCountedByMethod(t *testing.T) {
	m := newMetered(t, Limits{}, method(0, "idle"), method(1, "slow"), method(2, "quick"))
	m.now = us(1000)
	m.Waits = NewWaits(m.table)
	push := func(n int, name string, at, take int) {
		m.Push(Item{Method: m.methods[n], From: 1, At: us(at), Msg: work{name, us(take)}})
	}
	push(1, "a", 700, 40)
	push(2, "panic", 900, 10)
	push(2, "fail", 950, 5)
	push(2, "b", 990, 1)
	push(2, "posted", 0, 1)
	m.drain()
	want := []Wait{
		{m.methods[1], 1, us(300), us(300)},
		{m.methods[2], 3, us(140 + 100 + 65), us(140)},
	}
	if got := m.Waits.All(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	m.Waits = nil
	push(1, "a", 700, 40)
	m.drain()
}
