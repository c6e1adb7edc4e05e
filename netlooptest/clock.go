package netlooptest

import (
	"context"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/net/memnet"
)

// clock is the world's clock.
func (w *World) clock() loop.Clock { return netClock{net: w.net} }

// netClock shows the network's virtual time, or that of a client's own clock. Waiting is not
// possible: World.Step advances it.
type netClock struct {
	net *memnet.Network
	own memnet.Clock
}

// wallStart is the wall clock's time when a world begins.
var wallStart = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func (c netClock) Now() time.Duration { return c.own.At(c.net.Now()) }
func (c netClock) Wall() time.Time    { return wallStart.Add(c.Now()) }

func (c netClock) WaitUntil(context.Context, time.Duration) error {
	panic("netlooptest: a client of a world is stepped by World.Step, not by Run")
}
