package e2e_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// Close of a server that listened but did not run releases all resources, once, and the server
// cannot be used again. A client that has connected gets the reason.
func TestAServerThatIsNotRunIsClosed(t *testing.T) {
	started, closed, asked := 0, 0, make(chan struct{})
	s := newUnrunServer(t, netloop.Config{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", TraceDir: t.TempDir()}, script(func(r *netloop.Room) {
		r.OnAdmit(func(context.Context, *netloop.Join) error { close(asked); return nil })
		r.OnStart(func(*netloop.Tick) { started++ })
		r.OnClose(func(context.Context, *netloop.Closed) error { closed++; return nil })
	}))
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	dialled := make(chan error, 1)
	go func() {
		_, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema})
		dialled <- err
	}()
	<-asked
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if closed != 1 || started != 0 {
		t.Errorf("OnClose ran %d times, OnStart %d times", closed, started)
	}
	var told *netloop.Refusal
	if err := <-dialled; !errors.As(err, &told) || told.Code != netloop.CodeClosing {
		t.Errorf("the client got %v", err)
	}
	again, err := net.ListenPacket("udp", s.Addr().String())
	if err != nil {
		t.Fatalf("the port is still in use: %v", err)
	}
	_ = again.Close()
	if s.Listen() == nil || s.Run(ctx) == nil {
		t.Error("a closed server listens or runs")
	}
}

func TestAServerThatDoesNotListenIsClosed(t *testing.T) {
	closed := 0
	s := newUnrunServer(t, netloop.Config{}, script(func(r *netloop.Room) {
		r.OnClose(func(context.Context, *netloop.Closed) error { closed++; return nil })
	}))
	if err := s.Close(); err != nil || closed != 1 || s.Addr() != nil {
		t.Errorf("Close: %v, OnClose ran %d times, listens on %v", err, closed, s.Addr())
	}
}

// A server runs once, and Close has no effect during Run and after it.
func TestCloseDoesNotAffectARunningServer(t *testing.T) {
	ticked := make(chan struct{})
	closed := 0
	s := newUnrunServer(t, netloop.Config{Listen: "127.0.0.1:0"}, script(func(r *netloop.Room) {
		r.OnStart(func(*netloop.Tick) { close(ticked) })
		r.OnClose(func(context.Context, *netloop.Closed) error { closed++; return nil })
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

// If the port is in use, Run returns an error, and the server may run again or be closed.
func TestAServerCanRunAfterItsPortWasTaken(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newUnrunServer(t, netloop.Config{Listen: taken.LocalAddr().String()}, script(func(*netloop.Room) {}))
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

// A used address of the admin listener is an error with the address, and the port for clients is
// released: the server may run once the address is free.
func TestAUsedAdminAddressReleasesTheGamePort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newUnrunServer(t, netloop.Config{Listen: "127.0.0.1:0", Admin: taken.Addr().String()}, script(func(*netloop.Room) {}))
	if err := s.Listen(); err == nil || !strings.Contains(err.Error(), "Admin") || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("Listen: %v", err)
	}
	if s.Addr() != nil {
		t.Errorf("it listens on %v nevertheless", s.Addr())
	}
	_ = taken.Close()
	if err := s.Listen(); err != nil || s.AdminAddr() == nil {
		t.Errorf("%v: the admin listener is at %v", err, s.AdminAddr())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestServerOverQUIC(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	closed := 0
	s, stop := serve(t, script(func(r *netloop.Room) {
		add.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, q pair) (sum, error) { return sum{q.A + q.B}, nil })
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			things.Spawn(tick, thing{N: int32(c.ID())})
			return nil
		})
		r.OnClose(func(context.Context, *netloop.Closed) error { closed++; return nil })
	}), 60)

	seen := make(chan int32, 1)
	c := dial(t, s.Addr().String(), func(c *client.Client) {
		client.Watch(c, things, client.Watcher[thing]{Spawn: func(_ *netloop.Tick, o *netloop.Object[thing]) { seen <- o.State().N }})
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	got, err := client.Await(ctx, c, add, pair{40, 2})
	if err != nil || got.Sum != 42 {
		t.Fatalf("40 + 2 = %v, %v", got.Sum, err)
	}
	select {
	case n := <-seen:
		if n != int32(c.ID()) {
			t.Errorf("client %d sees thing %d", c.ID(), n)
		}
	case <-ctx.Done():
		t.Fatal("no state arrived")
	}
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if closed != 1 {
		t.Errorf("OnClose ran %d times", closed)
	}
	for c.Closed() == nil && ctx.Err() == nil {
		_, _ = client.Await(ctx, c, add, pair{}) // Fails once the close frame is read.
	}
	if why := c.Closed(); why == nil || why.Code != netloop.CodeClosing {
		t.Errorf("the client got %v", why)
	}
}

func TestPortInUseNamesTheAddress(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, err := netloop.New(netloop.Config{Listen: taken.LocalAddr().String()}, script(func(*netloop.Room) {}))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), taken.LocalAddr().String()) {
		t.Errorf("Run: %v", err)
	}
}

// TestACancelledServerEndsBeforeItsFirstTick: Run with a cancelled context has no clients to
// drain.
func TestACancelledServerEndsBeforeItsFirstTick(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var called []string
	_, done := running(ctx, t, netloop.Config{}, script(func(r *netloop.Room) {
		r.On(netloop.Update, "test.tick", func(*netloop.Tick) { called = append(called, "tick") })
		r.OnDrain(func(*netloop.Tick, time.Duration) { called = append(called, "drain") })
		r.OnClose(func(context.Context, *netloop.Closed) error { called = append(called, "close"); return nil })
	}))
	if err := ended(t, done); err != nil || !slices.Equal(called, []string{"close"}) {
		t.Errorf("%v, called %v", err, called)
	}
}
