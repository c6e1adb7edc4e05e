package netloop

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/tracedump"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// An invalid configuration is an error that names the key, at the latest from Listen, and the ports
// opened until then are free again.
func TestInvalidConfigErrorsNameTheKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing, taken := filepath.Join(t.TempDir(), "missing"), prometheus.NewRegistry()
	newStill(t, Config{Registerer: taken}, closedGame{new(opening)})
	for want, c := range map[string]Config{
		"Origins: ":    {Origins: []string{"nonsense"}},
		"InspectRing":  {InspectRing: time.Second},
		"Registerer: ": {Registerer: taken},
		"Record: ":     {Record: &tornFile{}},
		"Auth.Keys: ":  {Auth: Auth{Keys: missing, Audience: "a"}},
		"Room.Rate: ":  {Room: RoomSpec{Rate: Hz(5000)}},
	} {
		if _, err := New(c, closedGame{new(opening)}); err == nil || !strings.HasPrefix(err.Error(), "netloop: "+want) {
			t.Errorf("New: %v, want %s", err, want)
		}
	}
	const loopback = "127.0.0.1:0"
	for want, c := range map[string]Config{
		"CertFile: ":       {CertFile: missing, KeyFile: missing},
		"AdminTokenFile: ": {Admin: loopback, AdminTokenFile: missing},
		"Admin: ":          {Admin: "0.0.0.0:0"},
		"Web: ":            {Web: "127.0.0.1:99999"},
		"TraceDir: ":       {TraceDir: file},
		"Listen: ":         {Listen: "127.0.0.1:99999"},
	} {
		ports := []*string{&c.Listen, &c.Admin, &c.Web}
		for _, address := range ports {
			if *address == "" {
				*address = freePort(t)
			}
		}
		s := newStill(t, c, closedGame{new(opening)})
		if err := s.Listen(); err == nil || !strings.HasPrefix(err.Error(), "netloop: "+want) {
			t.Errorf("Listen: %v, want %s", err, want)
		}
		if s.Addr() != nil || s.AdminAddr() != nil || s.WebAddr() != nil {
			t.Errorf("%s: it listens on %v, %v and %v all the same", want, s.Addr(), s.AdminAddr(), s.WebAddr())
		}
		for _, address := range []string{c.Admin, c.Web} {
			if address == loopback || address == c.Web && want == "Web: " || address == c.Admin && want == "Admin: " {
				continue
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Errorf("%s: %v", want, err)
				continue
			}
			_ = l.Close()
		}
	}
}

// The trace of a slow tick is served, if there is one.
func TestTracesAreServed(t *testing.T) {
	s := newStill(t, Config{}, closedGame{new(opening)})
	get := func(tick string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.traceFile(w, httptest.NewRequest(http.MethodGet, "/api/traces/file?tick="+tick, nil))
		return w
	}
	if w := get("7"); w.Code != http.StatusNotFound {
		t.Errorf("without traces: %d", w.Code)
	}
	var err error
	if s.traces, err = tracedump.Open(tracedump.Config{Dir: t.TempDir(), Name: "x", Log: s.log}); err != nil {
		t.Fatal(err)
	}
	defer func() { s.traces = nil }()
	s.traces.Slow(tracedump.Tick{Number: 7})
	s.traces.Close()
	if w := get("7"); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "go 1.") || !strings.Contains(w.Header().Get("Content-Disposition"), "tick7.trace") {
		t.Errorf("%d %v %.20q", w.Code, w.Header(), w.Body)
	}
	for tick, want := range map[string]int{"8": http.StatusNotFound, "x": http.StatusBadRequest} {
		if w := get(tick); w.Code != want || strings.Count(w.Body.String(), "\n") != 1 {
			t.Errorf("tick %s: %d %q", tick, w.Code, w.Body)
		}
	}
}

// freePort returns an unused address.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// Servers have distinct instances, and their figures are counted.
func TestAServerIsItself(t *testing.T) {
	a, b := newStill(t, Config{}, closedGame{new(opening)}), newStill(t, Config{}, closedGame{new(opening)})
	if a.instance == b.instance || a.cfg.Seed == b.cfg.Seed {
		t.Error("two servers are one")
	}
	a.transport.FlushLag(time.Millisecond)
	a.socket.Lag(time.Millisecond)
	a.socket.Wait(time.Millisecond)
	counted(t, a, "netloop_flush_lag_seconds_count 1", "netloop_socket_lag_seconds_count 1", "netloop_socket_wait_seconds_count 1")
	if a.simulated() != nil {
		t.Error("a network is simulated that nobody asked for")
	}
}

// A client without a ticket is not charged, and a client with a wrong ticket for an existing room
// is; a draining server admits no client.
func TestAdmissionsAreCharged(t *testing.T) {
	s := newStill(t, Config{}, closedGame{new(opening)})
	admit := func(ticket string) error {
		hello := openingSchema.s.Hello()
		hello.Ticket = ticket
		if _, err := (admitter{s}).Tables(hello); err != nil {
			return err
		}
		_, err := (admitter{s}).Admit(t.Context(), hello, "1.2.3.4:5")
		return err
	}
	for range directory.RoomBurst + 8 {
		if err := admit(""); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(scraped(s), `{queue="tickets",reason="unknown"}`) {
		t.Error("who has no ticket pays for one")
	}
	tickets, err := s.Reserve(t.Context(), "", Reservation{})
	if err != nil {
		t.Fatal(err)
	}
	if err := admit(string(tickets[0])); err != nil {
		t.Errorf("a ticket: %v", err)
	}
	refusedWith(t, "a wrong ticket", admit("wrong@"), CodeTicket)
	counted(t, s, `netloop_queue_drops_total{queue="tickets",reason="unknown"} 1`)
	strange := NewSchema("strange", 9, 0)
	if _, err := (admitter{s}).Tables(strange.s.Hello()); err == nil {
		t.Error("a client of another game gets tables")
	}
	s.draining.Store(true)
	refusedWith(t, "the tables of a server that drains", admit(""), CodeClosing)
	_, err = (admitter{s}).Admit(t.Context(), &netloopv1.Hello{}, "1.2.3.4:5")
	refusedWith(t, "a place in a server that drains", err, CodeClosing)
}

// A server without ports opens its admin port once, however often Listen is called.
func TestAServerWithoutPortsListensOnce(t *testing.T) {
	s := newStill(t, Config{Offline: true, Admin: "127.0.0.1:0"}, closedGame{new(opening)})
	var at [2]net.Addr
	for i := range at {
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		at[i] = s.AdminAddr()
	}
	if at[0] == nil || at[0].String() != at[1].String() {
		t.Errorf("it listens at %v and then at %v", at[0], at[1])
	}
}
