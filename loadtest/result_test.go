package loadtest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/golden"
)

// made is a report of made-up records.
func made() *report {
	r := &report{rec: newRecorder(), length: 20 * time.Second, tick: frame, dialErrors: tally{}, lost: tally{}, notEqual: tally{}}
	r.Clients = Clients{Wanted: 2, Connected: 2, Verifying: 2}
	for i := range 80 {
		record(r.rec.rtt, time.Duration(20+i)*time.Millisecond)
	}
	r.rec.intended, r.rec.sent, r.rec.answered = 80, 80, 80
	for range 2400 {
		record(r.rec.interval, 16667*time.Microsecond)
		record(r.rec.age, 9500*time.Microsecond)
		record(r.rec.lateness, 300*time.Microsecond)
		r.rec.snapshots++
		r.rec.bytes += 1500
	}
	r.converged = 2
	feelOf(r.rec.feel)
	r.fill([]uint64{1199, 1201})
	return r
}

// feelOf makes up records of Feel.
func feelOf(f *feelings) {
	var was, now client.Stats
	for i := range 2400 {
		now.Drawn, now.ViewDelay = now.Drawn+1, 40*time.Millisecond
		now.Inputs, now.InputPackets, now.InputBytes = now.Inputs+1, now.InputPackets+1, now.InputBytes+21
		if i%100 == 0 {
			now.Starved, now.InputsMissed = now.Starved+1, now.InputsMissed+1
			now.Prediction.Mispredicted += 2
			now.Prediction.MispredictedLate++
		}
		f.frame(&now, &was)
		was = now
	}
	m := Meter{worker: &worker{run: &run{}, rec: &recorder{feel: f}}}
	m.worker.run.window.open(0, time.Hour)
	for i := range 20 {
		m.hit(0, i > 0)
		m.reacted(0, i/19)
		m.corrected(0, float64(i)/2)
	}
	m.hit(2*time.Hour, false) // After the window, like the next two records.
	m.reacted(2*time.Hour, 60)
	m.corrected(2*time.Hour, 99)
}

// account returns a server's /ticks after n ticks of 2 ms.
func account(n uint64) *ticks.Snapshot {
	s := &ticks.Snapshot{Ticks: n, Overruns: n / 100, DroppedTicks: n / 1000, Budget: time.Second / 60, Uptime: time.Duration(n) * time.Second / 60}
	for range n {
		s.Tick.Record(2 * time.Millisecond)
		s.Lateness.Record(100 * time.Microsecond)
	}
	return s
}

func TestJSONNamesAreStable(t *testing.T) {
	r := made()
	r.Server = serverResult(account(600), account(1800), func(text string) { t.Error(text) })
	text, err := json.MarshalIndent(r.Result, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/result.json", string(text)+"\n")
}

// Unknown values are null, and every name is present.
func TestJSONOfUnknownValuesIsNull(t *testing.T) {
	r := &report{rec: newRecorder(), tick: frame}
	r.Clients.Wanted = 2
	r.fill(nil)
	text, err := json.MarshalIndent(r.Result, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/nothing.json", string(text)+"\n")
}

func TestSummaryOfAGoodRun(t *testing.T) {
	r := made()
	r.Server = serverResult(account(600), account(1800), func(text string) { t.Error(text) })
	var b strings.Builder
	writeSummary(&b, &options{addr: "127.0.0.1:4433", seed: 1}, r)
	golden.Check(t, "testdata/good.txt", b.String())
}

func TestSummaryOfABadRun(t *testing.T) {
	r := made()
	r.Clients = Clients{Wanted: 5, Connected: 3, Verifying: 2, Failed: 2, Disconnected: 1, Drops: 3, Resumes: 2}
	r.dialErrors, r.lost, r.notEqual = tally{"refused: full: 3 players": 2}, tally{"lost": 1}, tally{"client: the state differs from the server's": 1}
	r.converged, r.rec.sent = 1, 70
	r.fill([]uint64{1199, 1201, 500})
	r.Simulated, r.network = &Simulated{Network: "rtt=150ms,loss=5%"}, new(netem.Stats)
	var b strings.Builder
	writeSummary(&b, &options{addr: "127.0.0.1:4433", seed: 1}, r)
	golden.Check(t, "testdata/bad.txt", b.String())
}

func TestEachShortfallIsReported(t *testing.T) {
	if got := made().shortfalls(); len(got) != 0 {
		t.Fatalf("a good run has shortfalls: %q", got)
	}
	for name, damage := range map[string]func(*report){
		"did not connect": func(r *report) { r.Clients.Wanted++ },
		"lost the":        func(r *report) { r.Clients.Disconnected++ },
		"1 of 2 clients could not find their state equal to the": func(r *report) { r.converged--; r.fill([]uint64{1, 1}) },
		"too slow":    func(r *report) { r.rec.sent = 70; r.fill([]uint64{1, 1}) },
		"interrupted": func(r *report) { r.interrupted = true },
	} {
		r := made()
		damage(r)
		if got := r.shortfalls(); len(got) != 1 || !strings.Contains(got[0], name) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestARestartedServerHasNoFigures(t *testing.T) {
	said := ""
	if got := serverResult(account(1800), account(600), func(text string) { said = text }); got != (Server{}) || said == "" {
		t.Errorf("figures %+v, said %q", got, said)
	}
}

// A game without hits has no line of them, and one without inputs has no line at all.
func TestSummaryWithoutHitsAndInputs(t *testing.T) {
	for want, feel := range map[string]Feel{"inputs\nown ship\npredicted\n": {Inputs: 1}, "": {}} {
		var b strings.Builder
		writeFeel(func(subject, _ string, _ ...any) { b.WriteString(subject + "\n") }, &feel)
		if got := b.String(); got != want {
			t.Errorf("the lines are\n%s", got)
		}
	}
}
