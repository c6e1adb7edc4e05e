package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// host returns a server without a port, which runs until the test ends.
func host(t *testing.T, g netloop.Game) (s *netloop.Server, stop func(), done <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, done = supervised(ctx, t, netloop.Config{Offline: true}, g)
	return s, cancel, done
}

// joinLocal connects a client in memory, prepares it, and runs it until halt is called.
func joinLocal(t *testing.T, cfg client.Config, prepare ...func(*client.Client)) (c *client.Client, halt func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg.Schema = schema
	c, err := client.Dial(ctx, "", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // It may be closed already.
	for _, fn := range prepare {
		fn(c)
	}
	run, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = c.Run(run) // The cause of the end is in Closed.
	}()
	halt = func() {
		stop()
		<-ran
	}
	t.Cleanup(halt)
	return c, halt
}

// openSockets returns the number of sockets of the process on Linux, and 0 elsewhere.
func openSockets(t *testing.T) (n int) {
	t.Helper()
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// localGame sends the close code of each leaving client to left.
func localGame(left chan<- netloop.Code) script {
	return func(r *netloop.Room) {
		r.OnStart(func(t *netloop.Tick) { things.Spawn(t, thing{N: int32(len(r.Spec().Name))}) })
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { left <- why.Code })
		add.Handle(r, func(_ *netloop.Tick, c *netloop.Client, q pair) (sum, error) {
			return sum{q.A + q.B + int64(len(c.Join().Token))}, nil
		})
	}
}

// A client joins any room of a server in its process without a port or a network, with its
// parameters. When either side closes, the other one gets the reason, and no goroutine is leaked.
func TestAClientPlaysWithoutANetwork(t *testing.T) {
	left := make(chan netloop.Code, 2)
	s, stop, done := host(t, localGame(left))
	if _, err := s.OpenRoom(t.Context(), table("den")); err != nil {
		t.Fatal(err)
	}
	before := openSockets(t)
	stays, _ := joinLocal(t, client.Config{Local: s})
	if n := openSockets(t); n > before {
		t.Errorf("a local client has %d sockets", n-before)
	}
	c, halt := joinLocal(t, client.Config{Local: s, Room: "den", Token: "four"})
	if s.Addr() != nil {
		t.Errorf("it has a port: %v", s.Addr())
	}
	if got, err := client.Await(t.Context(), c, add, pair{1, 2}); err != nil || got.Sum != 7 {
		t.Errorf("the answer is %v, %v", got, err)
	}
	if _, err := client.Dial(t.Context(), "", client.Config{Schema: schema, Local: s, Room: "attic"}); err == nil {
		t.Error("it joined an unknown room")
	}
	halt() // Close must not run beside Step.
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if code := <-left; code != netloop.CodeLeft {
		t.Errorf("the server got %v", code)
	}
	stop()
	if code := closedWith(t, stays); code != netloop.CodeClosing {
		t.Errorf("the client got %v", code)
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
	if _, err := client.Dial(t.Context(), "", client.Config{Schema: schema, Local: s}); err == nil {
		t.Error("it joined a server that has ended")
	}
}
