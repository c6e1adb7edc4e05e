package e2e_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// serve runs a server on a free port until the test ends or stop is called, which returns the
// result of Run.
func serve(t *testing.T, g netloop.Game, rate uint64) (s *netloop.Server, stop func() error) {
	t.Helper()
	return serveAs(t, g, netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(rate)}})
}

// running runs a server on free ports, and returns a channel with the result of Run.
func running(ctx context.Context, t *testing.T, cfg netloop.Config, g netloop.Game, prepare ...func(*netloop.Server)) (*netloop.Server, <-chan error) {
	t.Helper()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	s, err := netloop.New(cfg, g)
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range prepare {
		fn(s)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s, done
}

// serveAs is serve with a configuration, but with free addresses. prepare runs
// before the server listens.
func serveAs(t *testing.T, g netloop.Game, cfg netloop.Config, prepare ...func(*netloop.Server)) (s *netloop.Server, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, done := running(ctx, t, cfg, g, prepare...)
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s, stop
}

// dial connects a client and runs it on a goroutine of its own. prepare is
// called before its first step.
func dial(t *testing.T, addr string, prepare func(*client.Client)) *client.Client {
	t.Helper()
	return start(t, connect(t, addr), prepare)
}

// start runs a client on a goroutine of its own.
func start(t *testing.T, c *client.Client, prepare func(*client.Client)) *client.Client {
	t.Helper()
	if prepare != nil {
		prepare(c)
	}
	run, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(run) // The cause of the end is in Closed.
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return c
}

// connect connects a client without running it; the test may step it.
func connect(t *testing.T, addr string) *client.Client {
	t.Helper()
	return connectTo(t, addr, schema)
}

func connectTo(t *testing.T, addr string, schema *netloop.Schema) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, addr, client.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// waitFor waits until ok returns true, for at most a minute.
func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatal("the condition was not met within a minute")
		}
	}
}

// newUnrunServer makes a server, and checks at the end of the test that it has no leaks.
func newUnrunServer(t *testing.T, cfg netloop.Config, g netloop.Game) *netloop.Server {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t, leaks)
	})
	s, err := netloop.New(cfg, g)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
