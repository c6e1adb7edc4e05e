package memnet

import "time"

// Clock is a clock that differs from the network's: by Offset at time 0, and by PPM millionths more
// of the time that passes. The zero Clock is the network's own.
type Clock struct {
	Offset time.Duration
	PPM    int
}

const million = 1_000_000

// At returns the time that the clock shows at a time of the network.
func (k Clock) At(now time.Duration) time.Duration {
	drift := now/million*time.Duration(k.PPM) + now%million*time.Duration(k.PPM)/million
	return now + drift + k.Offset
}

// When returns the first time of the network at which the clock shows local.
func (k Clock) When(local time.Duration) time.Duration {
	past := local - k.Offset
	now := past - time.Duration(float64(past)*float64(k.PPM)/float64(million+k.PPM))
	for k.At(now) >= local {
		now--
	}
	for k.At(now) < local {
		now++
	}
	return now
}
