package input

import "time"

// Span is the time that the windows of inputs cover, at every rate of fixed steps: the lead of a
// client with a round trip of 2 s is still corrected.
const Span = 2 * time.Second

// Limits of the windows, in fixed steps.
const (
	// MinWindow is the window of slow fixed steps: at 1 Hz it covers a minute.
	MinWindow = 64
	// MaxWindow is the window of the fastest fixed steps, 1000 Hz. It also limits the memory of a
	// client if its server announces more.
	MaxWindow = 2048
	// MinRepeats and MaxRepeats limit the number of inputs in a packet.
	MinRepeats = 16
	MaxRepeats = 256
	// repeated is the time that the inputs of a packet cover. Older inputs would arrive too late.
	repeated = 250 * time.Millisecond
)

// Window returns the number of fixed steps for which inputs are stored, given the length of a step:
// the steps of 2 s, rounded up to a power of two.
func Window(step time.Duration) int {
	n := MinWindow
	for n < MaxWindow && time.Duration(n)*step < Span {
		n *= 2
	}
	return n
}

// Repeats returns the largest number of inputs in a packet, given the length of a fixed step: the
// inputs of a quarter of a second.
func Repeats(step time.Duration) int {
	return int(min(max(repeated/max(step, 1), MinRepeats), MaxRepeats))
}
