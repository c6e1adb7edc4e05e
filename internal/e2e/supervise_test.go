package e2e_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/logging"
)

// supervised is running, with a check for leaked goroutines at the end.
func supervised(ctx context.Context, t *testing.T, cfg netloop.Config, g netloop.Game) (*netloop.Server, <-chan error) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t, leaks)
	})
	return running(ctx, t, cfg, g)
}

// ended waits for the end of Run.
func ended(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("Run has not returned within a minute")
		return nil
	}
}

// closedWith waits until the client is closed, and returns the code.
func closedWith(t *testing.T, c *client.Client) netloop.Code {
	t.Helper()
	waitFor(t, func() bool { return c.Closed() != nil })
	return c.Closed().Code
}

// page reads a page of the server's admin listener.
func page(t *testing.T, s *netloop.Server, path string) (status int, body string) {
	t.Helper()
	resp, err := http.Get("http://" + s.AdminAddr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// A system that calls Goexit ends the server: the error names the system, clients get the reason,
// and the game saves.
func TestGoexitInASystemEndsTheServer(t *testing.T) {
	var armed atomic.Bool
	saved, left := 0, 0
	s, done := supervised(t.Context(), t, netloop.Config{}, script(func(r *netloop.Room) {
		r.On(netloop.Update, "test.die", func(*netloop.Tick) {
			if armed.Load() {
				runtime.Goexit()
			}
		})
		r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { left++ })
		r.OnClose(func(context.Context, *netloop.Closed) error { saved++; return nil })
	}))
	c := dial(t, s.Addr().String(), nil)
	waitFor(t, func() bool { return clients(s) == 1 })
	armed.Store(true)
	if err := ended(t, done); err == nil || !strings.Contains(err.Error(), `"test.die" ended its goroutine in Update`) || !strings.Contains(err.Error(), "Goexit") {
		t.Errorf("Run: %v", err)
	}
	if saved != 1 || left != 1 {
		t.Errorf("OnClose ran %d times, OnLeave %d", saved, left)
	}
	if code := closedWith(t, c); code != netloop.CodeInternal {
		t.Errorf("the client got %v", code)
	}
}

// clients returns the number of the server's clients.
func clients(s *netloop.Server) (n int) {
	for room := range s.Rooms() {
		n = room.Clients
	}
	return n
}

// Goexit in a hook of the room's end does not block Run.
func TestGoexitInAHookEndsTheServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, done := supervised(ctx, t, netloop.Config{}, script(func(r *netloop.Room) {
		r.OnClose(func(context.Context, *netloop.Closed) error { runtime.Goexit(); return nil })
	}))
	cancel()
	if err := ended(t, done); err == nil || !strings.Contains(err.Error(), "Goexit") {
		t.Errorf("Run: %v", err)
	}
}

// hangingGame is a game with a system that, when told, blocks until may is closed.
type hangingGame struct {
	hang atomic.Bool
	may  chan struct{}
}

func (h *hangingGame) open(r *netloop.Room) {
	r.On(netloop.PreUpdate, "test.hang", func(*netloop.Tick) {
		if h.hang.Load() {
			<-h.may
		}
	})
}

