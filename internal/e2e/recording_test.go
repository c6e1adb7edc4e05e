package e2e_test

import (
	"bytes"
	"errors"
	"math"
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
