package input

import (
	"time"

	"github.com/netloop/netloop/internal/limits"
)

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{
		limits.Queues: {
			{
				Name:    "inputs that wait for their step, per client",
				Default: limits.Say("those of %v: at 60 Hz %v steps after the newest that has run and %v, at 1000 Hz %v and %v", Span, Window(time.Second/60), limits.Bytes(MaxMemory), MostWindow, limits.Bytes(MostMemory)),
				Unit:    "one a step, of 48 bytes", Counter: "netloop_inputs_total", Full: "for steps beyond, and for one that has its input: dropped",
			},
		},
		limits.Client: {
			{
				Name: "inputs in a datagram", Default: limits.Say("those of %v, from %v to %v, in %v", repeated, LeastRepeats, MostRepeats, limits.Bytes(MaxPacket)), Unit: "inputs",
				Full: "the older ones are left out",
			},
			{
				Name: "inputs that are kept", Default: limits.Say("those of %v, from %v to %v", 2*Span, 2*LeastWindow, 2*MostWindow), Unit: "the newest",
				Full: "the oldest go",
			},
		},
	}
}
