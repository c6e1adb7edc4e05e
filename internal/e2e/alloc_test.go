package e2e_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
)

// stepper runs the ticks of a server without a network.
func stepper(tb testing.TB, s script) func() {
	tb.Helper()
	server, err := netloop.New(netloop.Config{}, s)
	if err != nil {
		tb.Fatal(err)
	}
	in := bridge.Netloop.Server(server).Room
	timeline, tick := in.Timeline(), uint64(0)
	return func() {
		tick++
		if err := in.Step(timeline.Input(tick)); err != nil {
			tb.Fatal(err)
		}
	}
}

// unchangedGame is a game of 50 empty systems and 1 000 objects without edits.
func unchangedGame(r *netloop.Room) {
	for i := range 50 {
		r.On(stages[i%len(stages)], fmt.Sprint("test.", i), func(*netloop.Tick) {})
	}
	r.OnStart(func(t *netloop.Tick) {
		for range 1000 {
			things.Spawn(t, thing{})
		}
	})
}

func TestTickOfAnUnchangedRoomAllocatesNothing(t *testing.T) {
	step := stepper(t, unchangedGame)
	for range 100 {
		step() // The first ticks create the series of the metrics.
	}
	if n := testing.AllocsPerRun(300, step); n != 0 {
		t.Errorf("a tick allocates %v times", n)
	}
}

func BenchmarkTickOfAnUnchangedRoom(b *testing.B) {
	step := stepper(b, unchangedGame)
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}

func BenchmarkTickThatEditsAllObjects(b *testing.B) {
	step := stepper(b, func(r *netloop.Room) {
		unchangedGame(r)
		r.On(netloop.Update, "test.edit", func(t *netloop.Tick) {
			for o := range things.All(t) {
				o.Edit(t).N++
			}
		})
	})
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}

// dropping returns a stepper that drops the given number of ticks before each one.
func dropping(tb testing.TB, server *netloop.Server) func(dropped uint64) {
	in := bridge.Netloop.Server(server).Room
	tick := uint64(0)
	return func(dropped uint64) {
		tick++
		input := in.Timeline().Input(tick)
		input.Dropped = dropped
		if err := in.Step(input); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkTickOfAnUnchangedRoomRecorded has BenchmarkTickOfAnUnchangedRoom as its base.
func BenchmarkTickOfAnUnchangedRoomRecorded(b *testing.B) {
	server, err := netloop.New(netloop.Config{Record: io.Discard}, script(unchangedGame))
	if err != nil {
		b.Fatal(err)
	}
	in := bridge.Netloop.Server(server).Room
	timeline, tick := in.Timeline(), uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		tick++
		if err := in.Step(timeline.Input(tick)); err != nil {
			b.Fatal(err)
		}
	}
}
