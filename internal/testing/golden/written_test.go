package golden

import (
	"testing"
	"time"
)

// Bounds are formatted for people.
func TestBoundsAreWrittenForPeople(t *testing.T) {
	for want, bound := range map[string]any{
		"0": 0, "999": 999, "1 024": 1024, "65 536": 1 << 16, "1 000 007": 1_000_007, "0.05": 0.05,
		"119 bytes": Bytes(119), "1 025 bytes": Bytes(1025), "64 KiB": Bytes(64 << 10), "1 025 KiB": Bytes(1025 << 10), "2 MiB": Bytes(2 << 20),
		"250 µs": 250 * time.Microsecond, "50 ms": 50 * time.Millisecond, "90 s": 90 * time.Second,
		"10 min": 10 * time.Minute, "1 h": time.Hour, "7 ns": 7 * time.Nanosecond,
	} {
		if got := Written(bound); got != want {
			t.Errorf("%v is written as %q, want %q", bound, got, want)
		}
	}
}
