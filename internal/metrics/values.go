package metrics

import (
	"slices"
	"strings"
)

// Value is the value of one series.
type Value struct {
	Labels []string `json:"labels,omitempty"` // in the order of the family's labels
	Value  float64  `json:"value"`
}

// Values returns the counters and gauges whose names, without netloop_, begin with one of the
// prefixes. The keys are these names. The values are the same as in a scrape. Any goroutine may
// call it.
func (m *Metrics) Values(prefixes ...string) map[string][]Value {
	all := map[string][]Value{}
	m.scraping.Lock()
	defer m.scraping.Unlock()
	for _, f := range m.families {
		if f.kind == histogram || !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.name, p) }) {
			continue
		}
		if f.source.scrape != nil {
			f.source.scrape(m, f)
		}
		all[f.name] = f.values()
	}
	return all
}

// values returns the values of a counter or gauge, sorted by labels.
func (f *Family) values() []Value {
	f.mu.Lock()
	all := make(map[[maxLabels]string]uint64, len(f.sets))
	for key, v := range f.sets {
		if v.other {
			key = f.other(key)
		}
		all[key] += v.n.Load() // Each value of a gauge has its own key.
	}
	f.mu.Unlock()
	list := make([]Value, 0, len(all))
	for key, n := range all {
		list = append(list, Value{slices.Clone(key[:len(f.names)]), f.number(n)})
	}
	slices.SortFunc(list, func(a, b Value) int { return slices.Compare(a.Labels, b.Labels) })
	return list
}
