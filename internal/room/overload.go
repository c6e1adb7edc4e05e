package room

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/transport"
)

// overloaded is a room's overload state. The level that was decided after one tick enters the next
// one as its input, and holds from there on.
type overloaded struct {
	ladder *overload.Ladder
	lags   []time.Duration // scratch of lag
	level  atomic.Uint32   // level of the running tick; read by admissions and probes
}

// Overload returns the room's level of overload. It changes between ticks only, and is an input of
// the tick: a game may do less by it. Any goroutine may call it.
func (r *Room) Overload() overload.Level { return overload.Level(r.load.level.Load()) }

// shed reduces the sending of objects that weigh less than 1 while the server is overloaded: they
// are sent as often as their class's MinRate says, or once a second.
func (r *Room) shed() {
	if r.Overload() >= overload.Shedding {
		r.world.Shed(uint64(max(1, math.Floor(r.spec.Hertz()))))
	} else {
		r.world.Shed(0)
	}
}

// NextOverload returns the level that enters the next tick.
func (r *Room) NextOverload() uint8 { return uint8(r.load.ladder.Level()) }

// beginOverload applies the level in a tick's input. It takes effect before the first stage.
func (r *Room) beginOverload(in *loop.Input) {
	was, now := r.Overload(), overload.Level(in.Overload)
	if now != overload.Normal {
		r.metrics.OverloadedTicks.Add(1)
	}
	if was == now {
		return
	}
	r.load.level.Store(uint32(now))
	r.shed()
	if now > was {
		r.log.Warn("overloaded: the server gives up more", "level", now.String(), "was", was.String(), "tick", in.Tick, "clients", len(r.clients.list))
	} else {
		r.log.Info("less overloaded: the server gives up less", "level", now.String(), "was", was.String(), "tick", in.Tick, "clients", len(r.clients.list))
	}
	for _, c := range r.clients.list {
		c.window.SetPeriod(r.sendPeriod())
		c.session.PublishOverload(r.overload())
	}
}

// overload returns the level as told to clients.
func (r *Room) overload() transport.Overload {
	return transport.Overload{Level: uint8(r.Overload()), SendEvery: uint32(r.sendEvery())}
}

// sendEvery returns the number of ticks between two snapshots of a client.
func (r *Room) sendEvery() int {
	if r.Overload() >= overload.Halved {
		return 2 * r.spec.SendEvery
	}
	return r.spec.SendEvery
}

// sendPeriod returns the time between two snapshots of a client.
func (r *Room) sendPeriod() time.Duration {
	return r.spec.Rate.Period() * time.Duration(r.sendEvery())
}

// observeLoad passes the cost of a tick to the ladder.
func (r *Room) observeLoad(rec *loop.Record) {
	s := overload.Sample{Duration: rec.Duration, Lateness: rec.Start - rec.Deadline}
	if r.load.ladder.WindowEnds() {
		s.FlushLag = r.medianFlushLag()
	}
	r.load.ladder.Observe(s)
}

// medianFlushLag returns the median over the clients with recent flushes: a client that has
// vanished, or reads slowly, is no measure of the server.
func (r *Room) medianFlushLag() time.Duration {
	r.load.lags = r.load.lags[:0]
	for _, c := range r.clients.list {
		if lag, ok := c.session.TakeFlushLag(); ok {
			r.load.lags = append(r.load.lags, lag)
		}
	}
	return overload.Median(r.load.lags)
}
