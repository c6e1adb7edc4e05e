package metrics

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// kind is the type of a family in Prometheus.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram" // of seconds
)

// maxLabels is the most labels of a family: an array of them is a map key that is built without
// allocation.
const maxLabels = 3

// The limits on label sets. Names of systems, methods and classes are from a game's code; the
// others are from enumerations of this module and have room to spare.
const (
	maxSystems = 512  // (system, stage): about 0.6 KB each
	maxRPCs    = 4096 // (method, stage, outcome)
	maxClasses = 1024
	maxFields  = 4096 // (class, field)
	maxOthers  = 128
)

// labelSets returns the most label sets of a family with these labels.
func labelSets(labels []string) int {
	limit := 1
	for _, l := range labels {
		switch l {
		case "system":
			limit = max(limit, maxSystems)
		case "method":
			limit = max(limit, maxRPCs)
		case "class":
			limit = max(limit, maxClasses)
		case "field":
			limit = max(limit, maxFields)
		default:
			limit = max(limit, maxOthers)
		}
	}
	return limit
}

// The buckets, in seconds. Ticks, lateness and flush lag are resolved from 0.1 to 100 ms, finest
// around the budgets of 128, 60, 30 and 20 Hz; parts of a tick from 10 µs.
var (
	tickBuckets = []float64{.0001, .0002, .0005, .001, .002, .004, .006, .008, .01, .012, .016, .02, .033, .05, .1}
	partBuckets = []float64{.00001, .00005, .0001, .0005, .001, .002, .005, .01, .02, .05}
)

// Family holds the series of one row of the table, by label values. Unlike a CounterVec it accepts
// totals that are stored elsewhere as plain numbers (Set) as well as differences (Add). Any
// goroutine may call it; a known label set takes one map lookup and no allocation.
type Family struct {
	row
	desc    *prometheus.Desc
	names   []string                 // of its labels
	limit   int                      // label sets at most
	refused *atomic.Uint64           // label sets beyond the limit, shared by all families
	times   *prometheus.HistogramVec // of a histogram, instead of sets

	mu   sync.Mutex
	sets map[[maxLabels]string]*atomic.Uint64 // of a gauge the bits of a float64
}

func newFamily(r row, refused *atomic.Uint64) *Family {
	f := &Family{row: r, names: strings.Fields(r.labels), refused: refused}
	name := "netloop_" + r.name
	f.limit = labelSets(f.names)
	f.desc = prometheus.NewDesc(name, r.help, f.names, nil)
	if r.kind == histogram {
		buckets := tickBuckets
		if len(f.names) > 0 && f.names[0] != "kind" { // A stage and a system are parts of a tick.
			buckets = partBuckets
		}
		f.times = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: r.help, Buckets: buckets}, f.names)
		return f
	}
	f.sets = make(map[[maxLabels]string]*atomic.Uint64)
	if len(f.names) == 0 {
		// A counter exists before its first count: a rate() needs the step from 0 to 1.
		f.Add(0)
	}
	return f
}

// Add counts n more of a counter.
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
			v = new(atomic.Uint64)
			f.sets[key] = v
		}
	}
	return v
}

func (f *Family) collect(ch chan<- prometheus.Metric) {
	if f.times != nil {
		f.times.Collect(ch)
		return
	}
	f.mu.Lock()
	keys := make([][maxLabels]string, 0, len(f.sets))
	for key := range f.sets {
		keys = append(keys, key)
	}
	f.mu.Unlock()
	slices.SortFunc(keys, func(a, b [maxLabels]string) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		f.mu.Lock()
		n := f.sets[key].Load()
		f.mu.Unlock()
		kind, v := prometheus.CounterValue, float64(n)
		if f.kind == gauge {
			kind, v = prometheus.GaugeValue, math.Float64frombits(n)
		}
		ch <- prometheus.MustNewConstMetric(f.desc, kind, v, key[:len(f.names)]...)
	}
}
