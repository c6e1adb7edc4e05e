package netlooptest

import (
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/net/memnet"
)

// ClientOption is an option of [World.Join] and [World.JoinAs].
type ClientOption struct{ apply func(*seat) }

// FPS lets the client run n frames in a second of its own clock, evenly spaced and without a
// remainder that adds up. Its frames then run when they are due, between the server's ticks and
// also while a tick spends time. Without it a client runs one frame in each tick.
func FPS(n int) ClientOption {
	return ClientOption{func(s *seat) { s.frames.own, s.frames.line.Rate = true, loop.Hz(uint64(max(n, 0))) }}
}

// ClientClock gives the client a clock that is ahead of the world's by offset when the world
// begins, and gains ppm millionths of the elapsed time, or loses them if ppm is below 0. Without it
// a client has the world's clock.
func ClientClock(offset time.Duration, ppm int) ClientOption {
	return ClientOption{func(s *seat) { s.clock = memnet.Clock{Offset: offset, PPM: ppm} }}
}

// JumpClock sets a client's clock forward by a time. A negative time sets it back, as after the
// suspension of a computer whose clock did not run meanwhile: the client must have been frozen and
// cut off for at least that time. Its frames remain evenly spaced.
func (w *World) JumpClock(c *client.Client, by time.Duration) {
	w.tb.Helper()
	s := w.seat(c)
	s.clock.Offset += by
	s.frames.start += by
	s.conn.SetClock(s.clock)
}

// maxPPM is the maximum drift of a client's clock, in millionths of the elapsed time. A quartz
// clock has up to 50, a bad one 200.
const maxPPM = 10_000

// frames is the schedule of a client's frames.
type frames struct {
	own   bool          // by FPS; else the client runs one frame in each tick
	line  loop.Timeline // its ticks are frames
	start time.Duration // of frame 0, by the client's clock
	next  uint64
	last  time.Duration // time of the last frame, by the client's clock
	due   time.Duration // time of the next frame, by the world's clock
}

// schedule sets the time of the client's next frame.
func (s *seat) schedule() {
	s.frames.due = s.clock.When(s.frames.start + s.frames.line.GameTime(s.frames.next))
}

// begin checks the clock and the frame rate of a client that joins, and starts its frames.
func (w *World) begin(s *seat) {
	w.tb.Helper()
	if k := s.clock; k.Offset < 0 || k.PPM < -maxPPM || k.PPM > maxPPM {
		w.tb.Fatalf("netlooptest: ClientClock(%v, %d): use an offset of 0 or more, and %d to %d millionths", k.Offset, k.PPM, -maxPPM, maxPPM)
	}
	if !s.frames.own {
		return
	}
	if err := s.frames.line.Rate.Check(); err != nil {
		w.tb.Fatalf("netlooptest: FPS: %v", err)
	}
	s.frames.start = s.clock.At(w.net.Now())
	s.frames.last, s.frames.next = s.frames.start, 1
	s.schedule()
}

// advance advances time, with the frames that are due before then.
func (w *World) advance(to time.Duration) {
	for {
		var first *seat
		at := to
		for _, s := range w.clients {
			if s.frames.own && s.frames.due < at {
				first, at = s, s.frames.due
			}
		}
		w.net.Advance(at)
		if first == nil {
			return
		}
		first.frame(w.net.Now())
	}
}

// frame runs the frame that is due. A frame of a client that hangs is skipped, as by a program that
// drops frames.
func (s *seat) frame(now time.Duration) {
	s.frames.next++
	s.schedule()
	if s.frozen || s.gone {
		return
	}
	local := s.clock.At(now)
	s.c.Step(local - s.frames.last)
	s.frames.last = local
}

// GameTime returns the current game time of the default room, to the nanosecond: that of its last
// tick plus the time since. A client's netloop.Tick.GameTime estimates it.
func (w *World) GameTime() time.Duration {
	line, epoch := w.main.pacer.Timeline, w.main.pacer.Epoch()
	return line.GameTime(epoch.Tick) + w.net.Now() - epoch.At
}
