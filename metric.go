package netloop

import (
	"fmt"
	"slices"

	"github.com/netloop/netloop/internal/metrics"
)

// The limits on the metrics of a schema.
const (
	MaxMetrics       int = metrics.MaxGameMetrics // 64: counters, gauges and histograms
	MaxMetricValues  int = metrics.MaxGameValues  // 16: of a label, see [ByLabel]
	MaxMetricBuckets int = metrics.MaxGameBuckets // 16: of a histogram
)

// metric is a declared metric, or such a metric with a chosen value of its label.
type metric struct {
	schema *Schema
	game   *metrics.Game
	index  int // in the schema's metrics
	value  int // of the label; labelled or refused
}

const (
	labelled = -1 // the metric has a label, and no value of it is chosen
	refused  = -2 // the chosen value is not declared
)

// MetricOption is an option of [NewCounter], [NewGauge] and [NewHistogram].
type MetricOption struct{ apply func(*metrics.Game) }

// ByLabel gives the metric a label with 1 to [MaxMetricValues] values. Each value has its own
// series. The values are declared in advance, such as weapons or maps, so a label cannot name a
// client. Each use of the metric selects a value with the method With.
func ByLabel(label string, values ...string) MetricOption {
	return MetricOption{func(g *metrics.Game) { g.Label, g.Values = label, slices.Clone(values) }}
}

// newMetric checks and registers a declaration. It panics with the reason if it is invalid.
func newMetric(sc *Schema, g *metrics.Game, o []MetricOption) metric {
	sc.s.Claim("metric", g.Name)
	for _, one := range o {
		one.apply(g)
	}
	if err := g.Check(); err != nil {
		panic(fmt.Sprintf("netloop: metric %q: %v", g.Name, err))
	}
	if len(sc.metrics) >= MaxMetrics {
		panic(fmt.Sprintf("netloop: metric %q: schema %q has more than %d metrics", g.Name, sc.Name(), MaxMetrics))
	}
	sc.metrics = append(sc.metrics, g)
	m := metric{schema: sc, game: g, index: len(sc.metrics) - 1}
	if g.Label != "" {
		m.value = labelled
	}
	return m
}

// with returns the metric for a value of its label.
func (m metric) with(value string) metric {
	if m.game.Label == "" {
		panic(fmt.Sprintf("netloop: metric %q has no label: declare it with ByLabel", m.game.Name))
	}
	if m.value = slices.Index(m.game.Values, value); m.value < 0 {
		m.value = refused
	}
	return m
}

// room returns the room of the tick, or nil if the use is refused and counted.
func (m metric) room(t *Tick, what string) *Room {
	r := t.server(what)
	switch {
	case m.game == nil:
		panic("netloop: " + what + ": the metric is not declared: use NewCounter, NewGauge or NewHistogram")
	case m.schema != r.schema:
		panic(fmt.Sprintf("netloop: %s: metric %q belongs to schema %q, but the room runs schema %q", what, m.game.Name, m.schema.Name(), r.schema.Name()))
	case m.value == labelled:
		panic(fmt.Sprintf("netloop: %s: metric %q has the label %s: choose a value by With", what, m.game.Name, m.game.Label))
	case m.value == refused:
		r.server.metrics.GameRefused()
		return nil
	}
	return r
}

// Counter counts events of a game, such as shots, in a series of /metrics. Use it for numbers that
// an operator watches, in any function that gets a [Tick] of the server:
//
//	var Shots = netloop.NewCounter(Schema, "shots", "Shots of players.",
//		netloop.ByLabel("weapon", "laser", "rocket"))
//
//	Shots.With("laser").Add(t, 1)
//
// The series is netloop_game_shots_total{weapon="laser"}: the sum over all rooms of the server,
// including rooms that have ended. Its first value, at the start, is 0. A use takes some
// nanoseconds and no memory. A replay does not change the series of any server.
type Counter struct{ m metric }

// NewCounter declares a counter of a schema, as a package variable. The name has at most 64
// lower-case letters, digits and underscores, and ends with the base unit of the values (seconds,
// bytes) if they have one. The series has the prefix netloop_game_ and the suffix _total. The help
// text is a sentence for operators. It panics if the declaration is invalid, or the schema has
// [MaxMetrics] metrics.
func NewCounter(sc *Schema, name, help string, o ...MetricOption) Counter {
	return Counter{newMetric(sc, &metrics.Game{Kind: metrics.GameCounter, Name: name, Help: help}, o)}
}

// With returns the counter for a value of its label. A use of an undeclared value is counted only
// in netloop_metrics_series_refused_total. With panics for a counter without [ByLabel].
func (c Counter) With(value string) Counter { return Counter{c.m.with(value)} }

// Add adds n to the counter. It panics on a client, for a counter of another schema, and for a
// counter that has a label but no value from [Counter.With].
func (c Counter) Add(t *Tick, n uint64) {
	if r := c.m.room(t, "Counter.Add"); r != nil {
		r.server.metrics.GameCount(c.m.index, c.m.value, n)
	}
}

// Gauge is a value that rises and falls, such as the number of players that wait for a match. Its
// series netloop_game_NAME is the sum of the values of all open rooms of the server. The value of a
// room is 0 until the room sets it.
type Gauge struct{ m metric }

// NewGauge declares a gauge of a schema: see [NewCounter]. The series has no suffix.
func NewGauge(sc *Schema, name, help string, o ...MetricOption) Gauge {
	return Gauge{newMetric(sc, &metrics.Game{Kind: metrics.GameGauge, Name: name, Help: help}, o)}
}

// With returns the gauge for a value of its label: see [Counter.With].
func (g Gauge) With(value string) Gauge { return Gauge{g.m.with(value)} }

// Set replaces the room's value. A value that is infinite or not a number is rejected, and counted
// in netloop_metrics_series_refused_total. Set panics as [Counter.Add] does.
func (g Gauge) Set(t *Tick, x float64) {
	if r := g.m.room(t, "Gauge.Set"); r != nil {
		r.e.Account().SetGame(g.m.index, g.m.value, x)
	}
}

// Histogram is a distribution of values, such as the length of rounds in seconds. For each bucket
// it has the number of values up to the bucket's bound, and it has the number and the sum of all
// values. Its series netloop_game_NAME_bucket, _count and _sum add up the values of all rooms.
type Histogram struct{ m metric }

// NewHistogram declares a histogram of a schema: see [NewCounter]. The name has no suffix. buckets
// has 1 to [MaxMetricBuckets] upper bounds in the unit of the values, finite and in rising order;
// values above the last bound count as infinite. Each bucket is a series, for each value of a
// label.
func NewHistogram(sc *Schema, name, help string, buckets []float64, o ...MetricOption) Histogram {
	return Histogram{newMetric(sc, &metrics.Game{Kind: metrics.GameHistogram, Name: name, Help: help, Buckets: slices.Clone(buckets)}, o)}
}

// With returns the histogram for a value of its label: see [Counter.With].
func (h Histogram) With(value string) Histogram { return Histogram{h.m.with(value)} }

// Observe counts a value, unless [Gauge.Set] would reject it. It panics as [Counter.Add] does.
func (h Histogram) Observe(t *Tick, x float64) {
	if r := h.m.room(t, "Histogram.Observe"); r != nil {
		r.server.metrics.GameObserve(h.m.index, h.m.value, x)
	}
}
