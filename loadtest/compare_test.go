package loadtest

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded returns real results of one server, measured one after the other on a machine with other
// work: ten bots of the arena, 4 s each.
func recorded(t *testing.T) (all []Result) {
	t.Helper()
	text, err := os.ReadFile("testdata/runs.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) < 16 {
		t.Fatalf("%d results, %v", len(all), err)
	}
	return all
}

// worsened returns a copy of a result in which all judged figures are worse by a share.
func worsened(t *testing.T, r Result, share float64) Result {
	t.Helper()
	text, err := json.Marshal(r)
	var w Result
	if err == nil {
		err = json.Unmarshal(text, &w) // A copy with numbers of its own.
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range allMetrics {
		if x := m.of(&w); m.gate && x != nil {
			*x *= 1 - float64(m.better)*share
		}
	}
	return w
}

// halves deals recorded results to two sides, by a seed.
func halves(all []Result, seed uint64) (a, b []Result) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for i, n := range rng.Perm(len(all)) {
		if i%2 == 0 {
			a = append(a, all[n])
		} else {
			b = append(b, all[n])
		}
	}
	return a, b
}

// Of recorded runs, 10 % worse figures are found in ten of ten comparisons, and nothing in ten of
// ten comparisons of unchanged ones, nor of better ones.
func TestCompareFindsTenPercentAndNothingElse(t *testing.T) {
	all := recorded(t)
	for seed := range uint64(10) {
		a, b := halves(all, seed)
		for _, share := range []float64{0, 0.1, -0.1} {
			var changed []Result
			for _, r := range b {
				changed = append(changed, worsened(t, r, share))
			}
			changes := compareResults(a, changed, 0.05, nil)
			var w strings.Builder
			if n := writeChanges(&w, changes, len(a), len(b), "5%"); n > 0 != (share > 0) {
				t.Errorf("seed %d: of figures that are %.0f %% worse, %d are found:\n%s", seed, 100*share, n, &w)
			}
		}
	}
}

// With few runs the tolerance decides alone; --metric selects the judged figures.
func TestCompareOfSingleRuns(t *testing.T) {
	all := recorded(t)
	a, b := all[:1], []Result{worsened(t, all[0], 0.2)}
	count := func(tolerance float64, judges ...string) (n int) {
		for _, c := range compareResults(a, b, tolerance, judges) {
			if c.worse {
				n++
			}
		}
		return n
	}
	if count(0.1) < 4 || count(0.25) != 0 || count(0.1, "snapshot.rate.p50") != 1 || count(0.1, "snapshot.age.p99") != 0 {
		t.Errorf("%d, %d, %d and %d figures", count(0.1), count(0.25), count(0.1, "snapshot.rate.p50"), count(0.1, "snapshot.age.p99"))
	}
}

// Files are compared by themselves, in folders and in lists. Files that cannot be used are named.
func TestCompareReadsFilesAndFolders(t *testing.T) {
	all, dir := recorded(t), t.TempDir()
	write := func(name string, r any) string {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		text, ok := r.(string)
		if !ok {
			js, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			text = string(js)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for i := range 6 {
		write(fmt.Sprintf("a/%d.json", i), all[i])
		write(fmt.Sprintf("b/%d.json", i), worsened(t, all[6+i], 0.1))
	}
	late := all[0]
	late.Saturated = true
	saturated := write("a/late.json", late)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	other := write("other.json", `{"schema_version": 99}`)
	for _, c := range []struct {
		args, out, err string
		code           int
	}{
		{a + " " + b, "WORSE (exit 99)", saturated + " is left out", 99},
		{b + " " + a, "OK: no judged figure", saturated + " is left out", 0},
		{a + " " + a + " --tolerance 1%", "(6 runs)", saturated, 0},
		{a + "/0.json," + a + "/1.json " + b + "/0.json", "2 and 1 runs: without 5", "", -1},
		{a + " " + other, "", other + " has schema_version 99, and this load client reads 1", 1},
		{a + " " + write("x.json", "{}"), "", "is no result of a load test", 1},
		{a + " " + write("y.json", "[1"), "", "is no result of a load test", 1},
		{a + " " + dir + "/none.json", "", "none.json", 1},
		{a + " " + t.TempDir(), "", "has no valid result", 1},
	} {
		var stdout, stderr strings.Builder
		code := execute(t.Context(), append([]string{"loadclient", "compare"}, strings.Fields(c.args)...), &stdout, &stderr, idleBot{})
		if c.code >= 0 && code != c.code || !strings.Contains(stdout.String(), c.out) || !strings.Contains(stderr.String(), c.err) {
			t.Errorf("compare %s: exit %d\n%s%s", c.args, code, &stdout, &stderr)
		}
	}
}

// A file on a full disk is an error, and the report for people is printed anyway.
func TestAFullDiskKeepsTheText(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	o := &options{out: []string{"json=/dev/full", "csv=/dev/full", "hlog=/dev/full"}}
	if err := o.parseOut(); err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder
	p := &program{stdout: &stdout}
	r := made()
	r.Series.Points = []Point{{}}
	err := o.writeOutputs(p.stdout, func(format string, w io.Writer) error { return write(format, o, r, w) })
	if err == nil || strings.Count(err.Error(), "--out: write /dev/full") != 3 || !strings.HasPrefix(stdout.String(), "OK") {
		t.Errorf("%v\n%s", err, &stdout)
	}
}
