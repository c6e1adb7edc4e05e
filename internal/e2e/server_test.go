package e2e_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// unrun makes a server, and checks at the end that nothing of it is left.
func unrun(t *testing.T, cfg netloop.Config, g netloop.Game) *netloop.Server {
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

// A server that listened and is not run gives back all that it holds, once, and cannot be
// used again. Who has connected meanwhile is told.
func TestAServerThatIsNotRunIsClosed(t *testing.T) {
	started, closed := 0, 0
	s := unrun(t, netloop.Config{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", TraceDir: t.TempDir()}, script(func(r *netloop.Room) {
		r.OnStart(func(*netloop.Tick) { started++ })
		r.OnClose(func(context.Context) error { closed++; return nil })
	}))
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if closed != 1 || started != 0 {
		t.Errorf("OnClose ran %d times, OnStart %d times", closed, started)
	}
	waitFor(t, func() bool { c.Step(time.Millisecond); return c.Closed() != nil })
	if why := c.Closed(); why.Code != netloop.CodeClosing {
		t.Errorf("the client was told %v", why)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	again, err := net.ListenPacket("udp", s.Addr().String())
	if err != nil {
		t.Fatalf("the port is still taken: %v", err)
	}
	_ = again.Close()
	if s.Listen() == nil || s.Run(ctx) == nil {
		t.Error("a closed server listens or runs")
	}
}

func TestAServerThatDoesNotListenIsClosed(t *testing.T) {
	closed := 0
	s := unrun(t, netloop.Config{}, script(func(r *netloop.Room) {
		r.OnClose(func(context.Context) error { closed++; return nil })
	}))
	if err := s.Close(); err != nil || closed != 1 || s.Addr() != nil {
		t.Errorf("Close: %v, OnClose ran %d times, listens on %v", err, closed, s.Addr())
	}
}

// A server runs once, and Close leaves it alone meanwhile and after.
func TestCloseLeavesAServerThatRunsAlone(t *testing.T) {
	ticked := make(chan struct{})
	closed := 0
	s := unrun(t, netloop.Config{Listen: "127.0.0.1:0"}, script(func(r *netloop.Room) {
		r.OnStart(func(*netloop.Tick) { close(ticked) })
		r.OnClose(func(context.Context) error { closed++; return nil })
	}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-ticked
	if err := s.Close(); err != nil || closed != 0 {
		t.Errorf("Close: %v, OnClose ran %d times", err, closed)
	}
	if s.Run(ctx) == nil {
		t.Error("it runs twice")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil || closed != 1 {
		t.Errorf("Close: %v, OnClose ran %d times", err, closed)
	}
}

// A port that is taken is no end: the server may be run again, or closed.
func TestAServerWhosePortIsTakenMayRunLater(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := unrun(t, netloop.Config{Listen: taken.LocalAddr().String()}, script(func(*netloop.Room) {}))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if s.Run(ended) == nil {
		t.Error("a port was taken twice")
	}
	_ = taken.Close()
	if err := s.Run(ended); err != nil {
		t.Error(err)
	}
}
