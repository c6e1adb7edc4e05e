package room

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/transport"
)

// Load is a room's overload state. The level that was decided after one tick is part of the next
// tick's input, and takes effect there.
type Load struct {
	*core
	ladder *overload.Monitor
	lags   []time.Duration // scratch of lag
	level  atomic.Uint32   // level of the running tick; read by admissions and probes
	mu     sync.Mutex
	facts  overload.Facts // as of the last window; under mu
}

// Level returns the room's level of overload. It changes only between ticks, so a game may use it
// to decide how much work to do. Any goroutine may call it.
func (l *Load) Level() overload.Level { return overload.Level(l.level.Load()) }

// shed makes the world send changes of objects with a weight below 1 at the MinRate of their class,
// or once a second without one, while the level is Shedding or higher.
func (l *Load) shed() {
	if l.Level() >= overload.Shedding {
		l.world.Shed(uint64(max(1, math.Floor(l.spec.Hertz()))))
	} else {
		l.world.Shed(0)
	}
}

// Next returns the level for the input of the next tick.
func (l *Load) Next() uint8 { return uint8(l.ladder.Level()) }

// begin applies the level in a tick's input. It takes effect before the first stage.
func (l *Load) begin(in *loop.Input) {
	was, now := l.Level(), overload.Level(in.Overload)
	if now != overload.Normal {
		l.metrics.OverloadedTicks.Add(1)
	}
	if was == now {
		return
	}
	l.level.Store(uint32(now))
	l.shed()
	if now > was {
		l.log.Warn("overloaded: the room reduces its work further", "level", now.String(), "was", was.String(), "tick", in.Tick, "clients", len(l.clients.list))
	} else {
		l.log.Info("less overloaded: the room resumes part of its work", "level", now.String(), "was", was.String(), "tick", in.Tick, "clients", len(l.clients.list))
	}
	for _, c := range l.clients.list {
		c.window.SetPeriod(l.sendPeriod())
		c.session.PublishOverload(l.message())
	}
}

// message returns the level as it is sent to clients.
func (l *Load) message() transport.Overload {
	return transport.Overload{Level: uint8(l.Level()), SendEvery: uint32(l.sendEvery())}
}

// sendEvery returns the number of ticks between two snapshots of a client.
func (l *Load) sendEvery() int {
	if l.Level() >= overload.Halved {
		return 2 * l.spec.SendEvery
	}
	return l.spec.SendEvery
}

// sendPeriod returns the time between two snapshots of a client.
func (l *Load) sendPeriod() time.Duration {
	return l.spec.Rate.Period() * time.Duration(l.sendEvery())
}

// observe passes the cost of a tick to the monitor.
func (l *Load) observe(rec *loop.Record) {
	s := overload.Sample{Duration: rec.Duration, Lateness: rec.Start - rec.Deadline}
	ends := l.ladder.WindowEnds()
	if ends {
		s.FlushLag = l.medianFlushLag()
	}
	l.ladder.Observe(s)
	if ends {
		l.mu.Lock()
		l.facts = l.ladder.Facts()
		l.mu.Unlock()
	}
}

// Facts returns why the room is at its level, as of the last window. Any goroutine may call it.
func (l *Load) Facts() overload.Facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts
}

// medianFlushLag returns the median of Session.TakeFlushLag over the clients with recent flushes. A
// client that has vanished or reads slowly says nothing about the server, and hardly affects the
// median.
func (l *Load) medianFlushLag() time.Duration {
	l.lags = l.lags[:0]
	for _, c := range l.clients.list {
		if lag, ok := c.session.TakeFlushLag(); ok {
			l.lags = append(l.lags, lag)
		}
	}
	return overload.Median(l.lags)
}
