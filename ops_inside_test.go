package netloop

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/netem"
)

// The metrics contain the server's counts, each under its label.
func TestTheMetricsOfAServer(t *testing.T) {
	s := newStill(t, Config{LogsDropped: func() uint64 { return 9 }}, closedGame{new(opening)})
	s.network = &netem.Config{Stats: new(netem.Stats)}
	a, w := &s.adminCounts, &s.webCounts
	a.Host.Store(1)
	a.Token.Store(2)
	a.Busy.Store(3)
	a.Conns.Store(4)
	w.Answered.Store(5)
	w.Missing.Store(6)
	w.Conns.Store(7)
	w.Rate.Store(8)
	socket := &s.socket
	for n, count := range []*atomic.Uint64{
		&socket.Receives, &socket.Sends, &socket.Received, &socket.Sent, &socket.TooLarge, &socket.Unsent, &socket.Retries,
	} {
		count.Store(uint64(n + 1))
	}
	socket.Full.Store(7)
	records := &s.records
	for n, count := range []*atomic.Uint64{
		&records.Sent, &records.Unsent, &records.Received, &records.Unknown, &records.Invalid, &records.Forged,
		&records.Throttled, &records.Begins, &records.Returns, &records.Moves,
	} {
		count.Store(uint64(n + 1))
	}
	records.Active.Store(11)
	counted(t, s,
		`netloop_socket_packets_total{direction="out",outcome="full"} 7`,
		`netloop_records_total{direction="out",outcome="sealed"} 1`, `netloop_records_total{direction="out",outcome="unsent"} 2`,
		`netloop_records_total{direction="in",outcome="opened"} 3`, `netloop_records_total{direction="in",outcome="unknown"} 4`,
		`netloop_records_total{direction="in",outcome="invalid"} 5`, `netloop_records_total{direction="in",outcome="forged"} 6`,
		`netloop_records_total{direction="in",outcome="throttled"} 7`, `netloop_record_paths_total{outcome="begun"} 8`,
		`netloop_record_paths_total{outcome="returned"} 9`, `netloop_record_paths_total{outcome="moved"} 10`, "netloop_record_clients 11",
		`netloop_admin_refusals_total{reason="host"} 1`, `netloop_admin_refusals_total{reason="token"} 2`,
		`netloop_admin_refusals_total{reason="busy"} 3`, `netloop_admin_refusals_total{reason="connection"} 4`,
		`netloop_web_requests_total{outcome="answered"} 5`, `netloop_web_requests_total{outcome="missing"} 6`,
		`netloop_web_connections_refused_total{reason="full"} 7`, `netloop_web_connections_refused_total{reason="rate"} 8`,
		`netloop_socket_calls_total{direction="in"} 1`, `netloop_socket_calls_total{direction="out"} 2`, "netloop_socket_retries_total 7",
		`netloop_socket_packets_total{direction="in",outcome="moved"} 3`, `netloop_socket_packets_total{direction="out",outcome="moved"} 4`,
		`netloop_socket_packets_total{direction="out",outcome="too_large"} 5`, `netloop_socket_packets_total{direction="out",outcome="refused"} 6`,
		`netloop_logs_dropped_total 9`, `netloop_time_scale 1`, `netloop_overload_level 0`,
	)
	if !strings.Contains(scraped(s), "\nnetloop_simulated_packets_total{") {
		t.Error("the metrics say nothing of the simulated network")
	}
	plain := scraped(newStill(t, Config{}, closedGame{new(opening)}))
	if strings.Contains(plain, "\nnetloop_simulated_packets_total{") || strings.Contains(plain, "\nnetloop_tokens_total{") {
		t.Error("the metrics have what there is not")
	}
}

// Readiness tells a matchmaker whether clients would be admitted, and otherwise the reason.
func TestAServerSaysWhetherItIsReady(t *testing.T) {
	s := newStill(t, Config{Listen: ":1", Auth: Auth{Insecure: true}}, closedGame{new(opening)})
	says := func(want string) {
		t.Helper()
		note, err := s.readiness()
		if err != nil {
			note = err.Error()
		}
		if note != want {
			t.Errorf("it says %q, want %q", note, want)
		}
	}
	says("the server is starting")
	s.ready.Store(true)
	says("every client is admitted: no tokens are required (insecure)")
	s.cfg.Listen = "127.0.0.1:1"
	says("")
	s.cfg.Web = ":2"
	says("every client is admitted: no tokens are required (insecure)")
	if _, err := s.Reserve(t.Context(), "", Reservation{Seats: 255}); err != nil {
		t.Fatal(err)
	}
	says("every client is admitted: no tokens are required (insecure)")
	if _, err := s.Reserve(t.Context(), "", Reservation{}); err != nil {
		t.Fatal(err)
	}
	says("the room is full")
	s.cfg.Listen = "127.0.0.1:1"
	says("the room is full")
	s.draining.Store(true)
	says("the server is closing")
	s.draining.Store(false)
	closed := newStill(t, Config{}, closedGame{new(opening)})
	closed.ready.Store(true)
	if note, err := closed.readiness(); note != "" || err != nil {
		t.Errorf("a server of this machine alone says %q, %v", note, err)
	}
	if note, err := closed.health(); note != "" || err != nil {
		t.Errorf("its health is %q, %v", note, err)
	}
}

// The age of the newest tick is reported together with the time that a tick may take.
func TestAServerTellsItsProgress(t *testing.T) {
	s, err := New(Config{}, closedGame{new(opening)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.room.e.Step(s.room.e.Timeline().Input(1)); err != nil {
		t.Fatal(err)
	}
	if since, period := s.progress(); since < 0 || period != Hz(60).Period() {
		t.Errorf("the newest of the ticks, each of which takes %v, was %v ago", period, since)
	}
}

// Health and Ready are the answers of the probes: a server without ticks is not healthy, and a
// closing server is not ready.
func TestHealthAndReadyAreTheAnswersOfTheProbes(t *testing.T) {
	s := newStill(t, Config{}, closedGame{new(opening)})
	if err := s.Ready(); err == nil || err.Error() != "netloop: the server is starting" {
		t.Errorf("Ready before the start: %v", err)
	}
	s.ready.Store(true)
	if err := s.Ready(); err != nil {
		t.Errorf("Ready: %v", err)
	}
	now := clock.NewVirtual()
	s.clock.Clock = now
	now.Set(time.Second)
	if err := s.Health(); err != nil {
		t.Errorf("Health: %v", err)
	}
	now.Set(time.Hour)
	if err := s.Health(); err == nil || !strings.Contains(err.Error(), "netloop: no tick ended for ") {
		t.Errorf("Health without ticks for an hour: %v", err)
	}
	s.draining.Store(true)
	if err := s.Ready(); err == nil || err.Error() != "netloop: the server is closing" {
		t.Errorf("Ready of a closing server: %v", err)
	}
}
