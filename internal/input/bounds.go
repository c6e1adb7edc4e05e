package input

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{
		limits.Queues: {
			{
				Name:    "inputs that wait for their step, per client",
				Default: limits.Say("%v steps after the newest that has run, %v each, %v in all", Window, limits.Bytes(MaxSize), limits.Bytes(MaxMemory)),
				Unit:    "one a step", Counter: "netloop_inputs_total", Full: "for steps beyond, and for one that has its input, or has run: dropped",
			},
		},
		limits.Client: {
			{
				Name: "inputs in a datagram", Default: limits.Say("%v, in %v", Repeats, limits.Bytes(MaxPacket)), Unit: "inputs",
				Full: "the older ones are left out",
			},
			{
				Name: "inputs that are kept", Default: Kept, Unit: "those whose step is not known to have run", Full: "none is made",
			},
		},
	}
}
