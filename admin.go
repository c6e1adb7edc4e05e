package netloop

import (
	"errors"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// listenAdmin opens the admin listener with the server's pages.
func (s *Server) listenAdmin() (*admin.Server, error) {
	var tokens *admin.Tokens
	if s.cfg.AdminTokenFile != "" {
		var err error
		if tokens, err = admin.OpenTokens(s.cfg.AdminTokenFile, s.log); err != nil {
			return nil, fmt.Errorf("netloop: AdminTokenFile: %w", err)
		}
	}
	a, err := admin.Listen(admin.Config{
		Listen:   s.cfg.Admin,
		Tokens:   tokens,
		Counts:   &s.adminCounts,
		Metrics:  s.metrics.Handler(s.log),
		Ticks:    s.ticksPage,
		Last:     func() any { return s.room.e.Stats.Slow().Last() },
		Slow:     func() any { return s.room.e.Stats.Slow().Worst() },
		Loop:     s.loopPage,
		Explain:  s.explainPage,
		Rooms:    s.roomsPage,
		Progress: s.progress,
		Ready:    s.readiness,
		Health:   s.health,
		Log:      s.log,

		CloseRoom: s.closePage,
	})
	switch {
	case errors.Is(err, admin.ErrOpen):
		return nil, fmt.Errorf("netloop: Admin: %w: set AdminTokenFile, or use an address of this machine alone such as 127.0.0.1:8080", err)
	case err != nil:
		return nil, fmt.Errorf("netloop: Admin: %w", err)
	}
	return a, nil
}

// progress returns how long ago the newest tick ended, and the tick period. A room that saves runs
// no more ticks and counts as alive for as long as the save may take.
func (s *Server) progress() (since, period time.Duration) {
	since, period = s.room.e.Stats.Progress()
	if saving, ends := s.room.e.Shutdown.Finishing(); ends && saving < room.WorkGrace+room.SaveTimeout {
		return 0, period
	}
	return since, period
}

// health returns the server's fault, or nil. A quarantined system is only noted: it recovers by
// itself, and a new process would cost every player the game. A system that the game needs is
// Critical, and ends the server.
func (s *Server) health() (note string, err error) {
	if n := s.quarantined(); n > 0 {
		note = fmt.Sprintf("systems that panicked again and again are quarantined: %d", n)
	}
	return note, s.room.e.Watchdog().Err()
}

// quarantined returns the number of quarantined systems of all rooms.
func (s *Server) quarantined() (n int) {
	for _, r := range s.directory.All() {
		n += r.Quarantined()
	}
	return n
}

// readiness returns why clients cannot connect, or nil and a note if the server is open to all.
func (s *Server) readiness() (note string, err error) {
	hung := s.room.e.Watchdog().Err()
	switch {
	case hung != nil:
		return "", hung
	case s.draining.Load():
		return "", errors.New("the server is closing")
	case !s.ready.Load():
		return "", errors.New("the server is starting")
	case s.room.Overload() >= OverloadRefusing:
		return "", errors.New("the server is overloaded")
	case s.room.full():
		return "", errors.New("the room is full")
	}
	if _, _, open := s.cfg.open(); open {
		note = "whoever reaches this server gets in: it asks for no tokens (insecure)"
	}
	return note, nil
}

// measured implements metrics.Server.
type measured struct{ s *Server }

func (m measured) Traffic() *transport.Stats { return m.s.transport }

func (m measured) SocketCalls(f *metrics.Family) {
	f.Set(m.s.socket.Receives.Load(), "in")
	f.Set(m.s.socket.Sends.Load(), "out")
}

func (m measured) SocketPackets(f *metrics.Family) {
	s := &m.s.socket
	f.Set(s.Received.Load(), "in", "moved")
	f.Set(s.Sent.Load(), "out", "moved")
	f.Set(s.TooLarge.Load(), "out", "too_large")
	f.Set(s.Unsent.Load(), "out", "refused")
}

func (m measured) SocketRetries(f *metrics.Family) { f.Set(m.s.socket.Retries.Load()) }

// Overload implements metrics.Server.
func (m measured) Overload(f *metrics.Family) {
	most := OverloadNone
	for _, r := range m.s.directory.All() {
		most = max(most, r.Overload())
	}
	f.Set(uint64(most))
}

// Quarantined implements metrics.Server.
func (m measured) Quarantined(f *metrics.Family) { f.Set(uint64(m.s.quarantined())) }

func (m measured) TimeScale(f *metrics.Family)   { f.SetFloat(m.s.room.e.Scale.Speed()) }
func (m measured) LogsDropped(f *metrics.Family) { f.Set(m.s.cfg.LogsDropped()) }

func (m measured) Simulated(f *metrics.Family) {
	if m.s.network == nil {
		return
	}
	m.s.network.Stats.Each(func(d netem.Direction, fate netem.Fate, n uint64) { f.Set(n, d.String(), fate.String()) })
}

func (m measured) Traces(f *metrics.Family) {
	if m.s.flight == nil {
		return
	}
	written, skipped, failed := m.s.flight.Counts()
	f.Set(written, "written")
	f.Set(skipped, "skipped")
	f.Set(failed, "failed")
}

func (m measured) AdminRefusals(f *metrics.Family) {
	c := &m.s.adminCounts
	f.Set(c.Host.Load(), "host")
	f.Set(c.Token.Load(), "token")
	f.Set(c.Busy.Load(), "busy")
	f.Set(c.Conns.Load(), "connection")
}
