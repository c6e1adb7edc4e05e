package netloop

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// listenAdmin opens the admin listener with the server's pages.
func (s *Server) listenAdmin(controller *admission.Controller) (*admin.Server, error) {
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
		Routes:   slices.Concat(s.routes(), s.inspectorRoutes(), s.playgroundRoutes(controller)),
		Topics:   s.topics(),
		Progress: s.progress,
		Ready:    s.readiness,
		Health:   s.health,
		Log:      s.log,
	})
	if err != nil {
		s.closeTabSockets()
	}
	switch {
	case errors.Is(err, admin.ErrOpen):
		return nil, fmt.Errorf("netloop: Admin: %w: set AdminTokenFile, or use an address of this machine alone such as 127.0.0.1:8080", err)
	case err != nil:
		return nil, fmt.Errorf("netloop: Admin: %w", err)
	}
	if s.origins != nil {
		s.origins.Serves("http", a.Addr()) // The playground joins over WebTransport too.
	}
	return a, nil
}

// page answers one of the pages without a listener, for tests.
func (s *Server) page(ctx context.Context, path string, query url.Values) (any, error) {
	for _, r := range slices.Concat(s.routes(), s.inspectorRoutes(), s.playgroundRoutes(nil)) {
		switch {
		case r.Path != path:
		case r.Read != nil:
			return r.Read(ctx, query)
		case r.Act != nil:
			return r.Act(ctx, query)
		}
	}
	return nil, fmt.Errorf("netloop: there is no page %q", path)
}

// routes returns the pages of the admin listener.
func (s *Server) routes() []admin.Route {
	return []admin.Route{
		{Path: "/metrics", Text: "Prometheus metrics", Page: s.metrics.Handler(s.log)},
		{Path: "/ticks", Query: "?room=lobby", Text: "exact tick counts since the start, of all rooms or of one", Read: s.ticksPage},
		{Path: "/ticks/slow", Query: "?room=lobby", Text: "the slowest ticks of the last hour: stages, systems, queues, GC", Read: s.slowPage, Large: true},
		{Path: "/ticks/last", Query: "?room=lobby&after=100", Text: "the last 600 ticks, or those after a tick, likewise", Read: s.lastPage, Large: true},
		{Path: "/loop", Query: "?room=lobby", Text: "the systems of every stage: order, period, cost, state", Read: s.loopPage},
		{Path: "/rooms", Query: "?kind=table&sort=late&offset=0&limit=100", Text: "the rooms: clients, seats, rate, ticks", Read: s.roomsPage},
		{Path: "/explain", Query: "?room=lobby&client=1&object=17.3&field=Pos.X", Text: "why the client was sent the value, or was not; without a client the clients, without an object the objects (of class=)", Read: s.explainPage},
		{Path: "/rooms/close", Query: "?room=table-7&drain=30s&text=...", Text: "closes a room", Act: s.closePage},
	}
}

// progress returns the time since the default room's last tick ended, and its tick period, for
// /healthz. A room that ends runs no more ticks while it finishes its work and saves its state:
// during that time, at most WorkGrace + SaveTimeout, progress returns 0.
func (s *Server) progress() (since, period time.Duration) {
	since, period = s.room.e.Stats.Progress()
	if saving, ends := s.room.e.Shutdown.Finishing(); ends && saving < room.WorkGrace+room.SaveTimeout {
		return 0, period
	}
	return since, period
}

// health returns the watchdog's error if the default room hangs, or nil. The note has the number of
// quarantined systems. They do not fail the check, because they recover by themselves, and a
// restart of the process would end the game of every player. A system that the game needs is
// Critical, and ends the server.
func (s *Server) health() (note string, err error) {
	if n := s.quarantined(); n > 0 {
		note = fmt.Sprintf("systems in quarantine after repeated panics: %d", n)
	}
	return note, s.room.e.Watchdog().Err()
}

// Health returns nil while ticks run. It returns an error if the process should be restarted: no
// tick of the default room has ended for 2 s, or 10 periods if that is longer, or the watchdog sees
// one hang. It depends on the ticks alone, and is the answer of /healthz. Any goroutine may call
// it.
func (s *Server) Health() error {
	if _, err := s.health(); err != nil {
		return fmt.Errorf("netloop: %w", err)
	}
	if err := admin.Stalled(s.progress()); err != nil {
		return fmt.Errorf("netloop: %w", err)
	}
	return nil
}

