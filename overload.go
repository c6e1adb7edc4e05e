package netloop

import (
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/transport"
)

// Overload is how much a server gives up while it cannot keep up. What a level
// gives up, all higher ones give up too.
type Overload = overload.Level

// The levels of overload, from bottom to top.
const (
	OverloadNone     = overload.Normal   // nothing is given up
	OverloadHalved   = overload.Halved   // every client gets half of the snapshots
	OverloadShedding = overload.Shedding // objects that weigh less than 1 (see [Weight]) are sent at their MinRate, or once a second
	OverloadRefusing = overload.Refusing // nobody else may join: they are refused with CodeBusy
)

// overloaded is where a room stands on the ladder. The level that was decided
// after one tick enters the next one as its input, and acts from there on.
type overloaded struct {
	ladder *overload.Ladder
	lags   []time.Duration // scratch of lag
	level  atomic.Uint32   // of the running tick; for admissions and probes
}

// Overload returns the room's level of overload. It changes between ticks only,
// and is an input of the tick: a game may do less by it. Any goroutine may call
// it.
func (r *Room) Overload() Overload { return Overload(r.load.level.Load()) }

// nextOverload is the level that enters the next tick.
func (r *Room) nextOverload() uint8 { return uint8(r.load.ladder.Level()) }

// beginOverload takes the level that entered with a tick's input. What it
// changes, it changes before the first stage.
func (r *Room) beginOverload(in *loop.Input) {
	was, now := r.Overload(), Overload(in.Overload)
	if now != OverloadNone {
		r.server.metrics.AddOverloadedTick()
	}
	if was == now {
		return
	}
	r.load.level.Store(uint32(now))
	r.server.metrics.SetOverload(uint8(now))
	r.shed()
	if now > was {
		r.log.Warn("overloaded: the server gives up more", "level", now.String(), "was", was.String(), "tick", in.Tick, "clients", len(r.clients.list))
	} else {
		r.log.Info("less overloaded: the server gives up less", "level", now.String(), "was", was.String(), "tick", in.Tick, "clients", len(r.clients.list))
	}
	period := r.spec.Rate.Period() * time.Duration(r.sendEvery())
	for _, c := range r.clients.list {
		c.window.SetPeriod(period)
		c.session.PublishOverload(r.overload())
	}
}

// overload is what clients are told.
func (r *Room) overload() transport.Overload {
	return transport.Overload{Level: uint8(r.Overload()), SendEvery: uint32(r.sendEvery())}
}

// sendEvery is after how many ticks a client's next snapshot is due.
func (r *Room) sendEvery() int {
	if r.Overload() >= OverloadHalved {
		return 2 * r.spec.SendEvery
	}
	return r.spec.SendEvery
}

// observeLoad lets the ladder see what a tick cost.
func (r *Room) observeLoad(rec *loop.Record) {
	s := overload.Sample{Duration: rec.Duration, Lateness: rec.Start - rec.Deadline}
	if r.load.ladder.WindowEnds() {
		s.FlushLag = r.medianFlushLag()
	}
	r.load.ladder.Observe(s)
}

// medianFlushLag is the median over the clients to whom anything has left lately:
// who has vanished, or reads slowly, says nothing of the server.
func (r *Room) medianFlushLag() time.Duration {
	r.load.lags = r.load.lags[:0]
	for _, c := range r.clients.list {
		if lag, ok := c.session.TakeFlushLag(); ok {
			r.load.lags = append(r.load.lags, lag)
		}
	}
	return overload.Median(r.load.lags)
}
