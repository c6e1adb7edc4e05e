package loadtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pageText returns the page of runs.
func pageText(t *testing.T, runs ...pageRun) string {
	t.Helper()
	var b strings.Builder
	if err := writePage(&b, runs, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// dataOf returns the data of a page.
func dataOf(t *testing.T, text string) (p page) {
	t.Helper()
	_, data, _ := strings.Cut(text, `<script id="data" type="application/json">`)
	data, _, _ = strings.Cut(data, "</script>")
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// The largest page has as many runs as fit, each with the series of an hour.
func TestThePageIsSmallAndLoadsNothing(t *testing.T) {
	r := made().Result
	r.Server = *served(t)
	x := 123456.78
	for i := range maxPoints {
		r.Series.Points = append(r.Series.Points, Point{
			At: float64(i) + 0.123, Phase: "measuring", Clients: 10_000, Snapshots: &x, Interval: &x, AgeP50: &x, AgeP99: &x, CallP50: &x, CallP99: &x,
			Tick: &x, TickRate: &x, Joins: 10_000, Errors: 10_000, ServerMemory: &x, ServerGoroutines: &x, ServerSeries: &x, Memory: &x, Goroutines: &x,
		})
	}
	var runs []pageRun
	for i := range maxRuns {
		runs = append(runs, pageRun{Name: fmt.Sprintf("run %d", i), Result: r})
	}
	text := pageText(t, runs...)
	if t.Logf("%d bytes", len(text)); len(text) > 1_000_000 {
		t.Errorf("the page has %d bytes", len(text))
	}
	if p := dataOf(t, text); len(p.Runs) != maxRuns || len(p.Runs[7].Result.Series.Points) < 100 || len(p.Runs[7].Curves["call.latency"]) < 10 {
		t.Errorf("%d runs", len(p.Runs))
	}
	if got := regexp.MustCompile(`https?://|\ssrc=|url\(|@import|href="[^d"]`).FindString(text); got != "" {
		t.Errorf("the page contains %q", got)
	}
	if !strings.Contains(text, `http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-`) {
		t.Error("the page has no policy")
	}
}

// Texts of a server or a game, such as the reasons of refusals, are no markup.
func TestNoTextEndsTheDataOfAPage(t *testing.T) {
	const evil = `</script><script>alert("1")</script><!--`
	r := made().Result
	r.Joins.Refused = map[string]uint64{evil: 3}
	text := pageText(t, pageRun{Name: evil, Result: r})
	if strings.Contains(text, "<script>alert") || strings.Count(text, "</script>") != 2 {
		t.Error("the text is markup")
	}
	if p := dataOf(t, text); p.Runs[0].Name != evil || p.Runs[0].Result.Joins.Refused[evil] != 3 {
		t.Errorf("%+v", p.Runs[0].Result.Joins)
	}
}

// The curve of 80 calls of 20 to 99 ms ends with the slowest of 80.
func TestACurveHasThePercentiles(t *testing.T) {
	r := made().Result
	points, err := curve(r.Histograms["call.latency"])
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range points {
		if i > 0 && (p[0] < points[i-1][0] || p[1] < points[i-1][1]) {
			t.Errorf("it falls at %v", p)
		}
		if p[0] == 2 && p[1] != *r.RPC.RTT.P50 {
			t.Errorf("p50 is %v ms", p[1])
		}
	}
	if last := points[len(points)-1]; last != [2]float64{80, *r.RPC.RTT.Max} {
		t.Errorf("it ends at %v", last)
	}
	if _, err := curve(Histogram{Highest: 5}); err == nil {
		t.Error("another form is accepted")
	}
}

// A thinned series keeps the sums of its counts, and ends at the same time.
func TestAThinnedSeriesKeepsItsCounts(t *testing.T) {
	for n := range 40 {
		var all []Point
		for i := range n {
			all = append(all, Point{At: float64(i), Joins: 1})
		}
		got, joins := thinned(all, 10), uint64(0)
		for _, p := range got {
			joins += p.Joins
		}
		if len(got) > 10 || joins != uint64(n) || n > 0 && got[len(got)-1].At != float64(n-1) {
			t.Errorf("%d points: %+v", n, got)
		}
	}
}

func TestTheReportOfFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	other, search, torn := write("other.json", `{"schema_version": 99, "run": {}}`), write("search.json", `{"schema_version": 1, "knee": 3}`), write("torn.json", "[1")
	out := filepath.Join(dir, "out.html")
	for _, c := range []struct {
		args, err string
		code      int
	}{
		{"testdata/result.json testdata/nothing.json --html " + out, "", 0},
		{"--html " + out, "report takes 1 to 8 results", 2},
		{strings.Repeat("testdata/result.json ", 9) + "--html " + out, "and got 9", 2},
		{"testdata/result.json", "--html: name the file", 2},
		{"testdata/result.json --htm x", "--htm, did you mean --html?", 2},
		{"testdata/none.json --html " + out, "testdata/none.json", 1},
		{other + " --html " + out, "has schema_version 99, and this load client reads 1", 1},
		{search + " --html " + out, "is no result of a load test", 1},
		{torn + " --html " + out, "is no result of a load test", 1},
		{"testdata/result.json --html " + dir + "/none/x.html", "--html: open ", 1},
	} {
		var stdout, stderr strings.Builder
		code := execute(t.Context(), append([]string{"loadclient", "report"}, strings.Fields(c.args)...), &stdout, &stderr, idleBot{})
		lines := min(code, 1) // of an error
		if code != c.code || !strings.Contains(stderr.String(), c.err) || strings.Count(stderr.String(), "\n") != lines || stdout.String() != "" {
			t.Errorf("report %s: exit %d\n%s%s", c.args, code, &stdout, &stderr)
		}
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if p := dataOf(t, string(text)); len(p.Runs) != 2 || p.Runs[0].Name != "result" || p.Runs[1].Result.RPC.RTT.P50 != nil {
		t.Errorf("%+v", p.Runs)
	}
}

func TestRunsOfOneNameHaveTheirFolder(t *testing.T) {
	files := []string{"old/1.json", "new/1.json", "x/2.json"}
	for i, want := range []string{"old/1", "new/1", "2"} {
		if got := filepath.ToSlash(runName(files[i], files)); got != want {
			t.Errorf("%s is %s", files[i], got)
		}
	}
}

// A search has a page too, with the runs on both sides of its knee.
func TestThePageOfASearch(t *testing.T) {
	met, notMet := made().Result, made().Result
	notMet.Clients.Wanted = 3
	s := &Search{Knee: 2, Broken: 3, Steps: []Step{{Clients: 2, Met: true}, {Clients: 3}}, met: &met, notMet: &notMet}
	var b strings.Builder
	if err := s.write("html", &b); err != nil {
		t.Fatal(err)
	}
	if p := dataOf(t, b.String()); p.Search == nil || p.Search.Knee != 2 || len(p.Runs) != 2 || p.Runs[1].Name != "3 clients" {
		t.Errorf("%+v", p.Search)
	}
}
