package metrics

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// kind is the type of a family in Prometheus.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram" // of seconds
)

// maxLabels is the largest number of labels of a family. An array of this size is a map key that
// needs no allocation.
const maxLabels = 3

// The limits on label sets that are counted. Names of systems, methods and classes are from a
// game's code. All other labels are from enumerations of this module, which have fewer values than
// these limits.
const (
	maxSystems = 512  // (system, stage)
	maxRPCs    = 4096 // (method, stage, outcome)
	maxClasses = 1024
	maxFields  = 4096 // (class, field)
	maxOthers  = 128
)

// named has the labels with names of a game's code, and the limits of their families.
var named = map[string]int{"system": maxSystems, "method": maxRPCs, "class": maxClasses, "field": maxFields}

// The limits on label sets with names of a game's code that have their own series, so that a game
// with many systems and methods does not fill the memory of Prometheus. Further label sets are
// added up under otherNames.
const (
	maxNamed        = 64
	maxNamedSystems = 64 // each has a histogram: five series
	otherNames      = "other"
)

// labelSets returns the largest number of label sets of a family with these labels.
func labelSets(labels []string) int {
	limit := 1
	for _, l := range labels {
		limit = max(limit, cmp.Or(named[l], maxOthers))
	}
	return limit
}

// The buckets, in seconds. Each bucket is a series, for each label set. The duration of all ticks
// is finest around the budgets of 128, 60, 30 and 20 Hz; the exact durations are on the page
// /ticks. delays is for lateness and lags, kinds for the kinds of rooms, parts for stages and
// systems.
var (
	tickBuckets  = []float64{.0001, .0002, .0005, .001, .002, .004, .006, .008, .01, .012, .016, .02, .033, .05, .1}
	delayBuckets = []float64{.0001, .0005, .001, .002, .005, .01, .02, .05}
	kindBuckets  = []float64{.001, .004, .008, .016, .033}
	partBuckets  = []float64{.0005, .005}
)

// buckets returns the buckets of a row, if it is a histogram.
func buckets(r *row) []float64 {
	switch {
	case r.name == "tick_duration_seconds":
		return tickBuckets
	case r.labels == "":
		return delayBuckets
	case r.labels == "kind":
		return kindBuckets
	}
	return partBuckets
}

// Family holds the series of one row of the table, by label values. Unlike a CounterVec it accepts
// totals that are stored elsewhere as plain numbers (Set) as well as differences (Add). Any
// goroutine may call it; a known label set takes one map lookup and no allocation.
type Family struct {
	row
	desc    *prometheus.Desc
	names   []string                 // names of the labels
	limit   int                      // largest number of label sets
	refused *atomic.Uint64           // label sets beyond the limit, shared by all families
	times   *prometheus.HistogramVec // of a histogram, instead of sets

	mu    sync.Mutex
	sets  map[[maxLabels]string]*value
	named bool // a label has names of a game's code
}

// value is the value of a label set. A value with other set is part of the series of otherNames.
type value struct {
	n     atomic.Uint64 // gauge: the bits of a float64; counter of seconds: nanoseconds
	other bool
}

func newFamily(r row, buckets []float64, refused *atomic.Uint64) *Family {
	f := &Family{row: r, names: strings.Fields(r.labels), refused: refused}
	name := "netloop_" + r.name
	f.limit = labelSets(f.names)
	f.desc = prometheus.NewDesc(name, r.help, f.names, nil)
	if r.kind == histogram {
		f.times = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: r.help, Buckets: buckets}, f.names)
		return f
	}
	f.sets = make(map[[maxLabels]string]*value)
	f.named = r.kind == counter && slices.ContainsFunc(f.names, func(l string) bool { return named[l] > 0 })
	if len(f.names) == 0 {
		// The series exists before its first count: rate() needs the step from 0 to 1.
		f.Add(0)
	}
	return f
}

// Add adds n to a counter; for a counter of seconds, n is in nanoseconds.
func (f *Family) Add(n uint64, labels ...string) {
	if v := f.value(labels); v != nil {
		v.Add(n)
	}
}

// Set replaces the total of a counter, or the value of a gauge.
func (f *Family) Set(n uint64, labels ...string) {
	if f.kind == gauge {
		f.SetFloat(float64(n), labels...)
	} else if v := f.value(labels); v != nil {
		v.Store(n)
	}
}

// setCounted is like Set, but makes no series for 0. It is for families with many label sets that
// rarely count.
func (f *Family) setCounted(n uint64, labels ...string) {
	if n > 0 {
		f.Set(n, labels...)
	}
}

// SetFloat replaces the value of a gauge that may be a fraction.
func (f *Family) SetFloat(x float64, labels ...string) {
	if v := f.value(labels); v != nil {
		v.Store(math.Float64bits(x))
	}
}

// observer returns the single series of a histogram without labels.
func (f *Family) observer() prometheus.Observer { return f.times.WithLabelValues() }

func (f *Family) value(labels []string) *atomic.Uint64 {
	var key [maxLabels]string
	copy(key[:], labels)
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.sets[key]
	if !ok {
		if len(f.sets) >= f.limit {
			f.refused.Add(1)
			return nil
		}
		for i, s := range key {
			// A label that is not UTF-8 would fail the whole scrape; a clone does not
			// keep a caller's larger buffer alive.
			key[i] = strings.ToValidUTF8(strings.Clone(s), "?")
		}
		if v, ok = f.sets[key]; !ok {
			v = &value{other: f.named && len(f.sets) >= maxNamed}
			f.sets[key] = v
		}
	}
	return &v.n
}

// other returns the label set under which a value without its own series is added up. It has the
// outcome of key, and otherNames for all other labels.
func (f *Family) other(key [maxLabels]string) [maxLabels]string {
	for i, name := range f.names {
		if name != "outcome" {
			key[i] = otherNames
		}
	}
	return key
}

func (f *Family) collect(ch chan<- prometheus.Metric) {
	if f.times != nil {
		f.times.Collect(ch)
		return
	}
	kind := prometheus.CounterValue
	if f.kind == gauge {
		kind = prometheus.GaugeValue
	}
	for _, v := range f.values() {
		ch <- prometheus.MustNewConstMetric(f.desc, kind, v.Value, v.Labels...)
	}
}

// number returns the value of a series from its stored form.
func (f *Family) number(n uint64) float64 {
	switch {
	case f.kind == gauge:
		return math.Float64frombits(n)
	case strings.HasSuffix(f.name, "_seconds_total") && !strings.HasPrefix(f.name, gamePrefix):
		return time.Duration(n).Seconds()
	}
	return float64(n)
}
