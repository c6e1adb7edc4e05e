package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/netlooptest"
)

var (
	scoreSchema = netloop.NewSchema("score", 1, 0)
	shotCount   = netloop.NewCounter(scoreSchema, "shots", "Shots of players.", netloop.ByLabel("weapon", "laser", "rocket"))
	rounds      = netloop.NewCounter(scoreSchema, "rounds", "Rounds that have ended.")
	waiting     = netloop.NewGauge(scoreSchema, "waiting", "Players that wait for a match.")
	loaded      = netloop.NewGauge(scoreSchema, "ammunition", "Loaded shots.", netloop.ByLabel("weapon", "laser", "rocket"))
	lengths     = netloop.NewHistogram(scoreSchema, "round_seconds", "Length of rounds.", []float64{10, 60})
)

// scoring is a game that uses its metrics in each tick of each room.
type scoring func(*netloop.Tick)

func (scoring) Schema() *netloop.Schema { return scoreSchema }

func (use scoring) Open(r *netloop.Room) error {
	r.On(netloop.Update, "score", use)
	return nil
}

func useAll(t *netloop.Tick) {
	shotCount.With("laser").Add(t, 2)
	rounds.Add(t, 1)
	waiting.Set(t, 1.5)
	loaded.With("rocket").Set(t, float64(t.Number()))
	lengths.Observe(t, 30)
	lengths.Observe(t, 1000)
}

// seriesOf returns the lines of a server's metrics that belong to its game.
func seriesOf(s *netloop.Server) string {
	rec := httptest.NewRecorder()
	m := bridge.Netloop.Server(s).Room.Metrics()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var all []string
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, "netloop_game_") || strings.HasPrefix(line, "netloop_metrics_series_refused_total") {
			all = append(all, strings.TrimPrefix(line, "netloop_"))
		}
	}
	return strings.Join(all, "")
}

