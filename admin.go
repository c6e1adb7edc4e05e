package netloop

import (
	"errors"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/room"
)

// listenAdmin binds the admin listener to what the server knows of itself.
func (s *Server) listenAdmin() (*admin.Server, error) {
	return admin.Listen(admin.Config{
		Listen:   s.cfg.Admin,
		Metrics:  s.metrics.Handler(s.log),
		Ticks:    s.metrics.Ticks,
		Last:     func() any { return s.room.e.Slow().Last() },
		Slow:     func() any { return s.room.e.Slow().Worst() },
		Loop:     s.room.e.AskView,
		Explain:  s.room.explainPage,
		Progress: s.progress,
		Ready:    s.readiness,
		Health:   s.health,
		Log:      s.log,
	})
}

// progress returns how long ago the newest tick ended, and the tick period. A room
// that saves runs no more ticks and is alive for as long as it may take.
func (s *Server) progress() (since, period time.Duration) {
	since, period = s.metrics.Progress()
	if saving, ends := s.room.e.Finishing(); ends && saving < room.WorkGrace+room.SaveTimeout {
		return 0, period
	}
	return since, period
}

// health says what is wrong with the server. A quarantined system is noted only: it
// comes back by itself, and a new process would cost every player the game. One
// that the game cannot do without is Critical, and ends the server.
func (s *Server) health() (note string, err error) {
	if n := s.room.Quarantined(); n > 0 {
		note = fmt.Sprintf("systems that panicked again and again are quarantined: %d", n)
	}
	return note, s.room.e.Watchdog().Err()
}

// readiness says why clients may not come, or nil.
func (s *Server) readiness() error {
	hung := s.room.e.Watchdog().Err()
	switch {
	case hung != nil:
		return hung
	case s.draining.Load():
		return errors.New("the server is closing")
	case !s.ready.Load():
		return errors.New("the server is starting")
	case s.room.Overload() >= OverloadRefusing:
		return errors.New("the server is overloaded")
	case s.room.e.Seats() >= s.room.spec.MaxClients:
		return errors.New("the room is full")
	}
	return nil
}

// collect hands counters that live elsewhere to the metrics. They are atomics, so
// the scrape itself asks for them, even when no tick runs.
func (s *Server) collect() {
	m, t := s.metrics, s.transport
	t.Drops(m.SetDrops)
	t.Disconnects(m.SetDisconnects)
	m.SetTransport("in", t.DatagramsIn.Load(), t.DatagramBytesIn.Load()+t.StreamBytesIn.Load())
	m.SetTransport("out", t.DatagramsOut.Load(), t.DatagramBytesOut.Load()+t.StreamBytesOut.Load())
	m.SetChoked(t.Chokes.Load())
	m.SetHandshakes(t.Handshakes.Load(), t.Refused.Load())
	if s.flight != nil {
		m.SetTraces(s.flight.Counts())
	}
	m.SetHungTicks(s.room.e.Watchdog().Hangs())
	m.SetLogsDropped(s.cfg.LogsDropped())
}
