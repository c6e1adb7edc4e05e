package overload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The facts name the measure that raised the level, and the condition of the next step down.
func TestFactsExplainTheLevel(t *testing.T) {
	l := New(even)
	for i, step := range []struct {
		windows int
		s       Sample
		want    string
	}{
		{3, busyOf(even, 0.95), "Refusing for 0s: clients get half of the snapshots, changes of objects of low priority wait, new clients are refused. Cause: tick time 95 % of the period (limit 90 %)."},
		{2, busyOf(even, 0.1), "Cause, 1s ago: tick time 95 % of the period (limit 90 %). Now tick time 10 %: shedding in 4s if it remains so."},
		{1, busyOf(even, 0.8), "Now tick time 80 % of the period (limit 70 %): shedding in 15.5s if it remains so."},
		{1, Sample{Lateness: even, FlushLag: even}, "Refusing for 2s: clients get half of the snapshots, changes of objects of low priority wait, new clients are refused. Cause: lateness 1.0 periods (limit 1.0), flush lag 1.0 periods (limit 1.0)."},
		{10, Sample{}, "Shedding for 0s: clients get half of the snapshots, changes of objects of low priority wait. Cause, 5s ago: "},
		{20, Sample{}, "Normal: no work is reduced."},
	} {
		feed(l, step.windows, step.s)
		if got := l.Facts().String(); !strings.Contains(got, step.want) {
			t.Errorf("%d: %s\nwant %s", i, got, step.want)
		}
		if i == 0 && l.Facts().Next != 0 {
			t.Errorf("a step down in %v, while the room is overloaded", l.Facts().Next)
		}
	}
	if f := New(even).Facts(); f.String() != "Normal: no work is reduced." || f.Next != 0 {
		t.Errorf("a new monitor: %+v", f)
	}
	m := Facts{Last: Means{0.1, 0.2, 0.3}, Hot: Means{0.4, 0.5, 0.6}}.Measures()
	if got := fmt.Sprint(m); got != "[{tick time 0.1 0.4 0.7 0.9} {lateness 0.2 0.5 0.5 1} {flush lag 0.3 0.6 0.5 1}]" {
		t.Error(got)
	}
}

// Under a constant load that is not hot, the next step down comes when the facts say.
func TestTheNextStepDownIsPredicted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(even)
		l.hold = rapid.SampledFrom([]int{holdWindows, l.longest}).Draw(t, "hold")
		share := func(name string, most float64) Sample {
			return busyOf(even, rapid.Float64Range(0, most).Draw(t, name))
		}
		for range rapid.IntRange(1, 60).Draw(t, "windows") {
			feed(l, 1, share("load", 1.2))
		}
		s := share("then", 0.89)
		feed(l, 1, s)
		f := l.Facts()
		if f.Level == Normal {
			if f.Next != 0 {
				t.Fatalf("a step down from normal: %+v", f)
			}
			return
		}
		windows := int(f.Next / (time.Duration(l.Window()) * even))
		if levels := feed(l, windows, s); levels[windows-1] != f.Level-1 || windows > 1 && levels[windows-2] != f.Level {
			t.Fatalf("%+v: after %d windows it is %v", f, windows, levels[windows-1])
		}
	})
}
