package e2e_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/netloop/netloop"
)

// seated is the number of objects of a table of cards: itself and its players.
const seated = 5

// asleepCost opens sleeping rooms with so many objects, and returns the heap and stack of each.
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
	open(50) // One-time allocations of the server.
	heap0, stacks0 := measure()
	open(rooms)
	heap1, stacks1 := measure()
	cancel()
	if err := <-done; err != nil {
		tb.Error(err)
	}
	return float64(heap1-heap0) / float64(rooms), (float64(stacks1) - float64(stacks0)) / float64(rooms)
}

// A sleeping room of a few objects takes at most 64 KiB, including its goroutine's stack, so a
// thousand tables take as much as one busy room.
func TestASleepingRoomIsSmall(t *testing.T) {
	const most, rooms = 64 << 10, 200
	heap, stacks := asleepCost(t, rooms, seated)
	if heap+stacks > most {
		t.Errorf("a room of %d objects that sleeps takes %.0f bytes of heap and %.0f of stack, more than %d", seated, heap, stacks, most)
	}
}

// BenchmarkSleepingRoom reports the heap and stacks of a sleeping room, by its number of objects.
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
