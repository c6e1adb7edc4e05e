// Package seeds says how many seeds a property is tried with, by one rule for all packages:
//
//	go test            as many as the property asks for
//	go test -short     a tenth of them
//	go test -race      again a tenth: the detector finds races between goroutines, not in values;
//	                   OneGoroutine leaves a simulation out
//	NETLOOP_SEEDS=n    seeds 1 to n, however the test is run
//	NETLOOP_SEED=n     seed n alone, to play again what has failed
//
// It is for tests alone.
package seeds

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

// Of returns the seeds that a property is tried with: 1 to n, unless the run asks for another
// number of them.
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

// Each tries a property with each of its seeds, until one fails. Each is a test of its own, so what
// it has made is let go of before the next.
func Each(t *testing.T, n int, property func(t *testing.T, seed uint64)) {
	t.Helper()
	for seed := range Of(t, n) {
		if !t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { property(t, seed) }) {
			return
		}
	}
}

// few is how many of n seeds are left in a short run, and under the race detector.
func few(n uint64, short, race bool) uint64 {
	if short {
		n /= 10
	}
	if race {
		n /= 10
	}
	return max(n, 1)
}

// Long returns how many seeds a property of long simulations is tried with: n, however the test is
// run, or more if NETLOOP_SEEDS asks for more than n of them. One is worth so many short ones.
func Long(tb testing.TB, n, worth int) uint64 {
	tb.Helper()
	wanted, _ := number(tb, "NETLOOP_SEEDS")
	return max(uint64(n), wanted/uint64(worth))
}

// OneGoroutine leaves a long simulation out under the race detector, which finds nothing where
// there is one goroutine.
func OneGoroutine(tb testing.TB) {
	tb.Helper()
	if Race {
		tb.Skip("it has one goroutine: there is nothing to detect")
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
