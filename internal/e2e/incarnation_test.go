package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// Each room of a server has a larger number than all earlier ones, also a room with the name of
// an ended one. A later server continues with larger numbers.
func TestIncarnationsIncrease(t *testing.T) {
	var all []uint64
	note := func(r *netloop.Room) { all = append(all, r.Incarnation()) }
	w := open(t, note)
	for range 3 {
		for _, name := range []string{"a", "b"} {
			openRoom(t, w, table(name))
		}
		for _, name := range []string{"a", "b"} {
			w.Room(name).Drain(0, netloop.CodeGame, "over")
			w.Step(5)
		}
	}
	w.Restart(script(note))
	if len(all) != 8 || !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != 8 {
		t.Errorf("the numbers are %v", all)
	}
}

// Without a configured number a server starts with the wall clock in microseconds, so a later one
// has larger numbers. No number exceeds an int64, the largest integer of databases.
func TestIncarnationsBeginWithTheWallClock(t *testing.T) {
	first := func(cfg netloop.Config) (n uint64) {
		s, err := netloop.New(cfg, script(func(r *netloop.Room) { n = r.Incarnation() }))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return n
	}
	before := uint64(time.Now().UnixMicro())
	a := first(netloop.Config{})
	for began := time.Now().UnixMicro(); time.Now().UnixMicro() == began; {
		continue
	}
	b := first(netloop.Config{})
	if a < before || b <= a || b > uint64(time.Now().UnixMicro()) {
		t.Errorf("at %d: %d, then %d", before, a, b)
	}
	if n := first(netloop.Config{Incarnation: 77}); n != 77 {
		t.Errorf("a server with the configured number 77 starts with %d", n)
	}
	if _, err := netloop.New(netloop.Config{Incarnation: 1<<62 + 1}, script(func(*netloop.Room) {})); err == nil {
		t.Error("a number beyond int64 is accepted")
	}
}

// A replay has the number of the recorded room.
func TestAReplayHasTheRecordedIncarnation(t *testing.T) {
	g := script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { things.Spawn(tick, thing{N: int32(r.Incarnation())}) })
	})
	var file bytes.Buffer
	w := netlooptest.New(t, g, netlooptest.Record(&file))
	w.Step(3)
	replay, err := netloop.NewReplay(netloop.Config{Log: slog.New(slog.DiscardHandler)}, g, &file)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = replay.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
