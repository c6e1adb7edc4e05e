package e2e_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// dialRoom connects a client to a room and runs it.
func dialRoom(t *testing.T, s *netloop.Server, name string) *client.Client {
	t.Helper()
	return start(t, enterRoom(t, s, name), nil)
}

// enterRoom connects a client to a room of a server. The caller runs the client.
func enterRoom(t *testing.T, s *netloop.Server, name string) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema, Room: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // It may be closed already.
	return c
}

// The connection limit of a server grows with its rooms: the seats of all rooms, and some for
// connections that are about to end.
func TestTheConnectionLimitGrowsWithTheRooms(t *testing.T) {
	s, _ := serveAs(t, script(func(*netloop.Room) {}), netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(30), MaxClients: 1}})
	if _, err := s.OpenRoom(t.Context(), netloop.RoomSpec{Name: "big", Rate: netloop.Hz(30), MaxClients: 40}); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		enterRoom(t, s, "big")
	}
}

// roomsOf returns the names of a server's rooms.
func roomsOf(s *netloop.Server) (names []string) {
	for info := range s.Rooms() {
		names = append(names, info.Spec.Name)
	}
	return names
}

// A failed room, whatever the failure, ends alone: its clients get the reason, its name is free,
// and the server continues with the other rooms and ends without an error.
func TestAFailedRoomLeavesOtherRoomsRunning(t *testing.T) {
	hang := make(chan struct{})
	fails := map[string]func(){
		"panics": func() { panic("ouch") }, "ends its goroutine": runtime.Goexit, "hangs": func() { <-hang },
	}
	var armed atomic.Pointer[string]
	ctx, cancel := context.WithCancel(t.Context())
	s, done := supervised(ctx, t, netloop.Config{Watchdog: 100 * time.Millisecond}, script(func(r *netloop.Room) {
		if r.Spec().Name != "" {
			r.On(netloop.Update, "heart", func(*netloop.Tick) {
				if how := armed.Load(); how != nil {
					fails[*how]()
				}
			}, netloop.Critical())
		}
	}))
	stays := dialRoom(t, s, "")
	for _, how := range []string{"panics", "ends its goroutine", "hangs"} {
		armed.Store(nil)
		if _, err := s.OpenRoom(ctx, table("a")); err != nil {
			t.Fatal(err)
		}
		c := dialRoom(t, s, "a")
		armed.Store(&how)
		if code := closedWith(t, c); code != netloop.CodeInternal {
			t.Errorf("a room %s: its client got %v", how, code)
		}
		waitFor(t, func() bool { return len(roomsOf(s)) == 1 })
		if status, body := page(t, s, "/healthz"); status != http.StatusOK {
			t.Errorf("a room %s: the server's page has %s", how, body)
		}
	}
	if stays.Closed() != nil {
		t.Errorf("a client of another room got %v", stays.Closed())
	}
	_, text := page(t, s, "/metrics")
	for _, want := range []string{
		`netloop_rooms_ended_total{code="internal error",kind="table"} 3`, `netloop_rooms{kind="table"} 0`, `netloop_rooms{kind=""} 1`, "netloop_hung_ticks_total 1",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	close(hang)
	cancel()
	if err := ended(t, done); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// Rooms opened before Run start with it, later rooms start at once, and all end with the server.
// A room that cannot save at the server's end is an error of Run.
func TestRoomsStartAndEndWithTheServer(t *testing.T) {
	var closed atomic.Int64
	g := script(func(r *netloop.Room) {
		r.OnClose(func(context.Context, *netloop.Closed) error {
			if closed.Add(1); r.Spec().Name == "before" {
				return fmt.Errorf("the disk is full")
			}
			return nil
		})
	})
	s, err := netloop.New(netloop.Config{Listen: "127.0.0.1:0"}, g)
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string) {
		if _, err := s.OpenRoom(t.Context(), table(name)); err != nil {
			t.Fatal(err)
		}
	}
	open("before")
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	dialRoom(t, s, "before")
	open("after")
	dialRoom(t, s, "after")
	if got, want := roomsOf(s), []string{"", "before", "after"}; !slices.Equal(got, want) {
		t.Errorf("the server has the rooms %q", got)
	}
	cancel()
	if err := ended(t, done); err == nil || !strings.Contains(err.Error(), `room "before": the disk is full`) {
		t.Errorf("Run: %v", err)
	}
	if closed.Load() != 3 || len(roomsOf(s)) != 0 {
		t.Errorf("%d rooms were closed, and %q remain", closed.Load(), roomsOf(s))
	}
	if _, err := s.OpenRoom(t.Context(), table("late")); err == nil {
		t.Error("a server that has ended opens a room")
	}
}

// The end of the default room ends the server and all other rooms.
func TestTheDefaultRoomEndsTheServer(t *testing.T) {
	var over atomic.Bool
	s, done := supervised(t.Context(), t, netloop.Config{}, script(func(r *netloop.Room) {
		r.On(netloop.Update, "over", func(tick *netloop.Tick) {
			if over.Load() && r.Spec().Name == "" {
				r.Close(tick, netloop.CodeClosing, "good night")
			}
		})
	}))
	if _, err := s.OpenRoom(t.Context(), table("a")); err != nil {
		t.Fatal(err)
	}
	c := dialRoom(t, s, "a")
	over.Store(true)
	if err := ended(t, done); err != nil {
		t.Errorf("Run: %v", err)
	}
	if code := closedWith(t, c); code != netloop.CodeClosing {
		t.Errorf("a client of another room got %v", code)
	}
}

// Ended rooms leave no goroutine, no series, and less than 100 bytes of heap each, the noise of a
// reused heap.
func TestEndedRoomsLeakNoResources(t *testing.T) {
	rounds := 100
	if os.Getenv("NETLOOP_VERIFY") != "" {
		rounds = 10_000
	} else if !testing.Short() {
		rounds = 1000
	}
	s, stop := serve(t, script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { things.Spawn(tick, thing{}) })
	}), 60)
	round := func(n int) {
		for i := range n {
			if _, err := s.OpenRoom(t.Context(), table(fmt.Sprint("a", i%10))); err != nil {
				t.Fatal(err)
			}
			if i%10 == 9 || i == n-1 {
				for j := range 10 {
					// The list may be shorter.
					_ = s.CloseRoom(fmt.Sprint("a", j), 0, netloop.CodeGame, "")
				}
				for len(roomsOf(s)) > 1 {
					runtime.Gosched()
				}
			}
		}
	}
	round(50) // One-time allocations of the server.
	var before string
	waitFor(t, func() bool { // The default room reports from time to time.
		_, before = page(t, s, "/metrics")
		return strings.Contains(before, `netloop_room_clients{kind=""}`)
	})
	goroutines := runtime.NumGoroutine()
	left := math.Inf(1)
	for range 3 {
		heap := heapInUse()
		round(rounds)
		left = min(left, float64(heapInUse()-heap)/float64(rounds))
	}
	_, after := page(t, s, "/metrics")
	if noise := 40_000 / float64(rounds); left > 100+noise {
		t.Errorf("each of %d rooms leaves %.0f bytes", rounds, left)
	}
	for line := range strings.Lines(after) {
		if series, _, _ := strings.Cut(line, " "); strings.HasPrefix(series, "netloop_") && !strings.Contains(before, "\n"+series+" ") {
			t.Errorf("the series %s is new", series)
		}
	}
	// Two belong to the page that was read.
	waitFor(t, func() bool { return runtime.NumGoroutine() <= goroutines+2 })
	t.Logf("%.1f bytes each", left)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func heapInUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
