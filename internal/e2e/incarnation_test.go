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

// Each room of a server has a larger number than all before it, also one that takes the name of a
// room that has ended, and a server that follows another one goes on above.
func TestIncarnationsGrow(t *testing.T) {
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

// Without a number in its configuration a server begins with the wall clock in microseconds, so
// that one that starts later has larger numbers; and none exceeds an int64, which databases store.
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
		t.Errorf("a server that is told 77 begins with %d", n)
	}
	if _, err := netloop.New(netloop.Config{Incarnation: 1<<62 + 1}, script(func(*netloop.Room) {})); err == nil {
		t.Error("a number is taken that databases cannot store")
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
