package logging

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name: "lines of the log that wait to be written", Default: limits.Bytes(DefaultMaxPending),
			Counter: "netloop_logs_dropped_total", Full: "dropped, and a line says how many",
		},
	}}
}
