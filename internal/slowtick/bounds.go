package slowtick

import "github.com/netloop/netloop/internal/limits"

// Bounds returns the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name: "ticks in detail", Default: limits.Say("%v, and the worst %v of %v", LastTicks, WorstTicks, WorstFor),
			Unit: "ticks, of " + limits.Written(maxSystems) + " systems each",
			Full: "the oldest, and the least slow; small systems are added up",
		},
	}}
}
