package watchdog

import "github.com/netloop/netloop/internal/limits"

// Bounds returns the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name:    "stacks in the line about a tick that hangs",
			Default: limits.Say("%v of its own, %v of others", limits.Bytes(maxOwn), limits.Bytes(maxOthers)),
			Counter: "netloop_hung_ticks_total", Full: "the line says how many are left out",
		},
	}}
}
