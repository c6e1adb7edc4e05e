package e2e_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/netloop/netloop"
)

// seated is how many objects a table of cards has: itself, and who sits there.
const seated = 5

// asleepCost opens rooms of so many objects that sleep, and returns what heap and stack each takes.
func asleepCost(tb testing.TB, rooms, objects int) (heap, stacks float64) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := netloop.New(netloop.Config{Offline: true, MaxRooms: rooms + 100, Room: netloop.RoomSpec{Rate: netloop.Hz(20)}}, script(func(r *netloop.Room) {
		echo.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { return nil })
		add.Handle(r, func(*netloop.Tick, *netloop.Client, pair) (sum, error) { return sum{}, nil })
		r.OnStart(func(tick *netloop.Tick) {
			for range objects {
				things.Spawn(tick, thing{})
			}
		})
	}))
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	opened := 0
	open := func(n int) {
		for range n {
			opened++
			spec := netloop.RoomSpec{Name: fmt.Sprint(opened), Kind: "table", Rate: netloop.Hz(20), MaxClients: 4, Sleep: true}
			if _, err := s.OpenRoom(ctx, spec); err != nil {
				tb.Fatal(err)
			}
		}
		waitFor(tb, func() bool {
			return sumOf(tb, s, "netloop_rooms_asleep", `kind="table"`) == opened
		})
	}
	measure := func() (heap, stacks uint64) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, m.StackInuse
	}
	open(50) // What the server makes once, and grows to its size.
	heap0, stacks0 := measure()
	open(rooms)
	heap1, stacks1 := measure()
	cancel()
	if err := <-done; err != nil {
		tb.Error(err)
	}
	return float64(heap1-heap0) / float64(rooms), (float64(stacks1) - float64(stacks0)) / float64(rooms)
}

// A room of a few objects that sleeps takes at most 64 KiB, its goroutine's stack among it, so that
// a thousand tables fit where one busy room does.
func TestASleepingRoomIsSmall(t *testing.T) {
	const most, rooms = 64 << 10, 200
	heap, stacks := asleepCost(t, rooms, seated)
	if heap+stacks > most {
		t.Errorf("a room of %d objects that sleeps takes %.0f bytes of heap and %.0f of stack, more than %d", seated, heap, stacks, most)
	}
}

// What a room takes that sleeps: B/room of heap and of stacks, by how many objects it has.
func BenchmarkSleepingRoom(b *testing.B) {
	for _, objects := range []int{0, seated, 60} {
		b.Run(fmt.Sprintf("objects=%d", objects), func(b *testing.B) {
			for b.Loop() {
				heap, stacks := asleepCost(b, 1000, objects)
				b.ReportMetric(heap, "heap-B/room")
				b.ReportMetric(stacks, "stack-B/room")
			}
		})
	}
}
