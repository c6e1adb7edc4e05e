// Package input transfers the inputs of players: one for each fixed step, from the client that made
// it to the room that runs the step. It uses no network and no clock.
//
//	client                                         server
//	Ring.Add      the input of a step              Buffer.Take    the new inputs of a packet
//	   │                                               │          wait for their steps
//	Ring.AppendPacket  the newest, and others      Buffer.Next    the input of a step, or
//	   │               without an ack                  │          that there is none
//	   └───────────── datagrams, some lost ─────────▶  │
//	Ring.Confirm  ◀────────── Buffer.Status ───────────┘
//
// # A packet
//
// A packet is bits (package wire), newest input first:
//
//	packet = step:16 older:8 gaps:1 generation:2 view input (gap view input)^older
//	gap    = empty unless gaps is set; then len(number of steps without an input)
//	input  = a delta (package codec) from the zeros of the layout for the newest;
//	         from the newer one for the next;
//	         and from the extrapolation of the two before for those after it
//	view   = 0                   as that of the input before: see below; without one: none
//	       | 1 0                 none
//	       | 1 1 len(zigzag(step - from)) len(to - from) alpha:6
//
// step is the lowest 16 bits of the step of the newest input. A protobuf message has no delta: it
// is written whole, after len(bytes), or as one bit if it is equal to the newer message.
//
// A view after an existing view is written by its place on the line of snapshots: From, From +
// span, From + 2 span …, with 64 places between two snapshots. The first bit 0 is followed by
// rice(zigzag(a - b), 0): a is the number of places by which the view is before the view of the
// newer input, and b is the a of the newer input; 64 for the first view.
package input

// Limits of the input stream. Those that depend on the rate of fixed steps are in window.go.
const (
	// MaxSize is the maximal size of an input in bytes, so that MinRepeats inputs fit a datagram.
	MaxSize = 48
	// MaxPacket is the maximal size of a packet in bytes.
	MaxPacket = 900
	// MaxMemory60Hz is the maximal memory of a Buffer for inputs of any type and a window of 128
	// steps, the window at 60 Hz. MaxMemory is the same for MaxWindow.
	MaxMemory60Hz = 12 << 10
	MaxMemory     = 184 << 10
)
