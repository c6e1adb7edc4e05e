package history_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// rocky returns the arena with so many rocks.
func rocky(rocks int) func() netloop.Game {
	return func() netloop.Game {
		g := arena.New()
		g.Config().(*arena.Config).Rocks = rocks
		return g
	}
}

// cheating is the arena with a system that the recorded one does not have.
type cheating struct{ *arena.Game }

func (g cheating) Open(r *netloop.Room) error {
	r.On(netloop.PreUpdate, "cheat", func(t *netloop.Tick) {
		for o := range arena.Ships.All(t) {
			if t.Number() == 300 {
				o.Edit(t).Score++
				return
			}
		}
	})
	return g.Game.Open(r)
}

// edited returns a recording in which a tick has been changed.
func edited(t *testing.T, file []byte, tick uint64, change func(*recording.Tick)) []byte {
	t.Helper()
	in, head, err := recording.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := recording.NewWriter(&out, head)
	for err == nil {
		var record []byte
		if record, err = in.Next(); err != nil {
			break
		}
		var at recording.Tick
		if err = recording.ReadTick(record, &at); err == nil && at.Input.Tick == tick {
			change(&at)
			record, err = recording.AppendTick(nil, &at)
		}
		err = errors.Join(err, w.Write(record))
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The outcome names the tick at which the replay has ended and the reason, and all ticks up to
// there can be seen.
func TestOutcomeNamesTheTick(t *testing.T) {
	seeds.OneGoroutine(t)
	file := arenaFile(t)
	damaged := bytes.Clone(file)
	damaged[len(file)*2/3] ^= 1
	for _, c := range []struct {
		name   string
		file   []byte
		change func(*history.Config)
		state  string
		least  uint64 // the tick of the outcome
		most   uint64
		text   string
	}{
		{"whole", file, nil, history.Identical, 400, 400, "all ticks are as recorded"},
		{"unrecorded", edited(t, file, 20, func(t *recording.Tick) { t.Unrecorded = []string{"a file"} }), nil, history.Unrecorded, 19, 19, "tick 20 cannot be replayed, because it has unrecorded input: a file"},
		{"cut", file[:len(file)-3], nil, history.Truncated, 399, 399, "truncated after 399 ticks; all ticks up to there are as recorded"},
		{"cut in the middle", file[:len(file)/2], nil, history.Truncated, 100, 300, "truncated after "},
		{"damaged", damaged, nil, history.Damaged, 150, 350, "damaged after "},
		{"other settings", file, func(c *history.Config) { c.Replay = replayOf(rocky(3)) }, history.Diverged, 1, 1, "tick 1 differs from the recorded one: the state"},
		{"other code", file, func(c *history.Config) {
			c.Replay = replayOf(func() netloop.Game { return cheating{arena.New()} })
		}, history.Diverged, 300, 300, "tick 300 differs from the recorded one: the state in ship.Score of object 165.1. All"},
		{"limit", file, func(c *history.Config) { c.LimitTicks(100) }, history.Limited, 100, 100, "a history has 100 ticks at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := opened(t, c.file, func(cfg *history.Config) {
				if c.change != nil {
					c.change(cfg)
				}
			})
			out := r.Outcome()
			if out.State != c.state || out.Tick < c.least || out.Tick > c.most || !strings.Contains(out.Text, c.text) {
				t.Errorf("outcome %+v", out)
			}
			head := r.Head()
			if head.First != 1 || head.Last != out.Tick || head.Ticks != int(out.Tick) || head.Outcome != out {
				t.Errorf("ticks %d to %d, %d in all", head.First, head.Last, head.Ticks)
			}
			if (out.Recorded != out.Replayed) != (c.state == history.Diverged) {
				t.Errorf("digests %q and %q", out.Recorded, out.Replayed)
			}
			for _, tick := range []uint64{1, out.Tick} {
				if a, err := r.State(tick, "", 0); err != nil || len(a.Objects) == 0 {
					t.Errorf("tick %d: %d objects: %v", tick, len(a.Objects), err)
				}
			}
			_, err := r.State(out.Tick+1, "", 0)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the last one is %d, and %s", out.Tick, out.Text)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A file that is no recording of the game is refused in a plain line, and leaves nothing.
func TestFilesOfOthersAreRefused(t *testing.T) {
	file := arenaFile(t)
	version := bytes.Clone(file)
	version[18]++
	for want, b := range map[string][]byte{
		"not a recording of this version of netloop: it is empty": {},
		"not a recording of this version of netloop":              []byte("some text that is no recording at all"),
		"truncated in its head":                                   file[:100],
		"its ticks have other fields":                             bytes.Replace(file, []byte(`"Layout":"`), []byte(`"Layout":"9`), 1),
	} {
		if strings.Contains(want, "fields") {
			continue // The checksum of the head is checked first: internal/recording has that test.
		}
		dir := t.TempDir()
		_, err := history.Open(history.Config{File: bytes.NewReader(b), Size: int64(len(b)), Replay: replayOf(newArena), Temp: dir})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %q", err, want)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
	_, err := history.Open(history.Config{File: bytes.NewReader(version), Size: int64(len(version)), Replay: replayOf(newArena), Temp: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "not a recording of this version of netloop") {
		t.Errorf("another version: %v", err)
	}
	other := netloop.NewSchema("other", 1, 0)
	_, err = history.Open(history.Config{
		File: bytes.NewReader(file), Size: int64(len(file)), Temp: t.TempDir(),
		Replay: replayOf(func() netloop.Game { return foreign{other} }),
	})
	if err == nil || !strings.Contains(err.Error(), `its schema is "arena", and this one is "other"`) {
		t.Errorf("another game: %v", err)
	}
}

// foreign is a game without objects.
type foreign struct{ schema *netloop.Schema }

func (f foreign) Schema() *netloop.Schema { return f.schema }
func (foreign) Open(*netloop.Room) error  { return nil }

// Answers are given while the replay runs, also of many goroutines, and Close in the middle of it
// ends its goroutine and removes its file.
func TestAnswersWhileTheReplayRuns(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	file := arenaFile(t)
	dir := t.TempDir()
	r, err := history.Open(history.Config{File: bytes.NewReader(file), Size: int64(len(file)), Replay: replayOf(newArena), Temp: dir})
	if err != nil {
		t.Fatal(err)
	}
	name := r.FileName()
	failed := make(chan error)
	for range 4 {
		go func() {
			last := uint64(0)
			for last < 100 {
				h := r.Head()
				last = h.Last
				if h.Ticks == 0 {
					continue
				}
				a, err := r.State(last, "", 0)
				if err == nil && (len(a.Objects) == 0 || a.Tick != last) {
					err = fmt.Errorf("tick %d has %d objects", a.Tick, len(a.Objects))
				}
				if err == nil {
					_, err = r.Ticks(1, last, 100)
				}
				if err == nil {
					_, err = r.Find(t.Context(), "ship.X changed", 1, 0)
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range 4 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary file: %v", err)
	}
	if out := r.Outcome(); out.State != history.Closed && out.State != history.Identical {
		t.Errorf("outcome %+v", out)
	}
}

// A room that sleeps skips ticks. The state in between is that of the tick before.
func TestSkippedTicksHaveTheStateBefore(t *testing.T) {
	var file bytes.Buffer
	g := sleepy{netloop.NewSchema("sleepy", 1, 0), nil}
	g.lamps = netloop.NewClass[lamp](g.schema, "lamp")
	w := netlooptest.New(t, g, netlooptest.Record(&file), netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(20), Sleep: true}))
	w.Step(300)
	r := opened(t, file.Bytes(), func(c *history.Config) { c.Replay = replayOf(func() netloop.Game { return g }) })
	h := r.Head()
	if h.Outcome.State != history.Identical || h.Ticks > int(h.Last)/2 || h.Ticks < 5 {
		t.Fatalf("%d ticks to %d, %+v", h.Ticks, h.Last, h.Outcome)
	}
	lit := uint64(0)
	for tick := h.First; tick <= h.Last; tick++ {
		a, err := r.State(tick, "lamp", 0)
		if err != nil || a.Tick > tick || a.Next != 0 && a.Next <= tick || a.Previous >= a.Tick {
			t.Fatalf("tick %d: %+v: %v", tick, a.Around, err)
		}
		if a.Tick == tick {
			lit++
		}
	}
	if lit != uint64(h.Ticks) {
		t.Errorf("%d ticks have run, want %d", lit, h.Ticks)
	}
}

// sleepy is a game that works once in two seconds.
type sleepy struct {
	schema *netloop.Schema
	lamps  *netloop.Class[lamp]
}

type lamp struct{ On bool }

func (s sleepy) Schema() *netloop.Schema { return s.schema }

func (s sleepy) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) {
		one := s.lamps.Spawn(t, lamp{})
		var flip func(t *netloop.Tick)
		flip = func(t *netloop.Tick) {
			state := one.Edit(t)
			state.On = !state.On
			t.AfterFunc(2*time.Second, flip)
		}
		flip(t)
	})
	return nil
}
