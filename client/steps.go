package client

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// stepClock says which fixed steps a frame runs. It counts by game time, not by ticks and not by
// frames: so steps are evenly spaced, whatever the rates of frames, ticks and steps are.
type stepClock struct {
	started bool
	at      time.Duration // the game time that the steps have come to
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

// start lets a clock that has not advanced yet begin behind a step.
func (c *stepClock) start(done uint64) {
	if !c.started {
		c.started, c.done = true, done
	}
}

// advance moves on to a game time, and notes in the input the steps that a frame runs by then. The
// steps before the first frame are skipped.
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

// setBack sets the steps back by a time: those after it run again.
func (c *stepClock) setBack(line loop.Timeline, by time.Duration) {
	c.at = max(c.at-by, 0)
	c.done, _ = line.StepAt(c.at)
}
