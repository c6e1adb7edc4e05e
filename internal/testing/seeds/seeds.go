// Package seeds chooses the seeds of properties, by one rule for all packages:
//
//	go test            as many as the property requests
//	go test -short     a tenth of them
//	go test -race      again a tenth: the detector finds races between goroutines, not in values;
//	                   OneGoroutine skips a simulation
//	NETLOOP_SEEDS=n    seeds 1 to n, however the test is run
//	NETLOOP_SEED=n     only seed n, to repeat a failure
//
// It is for tests only.
package seeds

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

// Of returns the seeds of a property: 1 to n, unless the run requests another number.
func Of(tb testing.TB, n int) iter.Seq[uint64] {
	tb.Helper()
	first, last := uint64(1), few(uint64(max(n, 1)), testing.Short(), Race)
	if most, ok := number(tb, "NETLOOP_SEEDS"); ok {
		last = most
	}
	if one, ok := number(tb, "NETLOOP_SEED"); ok {
		first, last = one, one
	}
	return func(yield func(uint64) bool) {
		for seed := first; seed <= last && yield(seed); seed++ {
		}
	}
}

// Each tests a property with each of its seeds, until one fails. Each seed is a subtest, so its
// resources are released before the next one.
func Each(t *testing.T, n int, property func(t *testing.T, seed uint64)) {
	t.Helper()
	for seed := range Of(t, n) {
		if !t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { property(t, seed) }) {
			return
		}
	}
}

// few returns how many of n seeds remain in a short run, and under the race detector.
func few(n uint64, short, race bool) uint64 {
	if short {
		n /= 10
	}
	if race {
		n /= 10
	}
	return max(n, 1)
}

// Long returns the number of seeds for long simulations: n, however the test is run, or
// NETLOOP_SEEDS ÷ worth if that is more. worth is the number of short simulations that take as
// long as a long one.
func Long(tb testing.TB, n, worth int) uint64 {
	tb.Helper()
	wanted, _ := number(tb, "NETLOOP_SEEDS")
	return max(uint64(n), wanted/uint64(worth))
}

// OneGoroutine skips a long simulation under the race detector, which cannot find a race in one
// goroutine.
func OneGoroutine(tb testing.TB) {
	tb.Helper()
	if Race {
		tb.Skip("it has one goroutine, so there is no race to detect")
	}
}

// number reads a variable of the environment, if it is set.
func number(tb testing.TB, name string) (uint64, bool) {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		tb.Fatalf("%s=%q is not a positive number", name, text)
	}
	return n, true
}
