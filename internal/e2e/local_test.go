package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// host is a server without a port, which runs until the test ends.
func host(t *testing.T, g netloop.Game) (s *netloop.Server, stop func(), done <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, done = supervised(ctx, t, netloop.Config{Offline: true}, g)
	return s, cancel, done
}

// joinLocal lets a client in without a network, prepares it, and runs it until it is halted.
func joinLocal(t *testing.T, cfg client.Config, prepare ...func(*client.Client)) (c *client.Client, halt func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg.Schema = schema
	c, err := client.Dial(ctx, "", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // It may have been closed.
	for _, fn := range prepare {
		fn(c)
	}
	run, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = c.Run(run) // Why it ended is read from Closed.
	}()
	halt = func() {
		stop()
		<-ran
	}
	t.Cleanup(halt)
	return c, halt
}

// localGame counts the clients that go.
func localGame(left chan<- netloop.Code) script {
	return func(r *netloop.Room) {
		r.OnStart(func(t *netloop.Tick) { things.Spawn(t, thing{N: int32(len(r.Spec().Name))}) })
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { left <- why.Code })
		add.Handle(r, func(_ *netloop.Tick, c *netloop.Client, q pair) (sum, error) {
			return sum{q.A + q.B + int64(len(c.Join().Token))}, nil
		})
	}
}

// A client plays in a server of its process without a port and without a network: any room, with
// what it says about itself. Whoever closes, the other side learns why, and nothing is left.
func TestAClientPlaysWithoutANetwork(t *testing.T) {
	left := make(chan netloop.Code, 2)
	s, stop, done := host(t, localGame(left))
	if _, err := s.OpenRoom(t.Context(), table("den")); err != nil {
		t.Fatal(err)
	}
	stays, _ := joinLocal(t, client.Config{Local: s})
	c, halt := joinLocal(t, client.Config{Local: s, Room: "den", Token: "four"})
	if s.Addr() != nil {
		t.Errorf("it has a port: %v", s.Addr())
	}
	if got, err := client.Await(t.Context(), c, add, pair{1, 2}); err != nil || got.Sum != 7 {
		t.Errorf("the answer is %v, %v", got, err)
	}
	if _, err := client.Dial(t.Context(), "", client.Config{Schema: schema, Local: s, Room: "attic"}); err == nil {
		t.Error("it is let into a room that is not there")
	}
	halt() // Close must not run beside Step.
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if code := <-left; code != netloop.CodeLeft {
		t.Errorf("the server was told %v", code)
	}
	stop()
	if code := closedWith(t, stays); code != netloop.CodeClosing {
		t.Errorf("the client was told %v", code)
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
	if _, err := client.Dial(t.Context(), "", client.Config{Schema: schema, Local: s}); err == nil {
		t.Error("it is let into a server that has ended")
	}
}
