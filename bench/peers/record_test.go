package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/bench/world"
)

const ms = time.Millisecond

// at makes the record of an update.
func at(client, tick int, sent, arrived time.Duration) record {
	return record{uint32(client), uint32(tick), int64(sent), int64(arrived)}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 0.01*b+0.01 }

// An update of each tick, 10 ms after it was sent, at 100 Hz: the state is 10 to 20 ms old.
func TestASteadyClientHasTheAgeOfDelayAndPeriod(t *testing.T) {
	var all []record
	for i := range 101 {
		sent := time.Second + time.Duration(i)*10*ms
		all = append(all, at(0, i+1, sent, sent+10*ms))
	}
	f := analyse(all, 1, time.Second+10*ms, 2*time.Second+10*ms)
	switch {
	case f.Updates != 101, f.Again != 0, !near(f.Gap, 10), !near(f.Oldest, 10):
		t.Errorf("%+v", f)
	case !near(f.IntervalP50, 10), !near(f.IntervalP99, 10), !near(f.DelayP50, 10), !near(f.AgeP50, 14), f.AgeP99 < 19, f.AgeP99 > 20:
		t.Errorf("%+v", f)
	}
}

// A gap of a second in two counts for half of the ages, though it is one interval of a hundred. The
// updates behind it are a burst.
func TestALongGapCountsForAsLongAsItLasts(t *testing.T) {
	var all []record
	for i := range 100 {
		sent := time.Duration(i+1) * 10 * ms
		all = append(all, at(0, i+1, sent, sent))
	}
	for i := range 20 {
		all = append(all, at(0, 101+i, time.Second+time.Duration(i+1)*50*ms, 2*time.Second))
	}
	f := analyse(all, 1, 10*ms, 2*time.Second)
	if !near(f.Gap, 1000) || f.Burst != 20 || f.AgeP99 < 950 || f.AgeP50 > 10 && f.AgeP50 < 5 || !near(f.Oldest, 950) {
		t.Errorf("%+v", f)
	}
}

// A client that receives no update has a gap of the whole window, and is the worst. The other
// client's state becomes older until the end.
func TestAClientWithoutUpdatesCounts(t *testing.T) {
	f := analyse([]record{at(0, 1, 5*ms, 6*ms), at(0, 2, 15*ms, 16*ms)}, 2, 0, time.Second)
	if !near(f.Gap, 1000) || f.WorstRate != 0 || f.Rate != 2 || f.AgeP99 < 950 {
		t.Errorf("%+v", f)
	}
}

// Ticks that are not newer are no updates, and a time that one client knows serves the others.
func TestOldTicksAreNoUpdates(t *testing.T) {
	all := []record{at(0, 5, 10*ms, 20*ms), at(0, 5, 10*ms, 21*ms), at(0, 4, 1*ms, 22*ms), {Tick: 6, Sent: int64(30 * ms)}, at(0, 6, 0, 40*ms)}
	f := analyse(all, 1, 0, 50*ms)
	if f.Updates != 2 || f.Again != 2 || !near(f.IntervalP50, 20) || !near(f.DelayP99, 10) {
		t.Errorf("%+v", f)
	}
}

// The time of a tick that no client has is that of the tick before.
func TestASkippedTickCountsAsOlder(t *testing.T) {
	all := []record{{Tick: 5, Sent: int64(10 * ms)}, at(0, 6, 0, 40*ms)}
	if f := analyse(all, 1, 0, 50*ms); !near(f.DelayP50, 30) {
		t.Errorf("%+v", f)
	}
}

// The age of netloop's state is that of its oldest entity.
func TestAnEntityHasTheTickOfItsState(t *testing.T) {
	var s seen
	for _, c := range []struct{ of, newest, want uint64 }{{5, 5, 5}, {5, 9, 5}, {7, 9, 7}, {12, 12, 12}} {
		if tick, ok := s.find(world.Circle, 3, world.Circle(c.of, 3), c.newest); tick != c.want || !ok {
			t.Errorf("%+v: %d, %v", c, tick, ok)
		}
	}
	if tick, ok := s.find(world.Tenth, 3, world.Circle(0, 3), 99); tick != 99 || !ok {
		t.Errorf("an entity that does not move has the state of tick %d", tick)
	}
	if _, ok := s.find(world.Circle, 3, world.Body{}, 20); ok {
		t.Error("the world never had that state")
	}
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records")
	want := []record{at(3, 1<<31, 5, 1<<40), at(0, 0, 0, 1)}
	if err := writeRecords(file, want); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readRecords(text); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := readRecords(text[1:]); err == nil {
		t.Error("half a record is read")
	}
}

func TestAnUpdateCarriesTheWorld(t *testing.T) {
	b := appendPayload(nil, world.Flip, 7, 5*time.Second)
	var state [world.Entities]world.Body
	decode(b, &state)
	if tick, sent, err := head(b); tick != 7 || sent != 5*time.Second || err != nil || len(b) != payloadSize {
		t.Errorf("tick %d, sent %v, %v, %d bytes", tick, sent, err, len(b))
	}
	if !isWorld(world.Flip, 7, &state) || isWorld(world.Flip, 8, &state) {
		t.Error("the state is not the world's")
	}
	if _, _, err := head(b[1:]); err == nil {
		t.Error("a short update is read")
	}
}
