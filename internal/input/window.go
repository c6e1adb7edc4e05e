package input

import "time"

// Span is the time covered by the windows of inputs, at every rate of fixed steps of a room: a
// client with a round trip of 2 s is still corrected.
const Span = 2 * time.Second

// Limits of the windows, in fixed steps.
const (
	// LeastWindow is the window of slow fixed steps: at 1 Hz it covers a minute.
	LeastWindow = 64
	// MostWindow is the window of the fastest fixed steps, 1000 Hz. It also limits the memory of a
	// client if its server announces more.
	MostWindow = 2048
	// LeastRepeats and MostRepeats limit how many inputs a packet repeats.
	LeastRepeats = 16
	MostRepeats  = 256
	// repeated is the time that the inputs of a packet cover. Older ones would arrive too late to
	// be used.
	repeated = 250 * time.Millisecond
)

// Window returns for how many fixed steps of a length inputs are stored: those of 2 s, rounded up
// to a power of two.
func Window(step time.Duration) int {
	n := LeastWindow
	for n < MostWindow && time.Duration(n)*step < Span {
		n *= 2
	}
	return n
}

// Repeats returns the most inputs in a packet for fixed steps of a length: those of a quarter of a
// second.
func Repeats(step time.Duration) int {
	return int(min(max(repeated/max(step, 1), LeastRepeats), MostRepeats))
}
