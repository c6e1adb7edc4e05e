package loadtest

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// soakOf returns the result of a soak of 30 minutes. memory(s) is the server's memory after s
// seconds.
func soakOf(memory func(s float64) float64) *report {
	r := made()
	r.Run.From, r.Run.To = 60, 1860
	r.Series = Series{Every: 1}
	for s := 0.0; s < 1900; s += 10 {
		x, steady, few := memory(s), 26.0, 26+4*s/1800 // Four goroutines more are no leak.
		r.Series.Points = append(r.Series.Points, Point{At: s, ServerMemory: &x, ServerGoroutines: &few, ServerSeries: &steady, Memory: &steady}, Point{At: s + 1})
	}
	return r
}

// A leak ends a soak with 99, beneath the saw teeth of a garbage collector; their noise alone, and
// a warm-up before the window, do not. So it is for each of a hundred seeds.
func TestASoakFindsGrowthAlone(t *testing.T) {
	chance := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		saw := func(s float64) float64 { return 50e6 + 8e6*math.Mod(s, 70)/70 + 2e6*rng.NormFloat64() }
		r := soakOf(func(s float64) float64 { return saw(s) + 20e6*min(s, 60)/60 })
		if r.soaked(); !r.Verdict.Pass || r.Verdict.Exit != 0 {
			t.Errorf("seed %d: %q", seed, r.Verdict.Reasons)
		}
		r = soakOf(func(float64) float64 { return 30e6 + 100e6*rng.Float64() })
		if r.soaked(); !r.Verdict.Pass {
			chance++
		}
		r = soakOf(func(s float64) float64 { return saw(s) + 10e6*s/1800 })
		if r.soaked(); r.Verdict.Pass || r.Verdict.Exit != 99 || len(r.Verdict.Reasons) != 1 || !strings.HasPrefix(r.Verdict.Reasons[0], "server.memory grows by ") {
			t.Errorf("seed %d: %q", seed, r.Verdict.Reasons)
		}
		if g := r.Growth[0]; *g.Low > 20e6 || *g.High < 20e6 && seed == 0 {
			t.Errorf("seed %d: 20 MB an hour are %s to %s", seed, show(g.Low, inBytes), show(g.High, inBytes))
		}
	}
	if chance > 2 { // of 100, at 99 % confidence
		t.Errorf("%d times noise is a leak", chance)
	}
}

// Too few samples are no proof, and are shown as such.
func TestAShortSoakProvesNothing(t *testing.T) {
	r := soakOf(func(s float64) float64 { return 50e6 * s })
	r.Run.To = 140
	r.soaked()
	var b strings.Builder
	if writeTrends(&b, r.Growth); !r.Verdict.Pass || !strings.Contains(b.String(), "too few samples") || r.Growth[0].Slope != nil {
		t.Errorf("%+v\n%s", r.Verdict, &b)
	}
}

// The slope and its interval are those of a textbook: y = 2x + noise.
func TestSlope(t *testing.T) {
	b, low, high := slope([]float64{1, 2, 3, 4, 5}, []float64{2.1, 3.9, 6.2, 7.8, 10.1})
	if math.Abs(b-1.99) > 0.001 || math.Abs((high-low)/2-0.3488) > 0.001 || math.Abs((high+low)/2-b) > 1e-9 {
		t.Errorf("slope %.4f, from %.4f to %.4f", b, low, high)
	}
}
