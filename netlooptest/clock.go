package netlooptest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/net/memnet"
)

// clock is the world's clock.
func (w *World) clock() loop.Clock { return netClock{w.net, nil, &w.wall} }

// netClock shows the network's virtual time, or the time of a client's own clock. A netClock cannot
// wait: only World.Step advances the time.
type netClock struct {
	net  *memnet.Network
	own  *memnet.Clock // nil: the network's time
	jump *atomic.Int64 // nanoseconds added to the wall clock; nil: none
}

// wallStart is the wall clock's time when a world begins.
var wallStart = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func (c netClock) Now() time.Duration {
	if c.own == nil {
		return c.net.Now()
	}
	return c.own.At(c.net.Now())
}

func (c netClock) Wall() time.Time {
	now := wallStart.Add(c.Now())
	if c.jump != nil {
		now = now.Add(time.Duration(c.jump.Load()))
	}
	return now
}

// JumpWall sets the server's wall clock forward, or back if by is negative, as an operator may. The
// expiry of tokens follows it, and no other time does.
func (w *World) JumpWall(by time.Duration) { w.wall.Add(int64(by)) }

func (c netClock) WaitUntil(context.Context, time.Duration) error {
	panic("netlooptest: a client of a world is stepped by World.Step, not by Run")
}
