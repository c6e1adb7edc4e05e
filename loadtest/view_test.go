package loadtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/testing/golden"
)

func ms(x float64) *float64 { return &x }

// statusAt is the state of a run with thresholds of each outcome and hostile reasons of errors.
func statusAt(second int) *status {
	x := float64(second)
	of := func(k float64) Spread { return Spread{ms(k), ms(2 * k), ms(3 * k), ms(4 * k)} }
	return &status{
		Point: Point{At: x, Clients: int64(second), Snapshots: ms(60 - x/10), Interval: ms(18), AgeP50: ms(9), AgeP99: ms(20 + x), CallP50: ms(30), CallP99: ms(44), Tick: ms(x / 2), Joins: 1, Errors: uint64(second) % 3},
		title: "arena · 127.0.0.1:4433", phase: measuring, done: time.Duration(second) * time.Second, whole: 40 * time.Second, wanted: 30,
		stage: "step 3 of 10: 9 of 30 clients, the next in 2s", tick: ms(16.667), own: Process{CPU: ms(0.4)}, late: ms(0.9), joined: 31,
		times:  []timesRow{{"snapshot interval", of(16), of(17)}, {"snapshot age", of(9), of(10)}, {"call latency", of(30), of(31)}, {"server tick", of(0.4), of(0.5)}, {"server lateness", Spread{}, of(0.05)}, {"own lateness", of(1), of(2)}},
		errors: tally{"refused: full": 12, "timeout": 3, "CODE_KICKED: \x1b[2J\u202e": 1},
		judged: []Judgement{
			{Threshold: "snapshot.rate.p50>=99%", Unit: "Hz", Value: ms(59.9), Bound: ms(59.4), Met: true}, {Threshold: "server.cpu<1", Unit: "cores", Bound: ms(1)},
			{Threshold: "call.latency.p99<120ms", Unit: "ms", Value: ms(44), Bound: ms(120), Met: true}, {Threshold: "snapshot.age.p99<3ticks+rtt", Unit: "ms", Value: ms(88), Bound: ms(50.1)},
		},
	}
}

// viewOf returns a view after some seconds, of a size.
func viewOf(seconds, width, height int) *view {
	v := newView()
	v.Update(tea.WindowSizeMsg{Width: width, Height: height})
	for second := range seconds {
		v.take(statusAt(second + 1))
	}
	return v
}

// Every screen fits its terminal, is readable without colors, shows no control character of a
// server's text, and equals its file in testdata.
func TestScreens(t *testing.T) {
	search := viewOf(20, 120, 40)
	search.say("10 clients: met\x1b[2J")
	search.say("20 clients: met")
	early := viewOf(1, 80, 24)
	early.now.judged, early.now.phase, early.now.whole, early.now.errors = nil, ramping, 0, tally{}
	none := viewOf(1, 80, 24)
	none.now.judged, none.now.Tick = []Judgement{}, nil
	for name, v := range map[string]*view{
		"connecting": viewOf(0, 80, 24), "80x24": viewOf(30, 80, 24), "120x40": viewOf(30, 120, 40), "200x60": viewOf(30, 200, 60), "least": viewOf(30, minWidth, minHeight),
		"small": viewOf(30, 50, 12), "search": search, "early": early, "no-thresholds": none,
	} {
		height := v.height
		if name == "small" { // It only asks for a larger terminal.
			height = 0
		}
		golden.Screen(t, "testdata/view-"+name+".txt", v.View().Content, v.width, height)
	}
}

// A run that begins anew, as those of a search do, begins new charts; a long one keeps the last
// minutes, and the last messages.
func TestChartsAreBounded(t *testing.T) {
	v := viewOf(2*viewHistory, 80, 24)
	if n := len(v.curves.age); n != viewHistory || v.curves.age[n-1] != 20+2*viewHistory {
		t.Errorf("%d values", n)
	}
	if v.take(statusAt(1)); len(v.curves.age) != 1 {
		t.Errorf("%d values of a new run", len(v.curves.age))
	}
	for n := range 2 * maxSaid {
		v.say(fmt.Sprint(n))
	}
	if len(v.said) != maxSaid || v.said[0] != fmt.Sprint(maxSaid) {
		t.Errorf("%d messages from %s", len(v.said), v.said[0])
	}
}

// q and Ctrl-C end the view, other keys do not.
func TestKeysEndTheView(t *testing.T) {
	for key, want := range map[tea.Key]bool{{Code: 'q', Text: "q"}: true, {Code: 'c', Mod: tea.ModCtrl}: true, {Code: 'x', Text: "x"}: false} {
		v := viewOf(1, 80, 24)
		if _, do := v.Update(tea.KeyPressMsg(key)); (do != nil) != want || v.stopped != want {
			t.Errorf("%v ends it: %v", key, v.stopped)
		}
	}
}

