package tracedump

import "github.com/netloop/netloop/internal/limits"

// Bounds returns the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name: "traces of slow ticks (`--trace-dir`)", Default: limits.Say("one in %v", dumpEvery),
			Counter: "netloop_slow_tick_traces_total", Full: "not written",
		},
		{
			Name: "… their directory", Default: limits.Say("%v files, %v", maxFiles, limits.Bytes(maxBytes)),
			Full: "the oldest file is deleted",
		},
	}}
}