// Ready returns nil while clients may join, and otherwise an error with the reason: the server is
// starting, full, overloaded or closing, or a tick hangs. It is the answer of /readyz. Any
// goroutine may call it.
func (s *Server) Ready() error {
	if _, err := s.readiness(); err != nil {
		return fmt.Errorf("netloop: %w", err)
	}
	return nil
}

// quarantined returns the number of quarantined systems of all rooms.
func (s *Server) quarantined() (n int) {
	for _, r := range s.rooms.All() {
		n += r.Quarantined()
	}
	return n
}

// readiness returns the reason why clients cannot connect, or nil. The note warns if no tokens are
// required.
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
		note = "every client is admitted: no tokens are required (insecure)"
	}
	if s.member != nil {
		if h := s.member.Health(); !h.OK {
			note = strings.TrimPrefix(note+"; the cluster does not answer: "+h.Text, "; ")
		}
	}
	return note, nil
}

// serverMetrics implements metrics.Server.
type serverMetrics struct{ s *Server }

func (m serverMetrics) Traffic() *transport.Stats { return m.s.transport }

func (m serverMetrics) SocketCalls(f *metrics.Family) {
	f.Set(m.s.socket.Receives.Load(), "in")
	f.Set(m.s.socket.Sends.Load(), "out")
}

func (m serverMetrics) SocketPackets(f *metrics.Family) {
	s := &m.s.socket
	f.Set(s.Received.Load(), "in", "moved")
	f.Set(s.Sent.Load(), "out", "moved")
	f.Set(s.TooLarge.Load(), "out", "too_large")
	f.Set(s.Unsent.Load(), "out", "refused")
	f.Set(s.Full.Load(), "out", "full")
}

// Records implements metrics.Server.
func (m serverMetrics) Records(f *metrics.Family) {
	s := &m.s.records
	f.Set(s.Sent.Load(), "out", "sealed")
	f.Set(s.Unsent.Load(), "out", "unsent")
	f.Set(s.Received.Load(), "in", "opened")
	f.Set(s.Unknown.Load(), "in", "unknown")
	f.Set(s.Invalid.Load(), "in", "invalid")
	f.Set(s.Forged.Load(), "in", "forged")
	f.Set(s.Throttled.Load(), "in", "throttled")
}

// RecordPaths implements metrics.Server.
func (m serverMetrics) RecordPaths(f *metrics.Family) {
	s := &m.s.records
	f.Set(s.Begins.Load(), "begun")
	f.Set(s.Returns.Load(), "returned")
	f.Set(s.Moves.Load(), "moved")
}

// RecordClients implements metrics.Server.
func (m serverMetrics) RecordClients(f *metrics.Family) {
	f.Set(uint64(max(m.s.records.Active.Load(), 0)))
}

func (m serverMetrics) SocketRetries(f *metrics.Family) { f.Set(m.s.socket.Retries.Load()) }

// Overload implements metrics.Server.
func (m serverMetrics) Overload(f *metrics.Family) {
	f.Set(uint64(m.s.overloaded().Overload()))
}

// overloaded returns the most overloaded room, the default one if none is.
func (s *Server) overloaded() *Room {
	most := s.room
	for _, r := range s.rooms.All() {
		if r.Overload() > most.Overload() {
			most = r
		}
	}
	return most
}

// Quarantined implements metrics.Server.
func (m serverMetrics) Quarantined(f *metrics.Family) { f.Set(uint64(m.s.quarantined())) }

func (m serverMetrics) TimeScale(f *metrics.Family)   { f.SetFloat(m.s.room.e.Scale.Speed()) }
func (m serverMetrics) LogsDropped(f *metrics.Family) { f.Set(m.s.cfg.LogsDropped()) }

func (m serverMetrics) Simulated(f *metrics.Family) {
	if m.s.network == nil {
		return
	}
	m.s.network.Stats.Each(func(d netem.Direction, fate netem.Fate, n uint64) { f.Set(n, d.String(), fate.String()) })
}

func (m serverMetrics) Traces(f *metrics.Family) {
	if m.s.traces == nil {
		return
	}
	written, skipped, failed := m.s.traces.Counts()
	f.Set(written, "written")
	f.Set(skipped, "skipped")
	f.Set(failed, "failed")
}

func (m serverMetrics) AdminRefusals(f *metrics.Family) {
	c := &m.s.adminCounts
	f.Set(c.Host.Load(), "host")
	f.Set(c.Token.Load(), "token")
	f.Set(c.Busy.Load(), "busy")
	f.Set(c.Conns.Load(), "connection")
	f.Set(c.Slow.Load(), "slow")
}
