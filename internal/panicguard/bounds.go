package panicguard

import "github.com/netloop/netloop/internal/limits"

// Bounds returns the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name: "lines of the log that clients can cause, and those about one hook", Default: limits.Say("one in %v", Every),
			Unit: "of each kind", Full: "counted; the next line says `unlogged_before`",
		},
	}}
}
