package loadtest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/metrics/ticks"
)

func is(x *float64, want float64) bool {
	return x != nil && math.Abs(*x-want) <= want/1000+0.001
}

func TestPercentilesOfKnownSamples(t *testing.T) {
	h := newHistogram()
	for ms := range 1000 {
		record(h, time.Duration(ms+1)*time.Millisecond)
	}
	got := latency(h)
	for name, c := range map[string]struct {
		x    *float64
		want float64
	}{
		"p50": {got.P50, 500}, "p90": {got.P90, 900}, "p99": {got.P99, 990}, "p999": {got.P999, 999}, "max": {got.Max, 1000},
	} {
		if !is(c.x, c.want) {
			t.Errorf("%s = %s, want %v", name, figure(c.x), c.want)
		}
	}
}

func TestNoSamplesAreNull(t *testing.T) {
	h := newHistogram()
	if latency(h) != (Latency{}) || spread(h) != (Spread{}) || spreadOf(new(ticks.Histogram)) != (Spread{}) {
		t.Error("an empty histogram has percentiles")
	}
}

func TestSamplesOutOfRangeAreClamped(t *testing.T) {
	h := newHistogram()
	record(h, -time.Second)
	record(h, time.Hour)
	if p := percentile(h, 50); p == nil || *p != 0 {
		t.Errorf("a negative duration counts as %s ms, want 0", figure(p))
	}
	if p := percentile(h, 100); !is(p, 60_000) {
		t.Errorf("an hour counts as %s ms, want a minute", figure(p))
	}
}

// The sum of samples over any distribution among workers equals that of one histogram.
func TestMergingLosesNoSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Int64Range(0, int64(2*time.Minute)), 1, 200).Draw(t, "samples")
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		parts := make([]*recorder, workers)
		for i := range parts {
			parts[i] = newRecorder()
		}
		all, sum := newRecorder(), newRecorder()
		for i, s := range samples {
			record(all.rtt, time.Duration(s))
			record(parts[i%workers].rtt, time.Duration(s))
			parts[i%workers].sent++
		}
		for _, p := range parts {
			sum.merge(p)
		}
		if !sum.rtt.Equals(all.rtt) || sum.sent != uint64(len(samples)) {
			t.Fatalf("%d samples over %d workers: the sum differs", len(samples), workers)
		}
	})
}

func TestWindowIncludesItsStartOnly(t *testing.T) {
	var w window
	if w.holds(0) {
		t.Error("a closed window records")
	}
	w.open(10, 20)
	for at, want := range map[time.Duration]bool{9: false, 10: true, 19: true, 20: false} {
		if w.holds(at) != want {
			t.Errorf("holds(%d) = %v", at, !want)
		}
	}
	w.end(15)
	w.end(17)
	if w.holds(15) || w.length() != 5 {
		t.Error("a window that ended early still records")
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	h := newHistogram()
	if n := testing.AllocsPerRun(1000, func() { record(h, 3*time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}

func TestTallyIsBounded(t *testing.T) {
	sum := tally{}
	for i := range 1000 {
		sum.add(fmt.Sprint(i))
	}
	total := uint64(0)
	for _, n := range sum {
		total += n
	}
	if len(sum) > maxReasons+1 || total != 1000 {
		t.Errorf("%d reasons with a total of %d", len(sum), total)
	}
}

func TestReasonsAreSortedByFrequency(t *testing.T) {
	sum := tally{}
	for _, text := range []string{"b", "a", "b", "c", "d", "d", "d"} {
		sum.add(text)
	}
	if got, want := because(sum), ": 3× d; 2× b; 1× a; and other reasons"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := because(nil); got != "" {
		t.Errorf("without reasons the text is %q", got)
	}
	if got := reason(fmt.Errorf("dial: %w", netloop.Refuse(netloop.CodeFull, "64 players"))); got != "refused: "+(&netloop.Refusal{Code: netloop.CodeFull, Text: "64 players"}).Error() {
		t.Errorf("the text of a refusal is %q", got)
	}
	for want, err := range map[string]error{
		"x":                                   errors.New("x"),
		netloop.CodeClosing.String():          &netloop.Closed{Code: netloop.CodeClosing, Text: netloop.CodeClosing.String()},
		netloop.CodeKicked.String() + ": bye": &netloop.Closed{Code: netloop.CodeKicked, Text: "bye"},
	} {
		if got := reason(err); got != want {
			t.Errorf("%v reads %q, want %q", err, got, want)
		}
	}
}

func TestRateIsPerClient(t *testing.T) {
	for _, c := range []struct {
		received []uint64
		length   time.Duration
		min, p50 float64
	}{
		{[]uint64{1200}, 20 * time.Second, 60, 60},
		{[]uint64{1200, 600, 1190}, 20 * time.Second, 30, 59.5},
		{[]uint64{4, 1, 3, 2}, time.Second, 1, 2},
		{[]uint64{0, 60, 60}, time.Second, 0, 60},
	} {
		got := clientRate(slices.Clone(c.received), c.length)
		if got.Min == nil || *got.Min != c.min || got.P50 == nil || *got.P50 != c.p50 {
			t.Errorf("%v in %v: min %s p50 %s, want %v and %v", c.received, c.length, figure(got.Min), figure(got.P50), c.min, c.p50)
		}
	}
	if clientRate(nil, time.Second) != (ClientRate{}) || clientRate([]uint64{1}, 0) != (ClientRate{}) {
		t.Error("a rate without clients, or without time, is null")
	}
}

func TestSaturation(t *testing.T) {
	const tick = 20 * time.Millisecond
	for name, c := range map[string]struct {
		late, onTime   int // frames
		intended, sent uint64
		want           bool
	}{
		"idle":                           {0, 0, 0, 0, false},
		"all well":                       {0, 1000, 100, 100, false},
		"1 % of the frames late":         {10, 990, 100, 100, false},
		"above 1 % of the frames late":   {11, 989, 100, 100, true},
		"99 % of the calls sent":         {0, 1000, 100, 99, false},
		"fewer than 99 % of calls sent":  {0, 1000, 1000, 989, true},
		"nothing sent that was intended": {0, 1000, 1, 0, true},
	} {
		r := newRecorder()
		r.intended, r.sent = c.intended, c.sent
		for range c.late {
			record(r.lateness, tick+time.Millisecond)
		}
		for range c.onTime {
			record(r.lateness, tick-time.Millisecond)
		}
		if got := saturated(r, tick); got != c.want {
			t.Errorf("%s: saturated = %v", name, got)
		}
	}
}

func TestRemedies(t *testing.T) {
	for want, err := range map[string]error{
		": start the server with a larger --max-clients, or wait until others have left": netloop.Refuse(netloop.CodeFull, "1"),
		"": netloop.Refuse(netloop.CodeClosing, "the server is closing"),
		": start the server there, or say with --addr where it is": errors.New("nobody has answered in time"),
	} {
		if got := remedy(fmt.Errorf("client: %w", err), false); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	asked := netloop.Refuse(netloop.CodeUnauthenticated, "the token has expired")
	if got := remedy(asked, true); got != "" {
		t.Errorf("a client with a token gets more than the error: %q", got)
	}
	if got := remedy(asked, false); !strings.HasPrefix(got, ": pass --token-key and --token-audience") {
		t.Errorf("a client without a token gets %q", got)
	}
}
