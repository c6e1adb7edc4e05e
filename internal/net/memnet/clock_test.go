package memnet

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAClockDriftsByItsPartsPerMillion(t *testing.T) {
	for ppm, want := range map[int]time.Duration{200: 3600720 * ms, 0: 3600 * time.Second, -200: 3599280 * ms} {
		if got := (Clock{Offset: 5, PPM: ppm}).At(time.Hour); got != want+5 {
			t.Errorf("at %d ppm an hour is %v, want %v", ppm, got, want)
		}
	}
}

// When returns the first time at which the clock shows a value, to the nanosecond.
func TestAClockKnowsWhenItShowsATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := Clock{
			Offset: time.Duration(rapid.Int64Range(-1e18, 1e18).Draw(t, "offset")),
			PPM:    rapid.IntRange(-1000, 1000).Draw(t, "ppm"),
		}
		local := k.Offset + time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "past"))
		if now := k.When(local); k.At(now) < local || k.At(now-1) >= local {
			t.Fatalf("at %d it shows %d, and before %d; want %d", now, k.At(now), k.At(now-1), local)
		}
	})
}
