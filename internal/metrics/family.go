package metrics

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// maxLabels is the most labels a family has: an array of them is a map key that costs no
// allocation to build.
const maxLabels = 3

// family is one metric with running totals kept by label values. Unlike a CounterVec it
// takes totals that live elsewhere as plain numbers (Set) as well as differences (Add).
// Any goroutine may call it; a known label set costs one map lookup and no allocation.
type family struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	labels  int
	limit   int            // label sets at most
	refused *atomic.Uint64 // label sets beyond the limit, shared by all families

	mu   sync.Mutex
	sets map[[maxLabels]string]*atomic.Uint64
}

func newFamily(kind prometheus.ValueType, refused *atomic.Uint64, limit int, name, help string, labels ...string) *family {
	return &family{
		desc: prometheus.NewDesc("netloop_"+name, help, labels, nil), kind: kind,
		labels: len(labels), limit: limit, refused: refused,
		sets: make(map[[maxLabels]string]*atomic.Uint64),
	}
}

// add counts n more. A counter that never counted exists once it was added to with 0: a
// rate() needs to see the step from 0 to 1.
func (f *family) add(n uint64, labels ...string) {
	if v := f.value(labels); v != nil {
		v.Add(n)
	}
}

// set replaces the total.
func (f *family) set(total uint64, labels ...string) {
	if v := f.value(labels); v != nil {
		v.Store(total)
	}
}

func (f *family) value(labels []string) *atomic.Uint64 {
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

func (f *family) collect(ch chan<- prometheus.Metric) {
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
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, float64(n), key[:f.labels]...)
	}
}
