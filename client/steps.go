package client

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// stepClock selects the fixed steps of a frame. It counts by game time, not by ticks and not by
// frames: so steps are evenly spaced at any rates of frames, ticks and steps.
type stepClock struct {
	started bool
	at      time.Duration // the game time of the newest step
	done    uint64        // steps run, or left out
	jumped  uint64        // steps left out
}

// A frame runs the fixed steps of mostSteps, or leastSteps if these are more. A longer frame would
// make a slow client slower: its other steps are left out, and counted.
const (
	mostSteps  = 125 * time.Millisecond
	leastSteps = 8
)

func maxSteps(step time.Duration) uint64 { return uint64(max(mostSteps/max(step, 1), leastSteps)) }

// start sets the last step of a clock that has not advanced yet.
func (c *stepClock) start(done uint64) {
	if !c.started {
		c.started, c.done = true, done
	}
}

// advance moves to a game time, and stores the steps that a frame runs up to it in the input. Steps
// before the client's first frame are skipped.
func (c *stepClock) advance(in *loop.Input, line loop.Timeline, to time.Duration) {
	c.at = max(c.at, to)
	target, fraction := line.StepAt(c.at)
	c.start(target)
	behind := target - c.done
	left := behind - min(behind, maxSteps(line.Fixed.Period()))
	c.jumped += left
	in.FixedSteps, in.FirstFixedStep = int(behind-left), c.done+left+1
	in.FixedDelta, in.Fraction = line.Fixed.Period(), fraction
	c.done = target
}

// setBack sets the steps back by a time: later steps run again.
func (c *stepClock) setBack(line loop.Timeline, by time.Duration) {
	c.at = max(c.at-by, 0)
	c.done, _ = line.StepAt(c.at)
}
