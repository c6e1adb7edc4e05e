package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/netlooptest"
)

func TestDamagedRecordingStopsAtTheLastWholeTick(t *testing.T) {
	file := recordMixed(t, 1, 50, nil)
	if ticks, err := replay(t, file[:len(file)-3]); len(ticks) != 49 || !errors.Is(err, recording.ErrTruncated) || !strings.Contains(err.Error(), "after 49 ticks") {
		t.Errorf("cut: %d ticks, error %v", len(ticks), err)
	}
	bad := bytes.Clone(file)
	bad[len(bad)/2] ^= 1
	ticks, err := replay(t, bad)
	// A damaged length may look like the end of the file.
	if len(ticks) == 0 || len(ticks) >= 50 || !errors.Is(err, recording.ErrCorrupt) && !errors.Is(err, recording.ErrTruncated) {
		t.Errorf("damaged: %d ticks, error %v", len(ticks), err)
	}
	if _, err := netloop.NewReplay(netloop.Config{}, mixed(nil), strings.NewReader("anything else")); !errors.Is(err, recording.ErrNotRecording) {
		t.Errorf("no recording: error %v", err)
	}
	if _, err := netloop.NewReplay(netloop.Config{}, other{}, bytes.NewReader(file)); err == nil || !strings.Contains(err.Error(), "of another game: its schema is") {
		t.Errorf("another game: error %v", err)
	}
	if _, err := netloop.NewReplay(netloop.Config{}, otherBuild{}, bytes.NewReader(file)); err == nil || !strings.Contains(err.Error(), "of another build of") {
		t.Errorf("another build: error %v", err)
	}
}

// failing is a writer that fails after some writes.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

func TestAFailedRecordingDoesNotStopTheRoom(t *testing.T) {
	w := open(t, mixed(nil), netlooptest.Record(&failing{left: 10}), netlooptest.AllowPanics())
	c := play(t, w, perfect)
	w.Step(60)
	if c.State().Phase != client.Playing {
		t.Errorf("the client is %v", c.State().Phase)
	}
	if _, err := netloop.New(netloop.Config{Record: &failing{}}, mixed(nil)); err == nil || !strings.Contains(err.Error(), "Record: ") {
		t.Errorf("a recording that cannot begin: %v", err)
	}
}

// A recording with missing or repeated ticks, or without a first one, is damaged, and its replay
// reports the place.
func TestARecordingWithATickGapIsDamaged(t *testing.T) {
	file := recordMixed(t, 1, 30, nil)
	for name, c := range map[string]struct {
		change func(*loop.Input)
		ticks  int
	}{
		"a tick is missing": {func(in *loop.Input) {
			if in.Tick >= 10 {
				in.Tick++
			}
		}, 9},
		"a repeated tick": {func(in *loop.Input) {
			if in.Tick >= 10 {
				in.Tick--
			}
		}, 9},
		"an earlier start": {func(in *loop.Input) {
			if in.Tick == 10 {
				in.Start = -time.Hour
			}
		}, 9},
		"too many steps": {func(in *loop.Input) {
			if in.Tick == 10 {
				in.FixedSteps = math.MaxInt
			}
		}, 9},
		"it begins with none": {func(in *loop.Input) {
			if in.Tick == 1 {
				in.Tick, in.Slept = 0, math.MaxUint64
			}
		}, 0},
	} {
		ticks, err := replay(t, edit(t, file, func(tick *recording.Tick) { c.change(&tick.Input) }))
		if !errors.Is(err, recording.ErrCorrupt) || len(ticks) != c.ticks {
			t.Errorf("%s: %d ticks, %v", name, len(ticks), err)
		}
	}
}

// The loop of Ticks has the ticks and the error of Step, also after some Steps, and it is the last
// use of a replay.
func TestTicksOfAReplayAreThoseOfStep(t *testing.T) {
	whole := recordMixed(t, 1, 50, nil)
	for _, file := range [][]byte{whole, whole[:len(whole)-3]} {
		want, ended := replay(t, file)
		p, err := netloop.NewReplay(netloop.Config{}, mixed(nil), bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		first, err := p.Step()
		got := []netloop.ReplayTick{first}
		for tick, failed := range p.Ticks() {
			if err = failed; err == nil {
				got = append(got, tick)
			}
		}
		if !slices.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(ended) {
			t.Errorf("%d ticks, error %v; want %d, error %v", len(got), err, len(want), ended)
		}
		_, err = p.Step()
		for _, again := range p.Ticks() {
			if ended == nil || again == nil {
				t.Error("a tick after the last one:", again)
			}
		}
		if ended == nil && !errors.Is(err, io.EOF) || ended != nil && err.Error() != ended.Error() {
			t.Errorf("a step after the loop: %v, want %v", err, ended)
		}
	}
	p, err := netloop.NewReplay(netloop.Config{}, mixed(nil), bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range p.Ticks() {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if _, err := p.Step(); err == nil || !strings.Contains(err.Error(), "the loop over its ticks has ended") {
		t.Errorf("a step after a loop that has ended early: %v", err)
	}
}
