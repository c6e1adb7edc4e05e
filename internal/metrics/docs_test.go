package metrics

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop/internal/golden"
)

const docs = "../../docs/METRICS.md"

// TestEverySeriesIsDocumented compares the table of docs/METRICS.md with what a server has.
func TestEverySeriesIsDocumented(t *testing.T) {
	m, _ := newMetrics(t)
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "| series | type | labels | what it says |\n|---|---|---|---|\n"
	head, _, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s has no table", docs)
	}
	golden.Check(t, docs, head+mark+strings.Join(table(t, m), ""))
}

// table is a row for every series, by name.
func table(t *testing.T, m *Metrics) (rows []string) {
	t.Helper()
	kinds := map[*prometheus.Desc]string{m.tickRate: "gauge", m.timeScale: "gauge"}
	m.vectors(func(c prometheus.Collector) {
		for _, d := range described(c) {
			kinds[d] = "histogram"
		}
	})
	for _, f := range m.families {
		if f.kind == prometheus.GaugeValue {
			kinds[f.desc] = "gauge"
		}
	}
	parts := regexp.MustCompile(`fqName: "(\w+)", help: "(.*?)", .*constLabels: {}, variableLabels: {(.*)}}`)
	for _, d := range described(m) {
		p := parts.FindStringSubmatch(d.String())
		if p == nil {
			t.Fatalf("cannot read %v", d)
		}
		kind := kinds[d]
		if kind == "" {
			kind = "counter"
		}
		labels := p[3]
		if labels != "" {
			labels = "`" + strings.ReplaceAll(labels, ",", "`, `") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", p[1], kind, labels, p[2]))
	}
	slices.Sort(rows)
	return rows
}

func described(c prometheus.Collector) (all []*prometheus.Desc) {
	ch := make(chan *prometheus.Desc)
	go func() { c.Describe(ch); close(ch) }()
	for d := range ch {
		all = append(all, d)
	}
	return all
}
