package loadtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/aclements/go-moremath/stats"

	"github.com/netloop/netloop/internal/spelling"
)

// A comparison of two sets of runs, each with any number of repetitions. A change counts if the
// ranks of the runs differ by more than chance allows (the test of Mann and Whitney, as benchstat
// does): it assumes no distribution, and one disturbed run does not decide it.
const (
	// significance is the largest probability of a change that is only chance: small, because
	// several figures are judged. With fewer than enoughRuns on each side no change could reach it.
	significance = 0.01
	enoughRuns   = 5
	// maxResult bounds a file: a result of many hours takes a few megabytes.
	maxResult = 64 << 20
)

// change is a line of a comparison.
type change struct {
	metric   metric
	a, b     float64 // medians
	relative float64 // b to a: 0.1 is 10 % more; NaN if a is 0
	p        float64 // the probability of such a difference by chance; 1 with too few runs
	judged   bool
	worse    bool // beyond the tolerance, and not by chance
}

// compareResults compares the named figures of two sets of runs. judges selects the figures that
// decide: by default those that repeat well.
func compareResults(a, b []Result, tolerance float64, judges []string) []change {
	var all []change
	for _, m := range allMetrics {
		x, y := known(a, m), known(b, m)
		if len(x) == 0 || len(y) == 0 {
			continue
		}
		c := change{metric: m, a: middle(x), b: middle(y), p: 1, judged: m.gate}
		if len(judges) > 0 {
			c.judged = slices.Contains(judges, m.name)
		}
		c.relative = math.NaN()
		switch {
		case c.a != 0:
			c.relative = c.b/c.a - 1
		case c.b == 0:
			c.relative = 0
		}
		few := len(x) < enoughRuns || len(y) < enoughRuns
		if !few {
			// The test fails only if a sample is empty or all values are equal: then there is no
			// change.
			if u, err := stats.MannWhitneyUTest(x, y, stats.LocationDiffers); err == nil {
				c.p = u.P
			}
		}
		beyond := c.relative*float64(-m.better) > tolerance || math.IsNaN(c.relative) && m.better == lower
		c.worse = c.judged && beyond && (few || c.p < significance)
		all = append(all, c)
	}
	return all
}

// known returns the known values of a figure.
func known(runs []Result, m metric) (all []float64) {
	for i := range runs {
		if x := m.of(&runs[i]); x != nil {
			all = append(all, *x)
		}
	}
	return all
}

// middle returns the median.
func middle(all []float64) float64 { return stats.Sample{Xs: slices.Clone(all)}.Quantile(0.5) }

// readResults reads the results that a word of the command line names: a file, a folder of .json
// files, or several of both between commas. Invalid runs are left out, with a note.
func readResults(word string, note func(string)) (all []Result, err error) {
	for name := range strings.SplitSeq(word, ",") {
		files := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(name, "*.json")); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			r, err := readResult(file)
			if err != nil {
				return nil, err
			}
			if r.Saturated {
				note(file + " is left out: its load client was too slow")
				continue
			}
			all = append(all, *r)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no valid result: name the files of --out json=FILE, or a folder of them", word)
	}
	return all, nil
}

// readResult reads one file.
func readResult(file string) (*Result, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxResult+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxResult {
		return nil, fmt.Errorf("%s is larger than %d bytes", file, maxResult)
	}
	var r Result
	version := struct {
		Schema *int            `json:"schema_version"`
		Run    json.RawMessage `json:"run"` // a search has none
	}{}
	switch err := json.Unmarshal(text, &version); {
	case err != nil || version.Schema == nil, version.Run == nil && *version.Schema == SchemaVersion:
		return nil, fmt.Errorf("%s is no result of a load test: name a file of --out json=FILE", file)
	case *version.Schema != SchemaVersion:
		return nil, fmt.Errorf("%s has schema_version %d, and this load client reads %d: measure again, or use the load client that wrote it", file, *version.Schema, SchemaVersion)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &r, nil
}

// compareOptions are the flags of the command compare.
type compareOptions struct {
	tolerance string
	metrics   []string
}

// compareFiles is the command compare A B. It returns the exit status.
func compareFiles(o *compareOptions, args []string, stdout io.Writer, note func(string)) (int, error) {
	tolerance, err := parseShare(o.tolerance)
	if err != nil {
		return exitUsage, badFlag("tolerance", o.tolerance, "use a share, as in 5%")
	}
	for _, name := range o.metrics {
		if _, ok := named(name); !ok {
			return exitUsage, fmt.Errorf("--metric: %q is no metric%s: docs/LOAD.md lists them", name, nearest(name))
		}
	}
	a, errA := readResults(args[0], note)
	b, errB := readResults(args[1], note)
	if err := errors.Join(errA, errB); err != nil {
		return exitRuntime, runtimeError{err}
	}
	changes := compareResults(a, b, tolerance, o.metrics)
	if writeChanges(stdout, changes, len(a), len(b), o.tolerance) > 0 {
		return exitShort, nil
	}
	return exitOK, nil
}

// nearest returns ", did you mean NAME?" for the metric nearest to a mistyped one.
func nearest(name string) string {
	if best := spelling.Nearest(name, metricNames()); best != "" {
		return ", did you mean " + best + "?"
	}
	return ""
}

// writeChanges prints the table, the verdict first, and returns the number of regressions.
func writeChanges(w io.Writer, all []change, a, b int, tolerance string) (worse int) {
	for _, c := range all {
		if c.worse {
			worse++
		}
	}
	if worse > 0 {
		fmt.Fprintf(w, "WORSE (exit %d): %d figures by more than %s\n", exitShort, worse, tolerance)
	} else {
		fmt.Fprintf(w, "OK: no judged figure is worse by more than %s\n", tolerance)
	}
	if a < enoughRuns || b < enoughRuns {
		fmt.Fprintf(w, "%d and %d runs: without %d on each side chance cannot be excluded, and the tolerance decides alone\n", a, b, enoughRuns)
	}
	fmt.Fprintln(w)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "median of\tA (%d runs)\tB (%d runs)\tchange\tchance\t\n", a, b)
	for _, c := range all {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\n", c.metric.name, show(&c.a, c.metric.unit), show(&c.b, c.metric.unit), c.size(), c.chance(), c.mark())
	}
	_ = tab.Flush() // Write errors are ignored, as with any print.
	return worse
}

// size prints the change, and ~ for one that may be chance.
func (c *change) size() string {
	switch {
	case c.p >= significance && c.p < 1, c.relative == 0:
		return "~"
	case math.IsNaN(c.relative):
		return "new"
	}
	return fmt.Sprintf("%+.1f %%", 100*c.relative)
}

// chance prints the probability that the change is chance.
func (c *change) chance() string {
	if c.p == 1 {
		return ""
	}
	return fmt.Sprintf("p=%.3f", c.p)
}

func (c *change) mark() string {
	switch {
	case c.worse:
		return "WORSE"
	case c.judged:
		return "judged"
	}
	return ""
}
