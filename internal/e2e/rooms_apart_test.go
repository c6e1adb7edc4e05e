package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
)

// A room that spins for half of its time, or panics repeatedly, changes the lateness of other
// rooms' ticks by at most 5 ms at the 99th percentile, on two cores. The minimum over several
// windows counts, because other programs disturb some of them.
func TestABusyRoomDelaysNoOther(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it takes a quiet machine: NETLOOP_VERIFY=1")
	}
	const rooms, window, most = 10, 2 * time.Second, 5 * time.Millisecond
	var mu sync.Mutex
	late := map[string][]time.Duration{}
	s, _ := serve(t, script(func(r *netloop.Room) {
		spec := r.Spec()
		var first time.Time
		r.On(netloop.Initialization, "look", func(tick *netloop.Tick) {
			switch now := time.Now(); {
			case spec.Kind == "spins":
				for time.Since(now) < 50*time.Millisecond { //nolint:revive // It is to take time.
				}
			case spec.Kind == "panics" && tick.Number() > 2:
				panic("ouch")
			case spec.Kind == "calm" && first.IsZero():
				first = now
			case spec.Kind == "calm":
				mu.Lock()
				late[spec.Name] = append(late[spec.Name], now.Sub(first)-time.Duration(tick.Number()-1)*spec.Rate.Period())
				mu.Unlock()
			}
		}, netloop.Critical())
	}), 20)
	// p99 returns the lateness of the calm rooms opened for a window, beside another room.
	opened := 0
	p99 := func(beside string) time.Duration {
		clear(late)
		open := func(kind string, rate uint64) {
			opened++
			if _, err := s.OpenRoom(t.Context(), netloop.RoomSpec{Name: fmt.Sprint(opened), Kind: kind, Rate: netloop.Hz(rate)}); err != nil {
				t.Fatal(err)
			}
		}
		for range rooms {
			open("calm", 60)
		}
		if beside == "spins" {
			open(beside, 10)
		}
		for began := time.Now(); time.Since(began) < window; {
			if beside == "panics" {
				open(beside, 60)
			}
			<-time.After(100 * time.Millisecond)
		}
		for _, name := range roomsOf(s)[1:] {
			_ = s.CloseRoom(name, 0, netloop.CodeGame, "") // A failed room has already ended.
		}
		waitFor(t, func() bool { return len(roomsOf(s)) == 1 })
		mu.Lock()
		defer mu.Unlock()
		var all []time.Duration
		for _, of := range late {
			least := slices.Min(of)
			for _, l := range of {
				all = append(all, l-least)
			}
		}
		slices.Sort(all)
		return all[len(all)*99/100]
	}
	for _, beside := range []string{"spins", "panics"} {
		least, calm := time.Hour, time.Hour
		for range 4 {
			calm, least = min(calm, p99("")), min(least, p99(beside))
		}
		t.Logf("beside one that %s: %v, alone %v", beside, least, calm)
		if least > calm+most {
			t.Errorf("beside a room that %s others are late by %v at the 99th percentile, and by %v without it", beside, least, calm)
		}
	}
}