// terminal is an output that tests wait for.
type terminal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *terminal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// The view leaves the terminal as it was, and then its messages follow; later ones are printed at
// once. It ends by close, by the context, or by a key, which interrupts the run.
func TestTheViewEnds(t *testing.T) {
	for name, interrupts := range map[string]bool{"close": false, "context": false, "key": true} {
		var out terminal
		s := newScreen(&out, false)
		ctx, cancel := context.WithCancel(t.Context())
		keyboard, typed := io.Pipe()
		interrupted := false
		s.open(ctx, keyboard, []string{"TERM=xterm"}, func() { interrupted = true })
		s.status(statusAt(1))
		s.note("first")
		switch name {
		case "context":
			cancel()
		case "key":
			if _, err := io.WriteString(typed, "q"); err != nil {
				t.Fatal(err)
			}
		}
		if name != "close" {
			<-s.ended
		}
		s.close()
		s.note("second")
		if text := out.String(); !strings.HasSuffix(text, "first\nsecond\n") || s.showsStatus() || interrupted != interrupts {
			t.Errorf("%s: interrupted %v: %q", name, interrupted, text)
		}
		cancel()
		_ = typed.Close() // The program's reader waits for a key.
	}
}

// The view's figures are those of the last second and of the window until now, for the thresholds
// too; errors are counted over the run.
func TestStatus(t *testing.T) {
	w, p := bench()
	r := w.run
	r.clock, r.workers, r.bot, r.dialErrors = clock.NewSystem(), []*worker{w}, idleBot{}, tally{"no answer": 1}
	r.window.from.Store(0)
	r.window.to.Store(int64(time.Hour))
	r.opts.thresholds, r.opts.duration, r.opts.stormAt = []string{"snapshot.age.p99<31ms", "snapshot.interval.max<31ms", "server.cpu<1", "snapshot.rate.p50>1Hz"}, time.Minute, -1
	r.opts.admin = "http://127.0.0.1:1"
	if err := r.opts.parseThresholds(); err != nil {
		t.Fatal(err)
	}
	r.enter(measuring)
	p.received, p.stats.RTT = 1_000_000, 20*time.Millisecond
	w.players = []*player{p}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // It waits for no worker.
	s := newSampler(ctx, r)
	var st *status
	for range 2 {
		record(w.live.age, 30*time.Millisecond)
		record(w.live.interval, 40*time.Millisecond)
		w.live.reasons.add("timeout")
		s.gather(ctx)
		w.handOver()
		s.gather(ctx)
		point := s.point(r.now())
		st = s.status(&point, &progress{run: r})
	}
	var judged []string
	for _, j := range st.judged {
		judged = append(judged, fmt.Sprint(j.Metric, " ", j.Met, " ", j.Value != nil))
	}
	if got, want := strings.Join(judged, " "), "snapshot.age.p99 true true snapshot.interval.max false true server.cpu false false snapshot.rate.p50 true true"; got != want {
		t.Errorf("judged %s", got)
	}
	if st.errors["timeout"] != 2 || st.errors["no answer"] != 1 || s.window.age.TotalCount() != 2 || !is(st.times[1].second.P50, 30) || st.whole != time.Minute || st.stage != "const: 1 clients" {
		t.Errorf("errors %v, %d ages in the window, %+v", st.errors, s.window.age.TotalCount(), st)
	}
	if len(r.dialErrors) != 1 {
		t.Errorf("the refusals are changed: %v", r.dialErrors)
	}
}

// The stage names the planned number of clients, and the next change.
func TestStages(t *testing.T) {
	for want, c := range map[string]struct {
		schedule, storm, churn, slow string
		at                           time.Duration
	}{
		"const: 20 clients": {at: 3 * time.Second}, "step 1 of 10: 2 of 20 clients, the next in 1s": {schedule: "step"},
		"step 3 of 10: 6 of 20 clients, the next in 1s": {schedule: "step", at: 2 * time.Second}, "step 10 of 10: 20 of 20 clients": {schedule: "step", at: 10 * time.Second},
		"line: 11 of 20 clients": {schedule: "line", at: 5 * time.Second}, "const: 20 clients · churn 1%/s · storm in 2s": {storm: "5s", churn: "1%/s", at: 3 * time.Second},
		"const: 20 clients · storm 3s ago · slow readers 10%": {storm: "5s", slow: "10%", at: 8 * time.Second},
	} {
		o := options{clients: 20, duration: 10 * time.Second, schedule: c.schedule, storm: c.storm, churn: c.churn, slow: c.slow}
		if err := o.parseSchedule(); err != nil {
			t.Fatal(err)
		}
		if got := o.stage(c.at); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
