// Package input carries what players do: one input for each fixed step, from the client that made
// it to the room that runs the step. It knows no network and no clock.
//
//	client                                         server
//	Ring.Add      the input of a step              Buffer.Take    what is new in a packet
//	   │                                               │          waits for its step
//	Ring.AppendPacket  the newest, and what is     Buffer.Next    the input of a step, or
//	   │               not known to have come          │          that there is none
//	   └───────────── datagrams, some lost ─────────▶  │
//	Ring.Confirm  ◀────────── Buffer.Status ───────────┘
//
// # A packet
//
// A packet is bits (package wire), newest input first:
//
//	packet = step:16 older:8 gaps:1 generation:2 view input (gap view input)^older
//	gap    = nothing unless gaps is set; then len(the steps that are left out)
//	input  = a delta (package codec) from the zeros of the layout for the newest;
//	         from the newer one for the next;
//	         and from the newer one, drawn on from the two before, for those after it
//	view   = 0                   as that of the input before: see below; without one: none
//	       | 1 0                 none
//	       | 1 1 len(zigzag(step - from)) len(to - from) alpha:6
//
// The step is that of the newest input, in its lowest 16 bits. A protobuf message has no delta: it
// goes whole, behind len(bytes), or as one bit if it is as the newer one.
//
// A view that is not the first, and follows one that is there, is written by its place on the line
// of snapshots: From, From + span, From + 2 span …, with 64 places between two of them. With the
// first bit 0 comes rice(zigzag(a - b), 0), where a is how many places it lies before that of the
// newer input, and b is what a was for that one; 64 for the first.
package input

// Bounds of the input stream. Those that depend on the rate of fixed steps are in window.go.
const (
	// MaxSize is the most bytes of an input, so that LeastRepeats of them fit a datagram.
	MaxSize = 48
	// MaxPacket is the most bytes of a packet.
	MaxPacket = 900
	// MaxMemory is the most that a Buffer takes for a window of 128 steps, which is that of 60 Hz,
	// whatever the inputs are made of, and MostMemory for MostWindow.
	MaxMemory  = 12 << 10
	MostMemory = 184 << 10
)
