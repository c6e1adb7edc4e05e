package loadtest

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/slowtick"
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
	r.judge(nil)
	return r
}

// feelOf makes up records of Feel.
func feelOf(f *feelRecorder) {
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

// served returns the server's figures between 600 and 1 800 ticks.
func served(t *testing.T) *Server {
	t.Helper()
	s := serverResult(serverTicks(account(600), account(1800), func(text string) { t.Error(text) }))
	return &s
}

func TestJSONNamesAreStable(t *testing.T) {
	r := made()
	r.Server = *served(t)
	r.Run = (&run{opts: options{command: []string{"loadclient"}, values: map[string]string{"clients": "2"}}}).describe(r)
	r.Run.Machine, r.Run.Build = Machine{}, Build{}
	r.Series = Series{Every: 1, Points: []Point{{At: 1, Phase: "measuring", AgeP99: r.Snapshots.Age.P99}}}
	r.Worst = worst(nil, []slowtick.Record{{Tick: 7, Duration: 9 * time.Millisecond, Blame: slowtick.System{Name: "ai", Stage: "Update", Cost: 8 * time.Millisecond}}})
	var b strings.Builder
	if err := write("json", nil, r, &b); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/result.json", b.String())
	if err := Fits([]byte(b.String())); err != nil {
		t.Error(err)
	}
}

// The schema is that of the type Result, and refuses other texts: go test -rewrite writes it.
func TestTheSchemaIsThatOfTheResult(t *testing.T) {
	schema, err := jsonschema.For[Result](nil)
	if err != nil {
		t.Fatal(err)
	}
	schema.Schema, schema.Title = "https://json-schema.org/draft/2020-12/schema", "the result of a load test of netloop, of schema_version "+strconv.Itoa(SchemaVersion)
	var version any = SchemaVersion
	schema.Properties["schema_version"].Const = &version
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, schemaFile, string(text)+"\n")
	good, err := os.ReadFile("testdata/result.json")
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{`"schema_version": 1`: `"schema_version": 2`, `"seed": 0`: `"seed": "0"`, `"converged": `: `"agreed": `} {
		if Fits([]byte(strings.Replace(string(good), from, to, 1))) == nil {
			t.Errorf("it accepts %s", to)
		}
	}
}

// Only ticks between the two readings count, the slowest first.
func TestTheWorstTicksAreOfTheWindow(t *testing.T) {
	tick := func(n uint64, ms int) slowtick.Record {
		return slowtick.Record{Tick: n, Duration: time.Duration(ms) * time.Millisecond}
	}
	before, after := []slowtick.Record{tick(1, 99), tick(2, 5)}, []slowtick.Record{tick(1, 99), tick(2, 5)}
	for n := range 12 {
		after = append(after, tick(uint64(100+n), 10+n))
	}
	got := worst(before, after)
	if len(got) != worstTicks || got[0].Tick != 111 || got[worstTicks-1].Tick != 102 {
		t.Errorf("%+v", got)
	}
}

// Metrics of the server are differences between two readings; a counter that fell has none.
func TestServersMetricsAreOfTheWindow(t *testing.T) {
	before := parseSamples("# HELP x\na_total 5\nlag_bucket{le=\"0.001\"} 10\nlag_bucket{le=\"0.005\"} 20\nlag_bucket{le=\"+Inf\"} 20\n")
	after := parseSamples("a_total 4\nlag_bucket{le=\"0.001\"} 10\nlag_bucket{le=\"0.005\"} 119\nlag_bucket{le=\"+Inf\"} 120\nbroken\n")
	if got := after.upperBound(before, "lag", 0.99); !is(got, 5) || after.grown(before, "a_total") != nil || after.upperBound(before, "lag", 0.999) != nil {
		t.Errorf("p99 %s ms", figure(got))
	}
	a, b := 3.0, 5.0
	if p := process(usage{cpu: &a, gcCycles: &a}, usage{cpu: &b, gcCycles: &b, memory: &b}, 4*time.Second); *p.CPU != 0.5 || *p.GCCycles != 2 || *p.Memory != 5 || p.GCCPU != nil {
		t.Errorf("the process: %+v", p)
	}
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
	r.Server = *served(t)
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
	r.judge(nil)
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
		"too slow":                     func(r *report) { r.rec.sent = 70; r.fill([]uint64{1, 1}) },
		"interrupted":                  func(r *report) { r.interrupted = true },
		"the server stopped answering": func(r *report) { r.dead = true },
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
	r := made()
	r.serverFigures(&reading{ticks: account(1800)}, &reading{ticks: account(600)}, func(text string) { said = text })
	if r.Server != (Server{}) || said == "" {
		t.Errorf("figures %+v, said %q", r.Server, said)
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
