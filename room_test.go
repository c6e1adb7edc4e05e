package netloop

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// A registration that belongs into Open is rejected later, and logged: it is too late for an error.
func TestRegistrationsAfterOpenAreRejected(t *testing.T) {
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
		"Class.WeightFor": func() { hiddenOnes.WeightFor(room, func(*Client, *Object[hiddenState]) float64 { late(); return 1 }) },
	} {
		log.Reset()
		register()
		if want := name + " belongs in the game's Open"; !strings.Contains(log.String(), want) {
			t.Errorf("the log has %q, want %q", log.String(), want)
		}
	}
	if err := errors.Join(room.e.Step(room.e.Timeline().Input(1)), room.e.Shutdown.Drain(time.Second)); err != nil {
		t.Fatal(err)
	}
}

// A divergence names digests if it has some, and omits them if the two are equal.
func TestADivergenceNamesTheDifference(t *testing.T) {
	for want, d := range map[string]*Divergence{
		"netloop: the replay diverges at tick 7: a message is missing":                                            {Tick: 7, What: "a message is missing"},
		"netloop: the replay diverges at tick 8: the state, recorded 000000000000000a, replayed 000000000000000b": {8, "the state", 10, 11},
	} {
		if got := d.Error(); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// The log lines of a room name the room, except for the default one, and the place in its tick,
// also with attributes and in groups.
func TestTheLogOfARoomSaysWhereItIs(t *testing.T) {
	var log bytes.Buffer
	s := newStill(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, closedGame{new(opening)})
	says := func(write func(*slog.Logger), r *Room, want string) {
		t.Helper()
		log.Reset()
		write(r.e.Log())
		if _, text, _ := strings.Cut(log.String(), "msg="); text != want+"\n" {
			t.Errorf("it says %q, want %q", text, want)
		}
	}
	r, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	says(func(l *slog.Logger) { l.Info("x") }, s.room, "x")
	says(func(l *slog.Logger) { l.Info("x") }, r, "x room=a")
	says(func(l *slog.Logger) { l.With("k", "v").Info("x") }, r, "x k=v room=a")
	says(func(l *slog.Logger) { l.WithGroup("g").Info("x", "k", "v") }, r, "x g.k=v g.room=a")
	r.now.Stage, r.now.Tick, r.now.System = Update, 7, "move"
	says(func(l *slog.Logger) { l.Info("x") }, r, "x room=a tick=7 system=move")
	r.now = loop.Now{}
}

// A rejected change of a system is logged, and a successful one is not.
func TestChangesThatGoWellAreNotLogged(t *testing.T) {
	var log bytes.Buffer
	s := newStill(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, closedGame{new(opening)})
	system := s.room.On(Update, "move", func(*Tick) {})
	log.Reset()
	if system.Change(Priority(1)); system.Err() != nil || log.Len() > 0 {
		t.Errorf("%v; the log says %s", system.Err(), &log)
	}
	if system.Change(Every(-time.Second)); system.Err() == nil || !strings.Contains(log.String(), "registration rejected") {
		t.Errorf("%v; the log says %s", system.Err(), &log)
	}
}
