package memnet

import "time"

// Clock is a clock that differs from the network's: by Offset at time 0, plus PPM millionths of the
// elapsed time. The zero Clock is the network's clock.
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