// TestAHangIsReported hangs a tick, reads the report, and lets the tick continue.
func TestAHangIsReported(t *testing.T) {
	core, logs := logtest.New(zapcore.WarnLevel)
	h := hangingGame{may: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	s, done := supervised(ctx, t, netloop.Config{Log: logging.Slog(zap.New(core)), Watchdog: 100 * time.Millisecond}, script(h.open))
	h.hang.Store(true)
	waitFor(t, func() bool { return logs.FilterMessage("a tick hangs").Len() > 0 })
	said := logs.FilterMessage("a tick hangs").All()[0].ContextMap()
	if said["stage"] != "PreUpdate" || !strings.Contains(said["in"].(string), "hangingGame).open") || !strings.Contains(said["in"].(string), "supervise_test.go:") {
		t.Errorf("reported stage %v, system %v", said["stage"], said["in"])
	}
	if !strings.Contains(said["stack"].(string), "chan receive") || said["goroutines"] == "" {
		t.Errorf("stack %v\nothers %v", said["stack"], said["goroutines"])
	}
	for _, path := range []string{"/readyz", "/healthz"} {
		if status, body := page(t, s, path); status != http.StatusServiceUnavailable || !strings.Contains(body, "hangs") {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	if _, body := page(t, s, "/metrics"); !strings.Contains(body, "\nnetloop_hung_ticks_total 1\n") {
		t.Error("the metrics do not count the hang")
	}
	h.hang.Store(false)
	close(h.may)
	waitFor(t, func() bool { status, _ := page(t, s, "/readyz"); return status == http.StatusOK })
	// The health page has it a moment before the log.
	waitFor(t, func() bool { return logs.FilterMessage("a tick that hung has returned").Len() == 1 })
	cancel()
	if err := ended(t, done); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestAHangEndsTheServer: with WatchdogExit, or without it once the server's context has ended.
func TestAHangEndsTheServer(t *testing.T) {
	for _, exit := range []bool{true, false} {
		h := hangingGame{may: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		s, done := supervised(ctx, t, netloop.Config{Watchdog: 100 * time.Millisecond, WatchdogExit: exit}, script(h.open))
		c := dial(t, s.Addr().String(), nil)
		h.hang.Store(true)
		if !exit {
			waitFor(t, func() bool { status, _ := page(t, s, "/readyz"); return status != http.StatusOK })
			cancel()
		}
		if err := ended(t, done); err == nil || !strings.Contains(err.Error(), "hangs") {
			t.Errorf("exit %v: Run: %v", exit, err)
		}
		if code := closedWith(t, c); code != netloop.CodeInternal {
			t.Errorf("exit %v: the client got %v", exit, code)
		}
		close(h.may) // It returns and ends, for the goroutine check.
		defer cancel()
	}
}

// TestAHangingHookEndsTheServer: a hook that hangs during the room's end does not block Run, and
// the log names it.
func TestAHangingHookEndsTheServer(t *testing.T) {
	core, logs := logtest.New(zapcore.ErrorLevel)
	ticked, may := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, done := supervised(ctx, t, netloop.Config{Log: logging.Slog(zap.New(core)), Watchdog: 100 * time.Millisecond}, script(func(r *netloop.Room) {
		r.OnStart(func(*netloop.Tick) { close(ticked) })
		r.OnDrain(func(*netloop.Tick, time.Duration) { <-may })
	}))
	<-ticked
	cancel()
	if err := ended(t, done); err == nil || !strings.Contains(err.Error(), "OnDrain hangs") {
		t.Errorf("Run: %v", err)
	}
	if said := logs.FilterMessage("a hook hangs").All(); len(said) != 1 || said[0].ContextMap()["hook"] != "OnDrain" ||
		!strings.Contains(said[0].ContextMap()["stack"].(string), "chan receive") {
		t.Errorf("the log has %v", said)
	}
	close(may) // It returns and ends, for the goroutine check.
}

func TestWatchdogLimits(t *testing.T) {
	for limit, ok := range map[time.Duration]bool{0: true, -1: true, 1: false, 100 * time.Millisecond: true, time.Millisecond: false} {
		_, err := netloop.New(netloop.Config{Watchdog: limit}, script(func(*netloop.Room) {}))
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "Watchdog") {
			t.Errorf("%v: %v", limit, err)
		}
	}
}

// TestASavingServerIsHealthy: saving takes a minute of virtual time, and then too long.
func TestASavingServerIsHealthy(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t, leaks)
	})
	virtual := clock.NewVirtual()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var s *netloop.Server
	// The watchdog is off, because it would end the server.
	cfg := netloop.Config{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Watchdog: -1}
	s, err := netloop.New(cfg, script(func(r *netloop.Room) {
		r.On(netloop.Update, "test.end", func(tick *netloop.Tick) {
			if tick.Number() == 10 {
				cancel()
			}
		})
		r.OnClose(func(context.Context, *netloop.Closed) error {
			virtual.Advance(time.Minute)
			if status, body := page(t, s, "/healthz"); status != http.StatusOK {
				t.Errorf("after a minute: %d %q", status, body)
			}
			if status, body := page(t, s, "/readyz"); status != http.StatusServiceUnavailable {
				t.Errorf("ready: %d %q", status, body)
			}
			virtual.Advance(time.Minute)
			if status, body := page(t, s, "/healthz"); status != http.StatusServiceUnavailable {
				t.Errorf("after two: %d %q", status, body)
			}
			return nil
		})
	}))
	if err != nil {
		t.Fatal(err)
	}
	bridge.Netloop.Server(s).UseClock(virtual)
	if err := s.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestHealthReportsAQuarantine, with a status that restarts no server.
func TestHealthReportsAQuarantine(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, done := supervised(ctx, t, netloop.Config{}, script(func(r *netloop.Room) {
		r.On(netloop.Update, "test.broken", func(*netloop.Tick) { panic("as always") })
	}))
	waitFor(t, func() bool { // It resumes sometimes, for three calls.
		status, body := page(t, s, "/healthz")
		return status == http.StatusOK && strings.Contains(body, "quarantine after repeated panics: 1")
	})
	if status, body := page(t, s, "/readyz"); status != http.StatusOK {
		t.Errorf("ready: %d %q", status, body)
	}
	cancel()
	if err := ended(t, done); err != nil {
		t.Errorf("Run: %v", err)
	}
}
