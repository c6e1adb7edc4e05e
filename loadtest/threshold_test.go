package loadtest

import (
	"os"
	"strings"
	"testing"
	"time"
)

// judged returns a result with a tick of 20 ms, a round trip of 30 ms, and these figures.
func judged(age, rate float64) *Result {
	tick, rtt := 20.0, 30.0
	r := &Result{Run: Run{Tick: &tick}, Network: Network{RTT: &rtt}}
	r.Snapshots.Age.P99, r.Snapshots.Rate.P50 = &age, &rate
	answered := RPC{Sent: 1000, Answered: 985}
	r.RPC = answered
	return r
}

func TestThresholdsCompareInTheUnitsOfTheirMetric(t *testing.T) {
	r := judged(90, 49.4)
	for text, met := range map[string]bool{
		"snapshot.age.p99<120ms":         true,
		"snapshot.age.p99 < 0.09s":       false,
		"snapshot.age.p99<=90ms":         true,
		"snapshot.age.p99<3ticks+rtt":    false, // 60 + 30
		"snapshot.age.p99<=3ticks+rtt":   true,
		"snapshot.age.p99<4tick + 5ms":   false,
		"snapshot.age.p99<500%":          true, // of a tick
		"snapshot.age.p99>1tick":         true,
		"snapshot.rate.p50>=99%":         false, // of 50 Hz
		"snapshot.rate.p50>=98%":         true,
		"snapshot.rate.p50>=49.4Hz":      true,
		"call.answered>=98%":             true,
		"call.answered>=0.99":            false,
		"server.tick.p99<1h":             false, // It is unknown.
		"snapshot.bytes<1GiB":            false,
		"snapshot.age.p99<1us+2µs+100ms": true,
		"snapshot.age.p99>=90.0ms":       true,
		"snapshot.age.p99>90ms":          false,
	} {
		th, err := parseThreshold(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if j := th.judge(r); j.Met != met {
			t.Errorf("%s: %+v, value %s, bound %s", text, j, figure(j.Value), figure(j.Bound))
		}
	}
}

func TestErrorsOfThresholdsNameTheRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"snapshot.age.p9<1ms":   "did you mean snapshot.age.p99?",
		"snapshot.ages.p99<1ms": "did you mean snapshot.age.p99?",
		"weather<1":             `"weather" is no metric: docs/LOAD.md`,
		"snapshot.age.p99":      "is no threshold",
		"snapshot.age.p99=1ms":  "is no threshold",
		"snapshot.age.p99<1Hz":  "use a time such as 120ms",
		"snapshot.age.p99<120":  "use a time such as 120ms",
		"snapshot.rate.p50>rtt": "use a rate",
		"call.answered>5ms":     "use a share",
		"server.cpu<1ms":        "use cores",
		"server.memory<1Hz":     "use bytes",
		"clients.lost<1%":       "use a number",
		"server.cpu<1.2.3":      "use cores",
	} {
		if _, err := parseThreshold(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	o := options{thresholds: []string{"server.tick.p99<50%"}}
	if err := o.parseThresholds(); err == nil || !strings.Contains(err.Error(), "give --admin too") {
		t.Errorf("without --admin: %v", err)
	}
	if o.admin = "http://x"; o.parseThresholds() != nil || len(o.bounds) != 1 {
		t.Errorf("with --admin: %v", o.bounds)
	}
}

// The verdict is first: thresholds, then the other reasons. An interrupt has its own status.
func TestTheVerdictDecidesTheStatus(t *testing.T) {
	th := func(text string) threshold {
		one, err := parseThreshold(text)
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	good, bad := th("snapshot.age.p99<10ms"), th("snapshot.age.p99<9ms")
	for name, c := range map[string]struct {
		bounds []threshold
		damage func(*report)
		exit   int
		first  string
	}{
		"good":        {bounds: []threshold{good}},
		"threshold":   {bounds: []threshold{good, bad}, exit: 99, first: "threshold snapshot.age.p99<9ms: snapshot.age.p99 is 9.50 ms"},
		"lost":        {damage: func(r *report) { r.Clients.Disconnected++ }, exit: 99, first: "1 of 2 clients lost"},
		"interrupted": {bounds: []threshold{bad}, damage: func(r *report) { r.interrupted = true }, exit: 105, first: "threshold"},
		"saturated":   {damage: func(r *report) { r.Saturated = true }, exit: 99, first: "the generator was too slow"},
	} {
		r := made()
		if c.damage != nil {
			c.damage(r)
		}
		r.judge(c.bounds)
		v := r.Verdict
		if v.Exit != c.exit || v.Pass != (c.exit == 0) || v.Valid != (name != "saturated") || len(v.Thresholds) != len(c.bounds) {
			t.Errorf("%s: %+v", name, v)
		}
		if len(v.Reasons) > 0 != (c.first != "") || c.first != "" && !strings.HasPrefix(v.Reasons[0], c.first) {
			t.Errorf("%s: %q", name, v.Reasons)
		}
		var b strings.Builder
		writeVerdict(&b, r)
		if first := strings.HasPrefix(b.String(), "INVALID"); first != (name == "saturated") {
			t.Errorf("%s begins with\n%s", name, b.String())
		}
	}
}

// docs/LOAD.md lists every metric.
func TestEveryMetricIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/LOAD.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range allMetrics {
		name := m.name
		if at := strings.LastIndexByte(name, '.'); strings.Contains(string(page), "`"+name[:at]+".*`") {
			continue // A row for the distribution.
		}
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/LOAD.md lacks %s", name)
		}
	}
}

func TestFiguresHaveTheirUnit(t *testing.T) {
	x := func(v float64) *float64 { return &v }
	for want, got := range map[string]string{
		"–": show(nil, inMillis), "1.50 ms": show(x(1.5), inMillis), "2.00 %": show(x(0.02), asShare), "12 B": show(x(12), inBytes),
		"1.5 kB": show(x(1500), inBytes), "2.5 MB": show(x(2.5e6), inBytes), "3": show(x(3), asCount), "0.25 cores": show(x(0.25), inCores),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := median([]time.Duration{0, 3e6, 1e6, 2e6}); !is(got, 2) || median(nil) != nil {
		t.Errorf("the median is %s", figure(got))
	}
}
