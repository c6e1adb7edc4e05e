package seeds

import (
	"fmt"
	"slices"
	"testing"
)

func TestShortAndRaceRunsUseATenthOfTheSeeds(t *testing.T) {
	for _, c := range []struct {
		n           uint64
		short, race bool
		want        uint64
	}{
		{200, false, false, 200},
		{200, true, false, 20},
		{200, false, true, 20},
		{200, true, true, 2},
		{24, true, true, 1},
		{1, true, false, 1},
	} {
		if got := few(c.n, c.short, c.race); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// Both variables apply to every property, and a single seed overrides their number.
func TestTheEnvironmentOverridesTheSeeds(t *testing.T) {
	t.Setenv("NETLOOP_SEEDS", "3")
	if got := slices.Collect(Of(t, 200)); !slices.Equal(got, []uint64{1, 2, 3}) {
		t.Errorf("of NETLOOP_SEEDS=3: %v", got)
	}
	t.Setenv("NETLOOP_SEED", "17")
	if got := slices.Collect(Of(t, 200)); !slices.Equal(got, []uint64{17}) {
		t.Errorf("of NETLOOP_SEED=17: %v", got)
	}
}

// A long simulation runs as often as requested, and more often only if very many seeds are
// requested.
func TestLongSimulationsUseFewSeeds(t *testing.T) {
	for wanted, want := range map[string]uint64{"1": 4, "200": 4, "250": 5, "20000": 400} {
		t.Setenv("NETLOOP_SEEDS", wanted)
		if got := Long(t, 4, 50); got != want {
			t.Errorf("of NETLOOP_SEEDS=%s: %d", wanted, got)
		}
	}
}

// The resources of a seed are released before the next one starts.
func TestEachSeedIsASubtest(t *testing.T) {
	t.Setenv("NETLOOP_SEEDS", "3")
	var order []string
	Each(t, 200, func(t *testing.T, seed uint64) {
		order = append(order, fmt.Sprint(seed))
		t.Cleanup(func() { order = append(order, fmt.Sprint("end of ", seed)) })
	})
	if want := []string{"1", "end of 1", "2", "end of 2", "3", "end of 3"}; !slices.Equal(order, want) {
		t.Errorf("%q", order)
	}
}
