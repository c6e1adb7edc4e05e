package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// maxSeries is the most series of a large game's server.
const maxSeries = 500

// crowd is a room of 10 000 clients, with 200 methods, 6 classes and 24 fields.
type crowd struct{ *fakeRoom }

func (crowd) Clients() int { return 10_000 }

func (crowd) Messages(p Part) {
	for i := range 200 {
		p.Set(1000, fmt.Sprint("method ", i), "Update", "ran")
		p.Set(3, fmt.Sprint("method ", i), "FixedUpdate", "late")
		p.Set(2, fmt.Sprint("method ", i), "unset", "method_limited")
	}
}

func (crowd) Depths(p Part) {
	for _, s := range loop.Stages() {
		p.Set(1, "rpc_"+s.String())
	}
}

func (crowd) Bytes(p Part) {
	for i := range 6 {
		p.Set(1000, fmt.Sprint("class ", i))
	}
}

func (crowd) FieldBytes(p Part) {
	for i := range 24 {
		p.Set(100, fmt.Sprint("class ", i%6), fmt.Sprint("Field", i))
	}
}

// Series cost memory in Prometheus and time at each scrape: their number does not grow with
// clients, and slowly with methods.
func TestSeriesStayFew(t *testing.T) {
	m, _ := newMetrics(t)
	room, server := newServer()
	m.Serve(server)
	feed(m, crowd{room})
	for i := range 10_000 { // They leave, and lose data, for every reason.
		server.traffic.Disconnect(transport.Code(i % 30))
		server.traffic.Drop(transport.Drop(i%37), 1)
	}
	rec := record(1)
	rec.Systems = nil
	for i := range 20 {
		rec.Systems = append(rec.Systems, loop.SystemCost{Name: fmt.Sprint("system ", i), Stage: loop.Update, Runs: 1})
	}
	m.ObserveTick(rec, budget)
	text := scrape(t, m)
	families, n := map[string]int{}, 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			name, _, _ := strings.Cut(line, "{")
			name, _, _ = strings.Cut(name, " ")
			families[name]++
			n++
		}
	}
	if n > maxSeries {
		t.Errorf("%d series, at most %d: %v", n, maxSeries, families)
	}
	t.Log(n, "series")
}

// Label sets with names of the game beyond the limit are added up, by their outcome, and nothing of
// them is lost when they count on.
func TestFurtherNamesCountAsOther(t *testing.T) {
	m, _ := newMetrics(t)
	room := &fakeRoom{}
	for range 2 {
		m.Report(crowd{room})
	}
	text := scrape(t, m)
	own := strings.Count(text, "\nnetloop_rpcs_total{") - 3
	if own != maxNamed {
		t.Errorf("%d series have a method, want %d", own, maxNamed)
	}
	rest := 200 - maxNamed/3
	expect(t, text, `netloop_rpcs_total{method="method 0",outcome="ran",stage="Update"} 1000`,
		fmt.Sprintf(`netloop_rpcs_total{method="other",outcome="ran",stage="other"} %d`, 1000*(rest-1)),
		fmt.Sprintf(`netloop_rpcs_total{method="other",outcome="method_limited",stage="other"} %d`, 2*rest),
		"netloop_metrics_series_refused_total 0")
	for i := range maxNamed + 5 {
		m.Panics.Add(1, fmt.Sprint("system ", i))
	}
	m.Panics.Add(1, fmt.Sprint("system ", maxNamed+4))
	rec := record(1)
	rec.Systems = nil
	for i := range maxNamedSystems + 7 {
		rec.Systems = append(rec.Systems, loop.SystemCost{Name: fmt.Sprint("system ", i), Stage: loop.Update, Runs: 1})
	}
	m.ObserveTick(rec, budget)
	expect(t, scrape(t, m), `netloop_system_panics_total{system="other"} 6`,
		`netloop_system_duration_seconds_count{stage="other",system="other"} 7`)
}
