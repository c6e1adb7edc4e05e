package loadtest

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/aclements/go-moremath/stats"
)

// A soak looks for figures that grow as long as it lasts: memory, goroutines, and the series of the
// server's metrics. A line is fitted through the samples of the measured window, and the figure
// grows if the whole confidence interval of its slope is above 0 and the growth is not small.

// Trend is the slope of a figure over a soak. The numbers are null with fewer than ten samples.
type Trend struct {
	Figure string   `json:"figure"`
	Unit   string   `json:"unit"`
	Slope  *float64 `json:"per_hour"`
	Low    *float64 `json:"low"` // bounds of the slope, of 99 % confidence
	High   *float64 `json:"high"`
	Grows  bool     `json:"grows"`
}

const (
	soakConfidence = 0.99
	// soakSamples is the least number of samples: with fewer, growth cannot be told from the
	// warm-up.
	soakSamples = 10
	// soakShare is the growth, as a share of the mean, below which a figure does not count as
	// growing: caches and the garbage collector cause as much without a leak.
	soakShare = 0.05
)

// soakFigures are the figures of a soak, with the growth that is noise in any case.
var soakFigures = []struct {
	name  string
	unit  unit
	noise float64
	of    func(*Point) *float64
}{
	{"server.memory", inBytes, 4e6, func(p *Point) *float64 { return p.ServerMemory }},
	{"server.goroutines", asCount, 5, func(p *Point) *float64 { return p.ServerGoroutines }},
	{"server.series", asCount, 5, func(p *Point) *float64 { return p.ServerSeries }},
	{"generator.memory", inBytes, 8e6, func(p *Point) *float64 { return p.Memory }},
	{"generator.goroutines", asCount, 5, func(p *Point) *float64 { return p.Goroutines }},
}

// trends returns the slope of each figure over the measured window.
func trends(r *Result) []Trend {
	var all []Trend
	for _, f := range soakFigures {
		var at, value []float64
		for i := range r.Series.Points {
			p := &r.Series.Points[i]
			if x := f.of(p); x != nil && p.At >= r.Run.From && p.At <= r.Run.To {
				at, value = append(at, p.At/3600), append(value, *x)
			}
		}
		t := Trend{Figure: f.name, Unit: string(f.unit)}
		if len(at) >= soakSamples {
			b, low, high := slope(at, value)
			growth := b * (at[len(at)-1] - at[0])
			t.Slope, t.Low, t.High = hundredths(b), hundredths(low), hundredths(high)
			t.Grows = low > 0 && growth > f.noise && growth > soakShare*stats.Mean(value)
		}
		all = append(all, t)
	}
	return all
}

// slope returns the slope of the least squares through points at different times, and its
// confidence interval by Student's distribution.
func slope(x, y []float64) (b, low, high float64) {
	n, mx, my := float64(len(x)), stats.Mean(x), stats.Mean(y)
	var sxx, sxy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	b = sxy / sxx
	var residual float64
	for i := range x {
		d := y[i] - my - b*(x[i]-mx)
		residual += d * d
	}
	width := stats.InvCDF(stats.TDist{V: n - 2})(1-(1-soakConfidence)/2) * math.Sqrt(residual/(n-2)/sxx)
	return b, b - width, b + width
}

// soaked adds the growing figures to the verdict of a report.
func (r *report) soaked() {
	r.Growth = trends(&r.Result)
	v := &r.Verdict
	for _, t := range r.Growth {
		if t.Grows {
			u := unit(t.Unit)
			v.Pass = false
			v.Reasons = append(v.Reasons, fmt.Sprintf("%s grows by %s an hour (99 %% sure: %s to %s)", t.Figure, show(t.Slope, u), show(t.Low, u), show(t.High, u)))
		}
	}
	if !v.Pass && v.Exit == exitOK {
		v.Exit = exitShort
	}
}

// writeTrends prints the slopes.
func writeTrends(w io.Writer, all []Trend) {
	if len(all) == 0 {
		return
	}
	fmt.Fprint(w, "\ngrowth per hour, with its interval of 99 % confidence\n")
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range all {
		grows := ""
		switch {
		case t.Slope == nil:
			grows = "too few samples"
		case t.Grows:
			grows = "GROWS"
		}
		u := unit(t.Unit)
		fmt.Fprintf(tab, "  %s\t%s\t%s to %s\t%s\n", t.Figure, show(t.Slope, u), show(t.Low, u), show(t.High, u), grows)
	}
	_ = tab.Flush() // Write errors are ignored, as with any print.
}
