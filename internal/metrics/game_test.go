package metrics

import (
	"math"
	"strings"
	"testing"
)

// Limits of a declaration are the last valid ones.
func TestDeclarationsOfMetricsHaveLimits(t *testing.T) {
	long, values, bounds := strings.Repeat("n", maxGameName), []string(nil), []float64(nil)
	for i := range MaxGameValues {
		values = append(values, strings.Repeat("v", maxGameName-MaxGameValues+i))
	}
	for i := range MaxGameBuckets {
		bounds = append(bounds, float64(i))
	}
	for _, g := range []Game{
		{Name: "x", Help: "X."},
		{Name: long, Help: "X.", Label: long, Values: values},
		{Name: "x_1", Help: "X.", Kind: GameHistogram, Buckets: bounds},
		{Name: "x", Help: "X.", Kind: GameGauge, Label: "l", Values: []string{"le"}},
	} {
		if err := g.Check(); err != nil {
			t.Errorf("%+v: %v", g, err)
		}
	}
	for _, g := range []Game{
		{Help: "X."},
		{Name: long + "n", Help: "X."},
		{Name: "1x", Help: "X."},
		{Name: "ä", Help: "X."},
		{Name: "x_bucket", Help: "X."}, {Name: "x_sum", Help: "X."}, {Name: "x_count", Help: "X."}, {Name: "x_info", Help: "X."},
		{Name: "x", Help: "\xff"},
		{Name: "x", Help: "X.", Values: []string{"a"}},
		{Name: "x", Help: "X.", Label: "l"},
		{Name: "x", Help: "X.", Label: "L", Values: []string{"a"}},
		{Name: "x", Help: "X.", Label: "instance", Values: []string{"a"}},
		{Name: "x", Help: "X.", Label: long + "n", Values: []string{"a"}},
		{Name: "x", Help: "X.", Label: "l", Values: append(values, "one too many")},
		{Name: "x", Help: "X.", Label: "l", Values: []string{""}},
		{Name: "x", Help: "X.", Label: "l", Values: []string{"\xff"}},
		{Name: "x", Help: "X.", Label: "l", Values: []string{long + "n"}},
		{Name: "x", Help: "X.", Kind: GameHistogram},
		{Name: "x", Help: "X.", Kind: GameHistogram, Buckets: append(bounds, 99)},
		{Name: "x", Help: "X.", Kind: GameHistogram, Buckets: []float64{1, 1}},
		{Name: "x", Help: "X.", Kind: GameHistogram, Buckets: []float64{math.NaN()}},
		{Name: "x", Help: "X.", Kind: GameHistogram, Buckets: []float64{1, math.Inf(1)}},
	} {
		if g.Check() == nil {
			t.Errorf("%+v is valid", g)
		}
	}
}

// Each metric has its own values, also behind a gauge with several.
func TestMetricsOfAGameAreApart(t *testing.T) {
	clock := &fake{}
	m, err := New(nil, clock.now,
		&Game{Name: "a", Help: "A.", Kind: GameGauge, Label: "l", Values: []string{"x", "y"}},
		&Game{Name: "b", Help: "B.", Label: "l", Values: []string{"x", "y"}},
		&Game{Name: "c", Help: "C.", Kind: GameGauge},
		&Game{Name: "d", Help: "D.", Kind: GameHistogram, Buckets: []float64{1}},
	)
	if err != nil {
		t.Fatal(err)
	}
	room, other := one{m, m.Open("")}, m.Open("table")
	room.SetGame(0, 1, 5)
	other.SetGame(0, 1, -2)
	other.SetGame(2, 0, 7)
	m.GameCount(1, 0, 3)
	m.GameObserve(3, 0, 1)
	m.GameObserve(3, 0, math.Inf(-1))
	other.SetGame(2, 0, math.NaN())
	m.GameRefused()
	expect(t, scrape(t, room), `netloop_game_a{l="x"} 0`, `netloop_game_a{l="y"} 3`, `netloop_game_b_total{l="x"} 3`, `netloop_game_b_total{l="y"} 0`,
		"netloop_game_c 7", `netloop_game_d_bucket{le="1"} 1`, "netloop_game_d_sum 1", "netloop_metrics_series_refused_total 3")
	other.Close("closed")
	other.SetGame(2, 0, 9) // A room that was given up may resume.
	expect(t, scrape(t, room), `netloop_game_a{l="y"} 5`, "netloop_game_c 0")
}
