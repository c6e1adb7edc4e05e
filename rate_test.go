package netloop

import (
	"testing"
)

// The bounds of a rate are exact, also for fractions.
func TestARateIsFromOneToAThousandHertz(t *testing.T) {
	for r, want := range map[Rate]bool{
		Hz(1): true, Hz(1000): true, {30_000, 1001}: true, {1 << 30, 1 << 30}: true, {2, 2}: true, {1000 << 10, 1 << 10}: true,
		{}: false, {1, 0}: false, {0, 1}: false, {999, 1000}: false, Hz(1001): false, {2001, 2}: false, {1<<30 + 1, 1 << 30}: false,
		{1 << 63, 1 << 63}: false,
	} {
		if err := r.check("Room.Rate"); (err == nil) != want {
			t.Errorf("%d/%d: %v", r.Num, r.Den, err)
		}
	}
}
