package ticks

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func encode(t testing.TB, s Snapshot) []byte {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// text is a histogram as the wire has it: two with one text are equal.
func text(t interface{ Fatal(...any) }, h *Histogram) string {
	b, err := h.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDecodedEqualsEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Snapshot{
			Ticks: rapid.Uint64().Draw(t, "ticks"), Overruns: rapid.Uint64().Draw(t, "overruns"),
			DroppedTicks: rapid.Uint64().Draw(t, "dropped"), Budget: time.Second / 60,
			Uptime: time.Duration(rapid.Int64Min(0).Draw(t, "uptime")),
		}
		for _, d := range rapid.SliceOf(rapid.Int64Range(-1e9, 100e9)).Draw(t, "durations") {
			s.Tick.Record(time.Duration(d))
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b)
		if err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		if got.Ticks != s.Ticks || got.Overruns != s.Overruns || got.DroppedTicks != s.DroppedTicks ||
			got.Budget != s.Budget || got.Uptime != s.Uptime {
			t.Fatalf("got %+v, want %+v", got, s)
		}
		if text(t, &got.Tick) != text(t, &s.Tick) || text(t, &got.Lateness) != text(t, &s.Lateness) {
			t.Fatal("histograms differ after a round trip")
		}
	})
}

// The window between two snapshots holds exactly the records between them.
func TestAWindowHasTheRecordsBetweenTwoSnapshots(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s, want Snapshot
	add := func(to *Snapshot, tick, late time.Duration) {
		to.Ticks++
		to.Tick.Record(tick)
		to.Lateness.Record(late)
	}
	for range 1000 {
		add(&s, time.Duration(rng.IntN(1e9)), time.Duration(rng.IntN(1e6)))
	}
	s.Uptime, s.DroppedTicks, s.Overruns = 10*time.Second, 1, 2
	before, err := Decode(encode(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for range 1200 {
		tick, late := time.Duration(rng.IntN(8e6)), time.Duration(rng.IntN(1e6))
		add(&s, tick, late)
		add(&want, tick, late)
	}
	s.Uptime, s.DroppedTicks, s.Overruns = 30*time.Second, 4, 7
	window, err := s.Sub(&before)
	if err != nil {
		t.Fatal(err)
	}
	if window.Ticks != 1200 || window.DroppedTicks != 3 || window.Overruns != 5 || window.RateHz() != 60 {
		t.Errorf("got %d ticks, %d dropped, %d overruns, %v Hz", window.Ticks, window.DroppedTicks, window.Overruns, window.RateHz())
	}
	if whole, err := s.Sub(&Snapshot{}); err != nil || text(t, &whole.Tick) != text(t, &s.Tick) {
		t.Errorf("since the beginning: %+v, %v", whole, err)
	}
	if text(t, &window.Tick) != text(t, &want.Tick) || text(t, &window.Lateness) != text(t, &want.Lateness) {
		t.Error("the window's histograms are not those of its records")
	}
	if window.Tick.Max() > 8*time.Millisecond*1001/1000 {
		t.Errorf("max %v is from before the window", window.Tick.Max())
	}
}

func TestPercentileWithinAThousandth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var h Histogram
	all := make([]time.Duration, 10000)
	for i := range all {
		all[i] = time.Duration(rng.ExpFloat64()*2000) * time.Microsecond
		h.Record(all[i])
	}
	slices.Sort(all)
	for _, p := range []float64{50, 90, 99, 99.9, 100} {
		exact := all[int(p/100*float64(len(all)))-1]
		if got := h.Percentile(p); got < exact || got > exact+exact/1000+time.Microsecond {
			t.Errorf("p%v = %v, exact %v", p, got, exact)
		}
	}
}

func TestAnEmptySnapshotIsZero(t *testing.T) {
	var s Snapshot
	if s.RateHz() != 0 || s.Tick.Percentile(99) != 0 || s.Tick.Max() != 0 || s.Tick.Count() != 0 {
		t.Error("an empty snapshot must be all zero")
	}
	if got, err := s.Sub(&s); err != nil || got.Tick.Count() != 0 {
		t.Errorf("empty minus empty: %+v, %v", got, err)
	}
	if hz := (&Snapshot{Ticks: 1, Uptime: 1}).RateHz(); hz < 1e9-1 {
		t.Errorf("a tick in a nanosecond is %v Hz", hz)
	}
}

// Other programs read the text of a histogram.
func TestTheTextOfAHistogram(t *testing.T) {
	const most = `{"highest":60000000,"digits":3,"counts":[[0,1],[1,1],[2048,1],[60000000,1]]}`
	var h, again Histogram
	for _, d := range []time.Duration{-1, time.Microsecond, 2049 * time.Microsecond, time.Hour} {
		h.Record(d)
	}
	if got := text(t, &h); got != strings.Replace(most, "60000000,1]", "59998208,1]", 1) {
		t.Error(got)
	}
	if err := again.UnmarshalJSON([]byte(most)); err != nil || text(t, &again) != text(t, &h) || again.Max() < time.Minute || again.Max() > 61*time.Second {
		t.Errorf("%s, %v", text(t, &again), err)
	}
}

func TestRestartBetweenSnapshotsIsAnError(t *testing.T) {
	var before, after Snapshot
	before.Ticks, before.Uptime = 10, time.Second
	if _, err := after.Sub(&before); err == nil {
		t.Error("fewer ticks than before must be an error")
	}
	after.Ticks, after.Uptime = 20, 2*time.Second
	before.Tick.Record(time.Millisecond)
	after.Tick.Record(time.Second)
	if _, err := after.Sub(&before); err == nil {
		t.Error("a bucket that shrank must be an error")
	}
	for name, before := range map[string]Snapshot{
		"fewer ticks": {Ticks: 1}, "fewer overruns": {Overruns: 1}, "fewer dropped": {DroppedTicks: 1}, "less time": {Uptime: 1},
		"fewer durations": {Tick: before.Tick}, "fewer delays": {Lateness: before.Tick},
	} {
		if _, err := new(Snapshot).Sub(&before); err == nil {
			t.Errorf("%s than before must be an error", name)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"not JSON":       `x`,
		"negative time":  `{"uptime_ns":-1}`,
		"other geometry": `{"tick_us":{"highest":60000000,"digits":2,"counts":[]}}`,
		"unordered":      `{"tick_us":{"highest":60000000,"digits":3,"counts":[[5,1],[4,1]]}}`,
		"same bucket":    `{"tick_us":{"highest":60000000,"digits":3,"counts":[[2048,1],[2049,1]]}}`,
		"beyond":         `{"tick_us":{"highest":60000000,"digits":3,"counts":[[60000001,1]]}}`,
		"negative value": `{"tick_us":{"highest":60000000,"digits":3,"counts":[[-1,1]]}}`,
		"no count":       `{"tick_us":{"highest":60000000,"digits":3,"counts":[[5,0]]}}`,
		"overflow":       `{"tick_us":{"highest":60000000,"digits":3,"counts":[[5,9223372036854775807],[6,1]]}}`,
		"not a number":   `{"tick_us":{"highest":60000000,"digits":3,"counts":[["x",1]]}}`,
		"too long":       strings.Repeat(" ", 4<<20-1) + "{}",
	} {
		if got, err := Decode([]byte(in)); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	var h Histogram
	h.Record(0)
	if n := testing.AllocsPerRun(1000, func() { h.Record(3 * time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}

// The largest answer a server can give must be one that a client accepts.
func TestTheLargestSnapshotFitsItsLimit(t *testing.T) {
	var s Snapshot
	for v := int64(0); v < HighestMicros; v += max(1, v/3000) {
		s.Tick.Record(time.Duration(v) * time.Microsecond)
		s.Lateness.Record(time.Duration(v) * time.Microsecond)
	}
	b := encode(t, s)
	if len(b) > MaxEncoded/4 { // counts here have one digit, at most nineteen in practice
		t.Errorf("%d bytes leave no room for long counts", len(b))
	}
	if _, err := Decode(b); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	var s Snapshot
	s.Ticks = 2
	s.Tick.Record(time.Millisecond)
	s.Tick.Record(3 * time.Second)
	f.Add(encode(f, s))
	f.Add(encode(f, Snapshot{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(encode(t, got))
		if err != nil {
			t.Fatalf("the decoded snapshot cannot be encoded: %v", err)
		}
		if text(t, &again.Tick) != text(t, &got.Tick) || text(t, &again.Lateness) != text(t, &got.Lateness) {
			t.Fatal("decoded, encoded and decoded differs")
		}
		if _, err := got.Sub(&again); err != nil {
			t.Fatalf("a snapshot minus itself: %v", err)
		}
	})
}
