package loop

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name: "systems and groups", Default: limits.Say("%v, groups %v deep", MaxSystems, MaxDepth), Unit: "systems and groups",
			Full: "Add is an error",
		},
		{
			Name: "ticks that run back to back after a stall", Default: DefaultBurst, Unit: "ticks",
			Counter: "netloop_dropped_ticks_total", Full: "the other ticks never run",
		},
		{
			Name: "quarantine of a system that panics again and again", Default: limits.Say("%v, then twice as long, up to %v", firstQuarantine, maxQuarantine),
			Unit: "ticks", Counter: "netloop_systems_quarantined", Full: "this is the longest quarantine",
		},
		{
			Name: "panics kept of a tick", Default: MaxPanics, Unit: "panics",
			Counter: `netloop_system_panics_total{system="others"}`, Full: "counted without their text",
		},
	}}
}
