package netloop

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What belongs into Open is refused later, and the log says so: it is too late for an error.
func TestWhatBelongsIntoOpenIsRefusedLater(t *testing.T) {
	var log bytes.Buffer
	s, err := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, new(judgedGame))
	if err != nil {
		t.Fatal(err)
	}
	room := s.room
	late := func() { t.Error("a hook of a later tick was called") }
	for name, register := range map[string]func(){
		"OnStart": func() { room.OnStart(func(*Tick) { late() }) },
		"OnDrain": func() { room.OnDrain(func(*Tick, time.Duration) { late() }) },
		"NewGrid": func() { NewGrid(room, GridSpec{Radius: 1}) },
		"WatchRooms": func() {
			WatchRooms(room, RoomFilter[struct{}]{}, func(*Tick, []RoomChange[struct{}]) { late() })
		},
		"Class.Weigh": func() { hiddenOnes.Weigh(room, func(*Client, *Object[hiddenState]) float64 { late(); return 1 }) },
	} {
		log.Reset()
		register()
		if want := name + " belongs into the game's Open"; !strings.Contains(log.String(), want) {
			t.Errorf("the log has %q, want %q", log.String(), want)
		}
	}
	if err := errors.Join(room.e.Step(room.e.Timeline().Input(1)), room.e.Drain(time.Second)); err != nil {
		t.Fatal(err)
	}
}

// A divergence names digests where it has some, and nothing where two are the same.
func TestADivergenceSaysWhatDiffers(t *testing.T) {
	for want, d := range map[string]*Divergence{
		"netloop: the replay diverges at tick 7: a message is missing":                                            {Tick: 7, What: "a message is missing"},
		"netloop: the replay diverges at tick 8: the state, recorded 000000000000000a, replayed 000000000000000b": {8, "the state", 10, 11},
	} {
		if got := d.Error(); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
