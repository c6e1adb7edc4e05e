package e2e_test

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

// seeds returns the seeds that a property is tried with: 1 to n. The environment
// variable NETLOOP_SEEDS asks for another n, NETLOOP_SEED for one seed alone.
func seeds(t *testing.T, n int) iter.Seq[uint64] {
	t.Helper()
	number := func(name string) (uint64, bool) {
		text := os.Getenv(name)
		if text == "" {
			return 0, false
		}
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v, true
	}
	first, last := uint64(1), uint64(n)
	if testing.Short() {
		last = max(1, last/10)
	}
	if more, ok := number("NETLOOP_SEEDS"); ok {
		last = more
	}
	if one, ok := number("NETLOOP_SEED"); ok {
		first, last = one, one
	}
	return func(yield func(uint64) bool) {
		for seed := first; seed <= last && yield(seed); seed++ {
		}
	}
}
