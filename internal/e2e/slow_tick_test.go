package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/slowtick"
)

// TestASlowTickIsReportedAndTraced makes one tick slow by a pause, and finds it among the
// slowest, with its system as the cause and a trace file.
func TestASlowTickIsReportedAndTraced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	h := hangingGame{may: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	s, done := supervised(ctx, t, netloop.Config{Watchdog: 100 * time.Millisecond, TraceDir: dir}, script(h.open))
	h.hang.Store(true)
	waitFor(t, func() bool { status, _ := page(t, s, "/readyz"); return status != http.StatusOK })
	h.hang.Store(false)
	close(h.may)

	var slow slowtick.Record
	waitFor(t, func() bool {
		for _, r := range read(t, s, "/ticks/slow").Ticks {
			if r.Blame.Name == "test.hang" && r.Duration > 100*time.Millisecond {
				slow = r
			}
		}
		return slow.Tick != 0
	})
	if b := slow.Blame; b.Stage != "PreUpdate" || b.Cost > slow.Duration || slow.Stages[netloop.PreUpdate-1] < b.Cost {
		t.Errorf("%+v", slow)
	}
	last := read(t, s, "/ticks/last")
	if n := len(last.Ticks); n == 0 || n > slowtick.LastTicks || last.Budget != netloop.Hz(60).Period() {
		t.Errorf("%d ticks, budget %v", n, last.Budget)
	}
	for i, r := range last.Ticks[1:] {
		if r.Tick != last.Ticks[i].Tick+1 {
			t.Errorf("tick %d after %d", r.Tick, last.Ticks[i].Tick)
		}
	}
	// The trace is of this tick, or of one right before it that a busy machine made slow.
	waitFor(t, func() bool {
		_, body := page(t, s, "/metrics")
		return strings.Contains(body, "\nnetloop_slow_tick_traces_total{outcome=\"written\"} 1\n")
	})
	var list struct {
		Traces []struct{ Tick, Bytes uint64 }
	}
	if _, body := page(t, s, "/api/traces"); json.Unmarshal([]byte(body), &list) != nil || len(list.Traces) != 1 || list.Traces[0].Bytes == 0 {
		t.Errorf("traces %s", body)
	}
	if status, body := page(t, s, fmt.Sprint("/api/traces/file?tick=", list.Traces[0].Tick)); status != http.StatusForbidden {
		t.Errorf("a trace without a token: %d %.40s", status, body)
	}
	cancel()
	if err := ended(t, done); err != nil {
		t.Errorf("Run: %v", err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "netloop-*.trace")); err != nil || len(files) == 0 {
		t.Errorf("traces: %v, %v", files, err)
	}
}

// read reads a page of ticks.
func read(t *testing.T, s *netloop.Server, path string) (r slowtick.Report) {
	t.Helper()
	status, body := page(t, s, path)
	if err := json.Unmarshal([]byte(body), &r); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d, %v, %.100s", path, status, err, body)
	}
	return r
}

// An unusable directory is an error of Listen, which then opens no port.
func TestTraceDirMustBeUsable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := netloop.New(netloop.Config{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", TraceDir: file}, script(func(*netloop.Room) {}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err == nil || !strings.Contains(err.Error(), "TraceDir") || s.Addr() != nil || s.AdminAddr() != nil {
		t.Errorf("Listen: %v, %v, %v", err, s.Addr(), s.AdminAddr())
	}
}