// The metrics of a game add up the rooms of a server. Counts of a room that has ended are kept, its
// shares of gauges are not.
func TestGamesHaveMetricsOfTheirOwn(t *testing.T) {
	w := netlooptest.New(t, scoring(useAll))
	s := serverOf(w)
	const idle = `game_ammunition{weapon="laser"} 0
game_ammunition{weapon="rocket"} 0
game_round_seconds_bucket{le="10"} 0
game_round_seconds_bucket{le="60"} 0
game_round_seconds_bucket{le="+Inf"} 0
game_round_seconds_sum 0
game_round_seconds_count 0
game_rounds_total 0
game_shots_total{weapon="laser"} 0
game_shots_total{weapon="rocket"} 0
game_waiting 0
metrics_series_refused_total 0
`
	if got := seriesOf(s); got != idle {
		t.Errorf("before the first tick:\n%s", got)
	}
	w.Step(3)
	if _, err := s.OpenRoom(t.Context(), netloop.RoomSpec{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	w.Step(2)
	const both = `game_ammunition{weapon="laser"} 0
game_ammunition{weapon="rocket"} 7
game_round_seconds_bucket{le="10"} 0
game_round_seconds_bucket{le="60"} 7
game_round_seconds_bucket{le="+Inf"} 14
game_round_seconds_sum 7210
game_round_seconds_count 14
game_rounds_total 7
game_shots_total{weapon="laser"} 14
game_shots_total{weapon="rocket"} 0
game_waiting 3
metrics_series_refused_total 0
`
	if got := seriesOf(s); got != both {
		t.Errorf("with two rooms:\n%s", got)
	}
	if err := s.CloseRoom("other", 0, netloop.CodeGame, ""); err != nil {
		t.Fatal(err)
	}
	w.Step(5)
	if got := seriesOf(s); !strings.Contains(got, "game_waiting 1.5\n") || !strings.Contains(got, "game_ammunition{weapon=\"rocket\"} 10\n") {
		t.Errorf("with the second room ended:\n%s", got)
	}
}

// A replay counts nothing in the server that was recorded.
func TestAReplayCountsNothingInTheServer(t *testing.T) {
	var file bytes.Buffer
	w := netlooptest.New(t, scoring(useAll), netlooptest.Record(&file))
	w.Step(20)
	before := seriesOf(serverOf(w))
	p, err := netloop.NewReplay(netloop.Config{}, scoring(useAll), bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for ; err == nil; ticks++ {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) || ticks < 20 {
		t.Errorf("%d ticks: %v", ticks, err)
	}
	if after := seriesOf(serverOf(w)); after != before || !strings.Contains(after, "game_rounds_total 20\n") {
		t.Errorf("before the replay:\n%safter it:\n%s", before, after)
	}
}

func TestMetricsOfAGameAllocateNothing(t *testing.T) {
	w := netlooptest.New(t, scoring(func(*netloop.Tick) {}))
	w.Tick(func(tick *netloop.Tick) {
		if n := testing.AllocsPerRun(1000, func() { useAll(tick) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// Values that no series can have are refused and counted.
func TestRefusedValuesOfMetricsAreCounted(t *testing.T) {
	w := netlooptest.New(t, scoring(func(t *netloop.Tick) {
		shotCount.With("knife").Add(t, 1)
		waiting.Set(t, math.NaN())
		lengths.Observe(t, math.Inf(1))
	}))
	w.Step(2)
	if got := seriesOf(serverOf(w)); !strings.Contains(got, "game_waiting 0\nmetrics_series_refused_total 6\n") ||
		!strings.Contains(got, "round_seconds_count 0\n") || strings.Contains(got, "knife") {
		t.Error(got)
	}
}

func TestInvalidMetricsPanicWithOneSentence(t *testing.T) {
	counter := func(name, help string, o ...netloop.MetricOption) func(*netloop.Schema) {
		return func(s *netloop.Schema) { netloop.NewCounter(s, name, help, o...) }
	}
	histogram := func(buckets ...float64) func(*netloop.Schema) {
		return func(s *netloop.Schema) { netloop.NewHistogram(s, "x", "X.", buckets) }
	}
	var many []string
	for i := range netloop.MaxMetricValues + 1 {
		many = append(many, fmt.Sprint(i))
	}
	for want, fn := range map[string]func(*netloop.Schema){
		`metric "Shots": the name must be lower-case letters`:                                              counter("Shots", "X."),
		`metric "shots_total": the name must not end in _total`:                                            counter("shots_total", "X."),
		`metric "shots": the help text is empty`:                                                           counter("shots", " "),
		`metric "shots": label "le" must be lower-case letters`:                                            counter("shots", "X.", netloop.ByLabel("le", "a")),
		`metric "shots": label "weapon" has 17 values: use 1 to 16`:                                        counter("shots", "X.", netloop.ByLabel("weapon", many...)),
		`metric "shots": value "a" of label "weapon" is empty, longer than 64 bytes, no UTF-8 or given tw`: counter("shots", "X.", netloop.ByLabel("weapon", "a", "a")),
		`metric "x": there are 0 buckets: use 1 to 16`:                                                     histogram(),
		`metric "x": bucket 1 must be finite and greater than the one before`:                              histogram(2, 1),
		`metric "x" is declared twice in schema "bad"`: func(s *netloop.Schema) {
			netloop.NewGauge(s, "x", "X.")
			netloop.NewCounter(s, "x", "X.")
		},
		`metric "x64": schema "bad" has more than 64 metrics`: func(s *netloop.Schema) {
			for i := range netloop.MaxMetrics + 1 {
				netloop.NewGauge(s, fmt.Sprint("x", i), "X.")
			}
		},
		`metric "x" has no label: declare it with ByLabel`: func(s *netloop.Schema) { netloop.NewGauge(s, "x", "X.").With("a") },
	} {
		plainWords(t, said(func() { fn(netloop.NewSchema("bad", 1, 0)) }), want)
	}
	w := netlooptest.New(t, scoring(func(*netloop.Tick) {}))
	elsewhere := netloop.NewCounter(netloop.NewSchema("elsewhere", 1, 0), "x", "X.")
	w.Tick(func(tick *netloop.Tick) {
		plainWords(t, said(func() { shotCount.Add(tick, 1) }), `Counter.Add: metric "shots" has the label weapon: choose a value by With`)
		plainWords(t, said(func() { elsewhere.Add(tick, 1) }), `metric "x" belongs to schema "elsewhere", but the room runs schema "score"`)
		plainWords(t, said(func() { netloop.Gauge{}.Set(tick, 1) }), `Gauge.Set: the metric is not declared`)
	})
}
