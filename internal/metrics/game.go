package metrics

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// gamePrefix begins the names of a game's metrics, after netloop_. No row of the table has this
// prefix.
const gamePrefix = "game_"

// The limits on a game's metrics. Together they allow at most 64 × 16 series, or 64 × 16 × 19
// series of histograms.
const (
	MaxGameMetrics = 64
	MaxGameValues  = 16 // values of a label
	MaxGameBuckets = 16 // buckets of a histogram, without the bucket of infinity
	maxGameName    = 64 // bytes of a name, of a label and of a value
)

// GameKind is the kind of a game's metric.
type GameKind uint8

// The kinds of a game's metrics.
const (
	GameCounter GameKind = iota
	GameGauge
	GameHistogram
)

// Game is a metric that a game declares. A label has a fixed set of values, so that no series
// belongs to a single client.
type Game struct {
	Kind    GameKind
	Name    string // without netloop_game_, and without _total of a counter
	Help    string
	Label   string // empty for none
	Values  []string
	Buckets []float64 // upper bounds of a histogram's buckets
}

var (
	gameName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	gameEnds  = []string{"_total", "_bucket", "_sum", "_count", "_info"}
	gameLabel = []string{"le", "job", "instance"} // labels that Prometheus sets itself
)

// Check returns the reason for which the declaration is invalid.
func (g *Game) Check() error {
	switch {
	case len(g.Name) > maxGameName || !gameName.MatchString(g.Name):
		return fmt.Errorf("the name must be lower-case letters, digits and underscores, the first a letter, at most %d", maxGameName)
	case slices.ContainsFunc(gameEnds, func(end string) bool { return strings.HasSuffix(g.Name, end) }):
		return errors.New("the name must not end in _total, _bucket, _sum, _count or _info: a counter's series get _total")
	case strings.TrimSpace(g.Help) == "" || !utf8.ValidString(g.Help):
		return errors.New("the help text is empty or no UTF-8")
	}
	return errors.Join(g.checkLabel(), g.checkBuckets())
}

func (g *Game) checkLabel() error {
	switch {
	case g.Label == "" && len(g.Values) == 0:
		return nil
	case len(g.Label) > maxGameName || !gameName.MatchString(g.Label) || slices.Contains(gameLabel, g.Label):
		return fmt.Errorf("label %q must be lower-case letters, digits and underscores, at most %d, and not le, job or instance", g.Label, maxGameName)
	case len(g.Values) == 0 || len(g.Values) > MaxGameValues:
		return fmt.Errorf("label %q has %d values: use 1 to %d", g.Label, len(g.Values), MaxGameValues)
	}
	for i, v := range g.Values {
		if v == "" || len(v) > maxGameName || !utf8.ValidString(v) || slices.Contains(g.Values[:i], v) {
			return fmt.Errorf("value %q of label %q is empty, longer than %d bytes, no UTF-8 or given twice", v, g.Label, maxGameName)
		}
	}
	return nil
}

func (g *Game) checkBuckets() error {
	if g.Kind != GameHistogram {
		return nil
	}
	if n := len(g.Buckets); n == 0 || n > MaxGameBuckets {
		return fmt.Errorf("there are %d buckets: use 1 to %d", n, MaxGameBuckets)
	}
	for i, b := range g.Buckets {
		if math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && b <= g.Buckets[i-1] {
			return fmt.Errorf("bucket %v must be finite and greater than the one before", b)
		}
	}
	return nil
}

// row returns the row of the metric.
func (g *Game) row() row {
	r := row{name: gamePrefix + g.Name, kind: counter, labels: g.Label, help: g.Help}
	switch g.Kind {
	case GameCounter:
		r.name += "_total"
	case GameGauge:
		r.kind = gauge
	case GameHistogram:
		r.kind = histogram
	}
	return r
}

// gameSeries are the series of a game's metric, by the index of the label's value.
type gameSeries struct {
	counts []*atomic.Uint64
	times  []prometheus.Observer
	gauges int // index of the first value in the gauges of an Account
}

// addGame makes the series of a game's metric, so that a rate has the step from 0.
func (m *Metrics) addGame(g *Game) {
	f := newFamily(g.row(), g.Buckets, &m.refused)
	s := gameSeries{gauges: m.gauges}
	sets := g.labelSets()
	for _, labels := range sets {
		switch g.Kind {
		case GameCounter:
			s.counts = append(s.counts, f.value(labels))
		case GameHistogram:
			s.times = append(s.times, f.times.WithLabelValues(labels...))
		}
	}
	if g.Kind == GameGauge {
		m.gauges += len(sets)
		f.source = scraped(func(m *Metrics, f *Family) {
			for i, labels := range sets {
				f.SetFloat(m.sumOfRooms(s.gauges+i), labels...)
			}
		})
	}
	m.families, m.game = append(m.families, f), append(m.game, s)
}

// labelSets returns the label sets of the metric: one empty set if it has no label.
func (g *Game) labelSets() [][]string {
	if g.Label == "" {
		return [][]string{nil}
	}
	var all [][]string
	for _, v := range g.Values {
		all = append(all, []string{v})
	}
	return all
}

// sumOfRooms returns the sum of a gauge over all rooms. Each scrape adds up all rooms, because a
// running total would accumulate rounding errors.
func (m *Metrics) sumOfRooms(gauge int) (sum float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for a := range m.accounts {
		sum += math.Float64frombits(a.gauges[gauge].Load())
	}
	return sum
}

// GameRefused counts a use of a game's metric that changes no series.
func (m *Metrics) GameRefused() { m.refused.Add(1) }

// GameCount adds n to a game's counter. metric and value are the indexes of the metric and of its
// label's value; value is 0 without a label. Any goroutine may call it.
func (m *Metrics) GameCount(metric, value int, n uint64) { m.game[metric].counts[value].Add(n) }

// GameObserve adds a value to a game's histogram if the value is finite: one NaN would make the
// sum NaN for ever. Any goroutine may call it.
func (m *Metrics) GameObserve(metric, value int, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		m.refused.Add(1)
		return
	}
	m.game[metric].times[value].Observe(x)
}

// SetGame sets the room's value of a game's gauge, if the value is finite. Any goroutine may call
// it.
func (a *Account) SetGame(metric, value int, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		a.m.refused.Add(1)
		return
	}
	a.gauges[a.m.game[metric].gauges+value].Store(math.Float64bits(x))
}
