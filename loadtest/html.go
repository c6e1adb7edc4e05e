package loadtest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// The page is built from page/src by "make web". It has one script and one style sheet, both within
// it, and its Content-Security-Policy permits nothing else.
//
//go:embed page/report.html
var reportPage []byte

const (
	// maxRuns is the most runs of a page: the colors of more are not told apart.
	maxRuns = 8
	// maxPagePoints bounds the points of all runs of a page, and so its size.
	maxPagePoints = 1200
	// curveTicks is the number of points of a percentile curve for each halving of the distance to
	// 100 %, as HdrHistogram's own plots have.
	curveTicks = 5
)

// page is the data of the report's page.
type page struct {
	Runs   []pageRun `json:"runs"`
	Search *Search   `json:"search,omitempty"`
}

// pageRun is a run in a page. Its curves replace the histograms: pairs of 1/(1-p) and milliseconds.
type pageRun struct {
	Name   string                  `json:"name"`
	Result Result                  `json:"result"`
	Curves map[string][][2]float64 `json:"curves"`
}

// writePage writes one self-contained page with the runs, and with a search if there is one.
func writePage(w io.Writer, runs []pageRun, s *Search) error {
	p := page{Runs: make([]pageRun, len(runs)), Search: s}
	for i, r := range runs {
		r.Curves = map[string][][2]float64{}
		for name, h := range r.Result.Histograms {
			points, err := curve(h)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", r.Name, name, err)
			}
			r.Curves[name] = points
		}
		r.Result.Histograms = nil
		r.Result.Series.Points = thinned(r.Result.Series.Points, maxPagePoints/len(runs))
		p.Runs[i] = r
	}
	// Marshal escapes <, > and &, so that no text ends the element that holds the data.
	data, err := json.Marshal(&p)
	if err != nil {
		return err
	}
	before, after, _ := bytes.Cut(reportPage, []byte("{{data}}"))
	_, err = w.Write(slices.Concat(before, data, after))
	return err
}

// curve returns the percentile curve of a histogram.
func curve(e Histogram) ([][2]float64, error) {
	h, err := e.hdr()
	if err != nil {
		return nil, err
	}
	points := [][2]float64{}
	total := float64(h.TotalCount())
	for _, b := range h.CumulativeDistributionWithTicks(curveTicks) {
		x := total // At 100 %, 1/(1-p) is infinite: use the number of records.
		if b.Quantile < 100 {
			x = min(100/(100-b.Quantile), total)
		}
		points = append(points, [2]float64{*hundredths(x), float64(b.ValueAt) / 1000})
	}
	return points, nil
}

// thinned joins neighbors until there are at most so many points.
func thinned(all []Point, most int) []Point {
	for len(all) > most {
		var half []Point
		for i := 0; i+1 < len(all); i += 2 {
			half = append(half, joined(&all[i], &all[i+1]))
		}
		if len(all)%2 == 1 {
			half = append(half, all[len(all)-1])
		}
		all = half
	}
	return all
}

// reportFiles is the command report: it writes the results of files as one page.
func reportFiles(files []string, out string) error {
	var runs []pageRun
	for _, file := range files {
		r, err := readResult(file)
		if err != nil {
			return runtimeError{err}
		}
		runs = append(runs, pageRun{Name: runName(file, files), Result: *r})
	}
	to := output{format: "html", file: out}
	if err := to.write(nil, func(_ string, w io.Writer) error { return writePage(w, runs, nil) }); err != nil {
		return runtimeError{fmt.Errorf("--html: %w", err)}
	}
	return nil
}

// runName returns the name of a run: the name of its file, with the folder if another file has the
// same name.
func runName(file string, files []string) string {
	name := filepath.Base(file)
	same := func(other string) bool { return other != file && filepath.Base(other) == name }
	if slices.ContainsFunc(files, same) {
		name = filepath.Join(filepath.Base(filepath.Dir(file)), name)
	}
	return strings.TrimSuffix(name, ".json")
}

// reportArgs checks the arguments of the command report.
func reportArgs(files []string, out, name string) error {
	switch {
	case len(files) == 0 || len(files) > maxRuns:
		return fmt.Errorf("report takes 1 to %d results of --out json=FILE, and got %d: see %s report --help", maxRuns, len(files), name)
	case out == "":
		return errors.New("--html: name the file of the page, as in --html report.html")
	}
	return nil
}
