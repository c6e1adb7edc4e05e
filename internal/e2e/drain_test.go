package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// draining returns a server with one client that is closing with the given drain time.
func draining(t *testing.T, limit time.Duration) (s *netloop.Server, c *client.Client, done <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s, done = running(ctx, t, netloop.Config{DrainTimeout: limit}, script(func(*netloop.Room) {}))
	c = connect(t, s.Addr().String())
	stepUntil(t, c, func() bool { return c.State().Phase == client.Playing })
	if c.State().Closing != 0 {
		t.Error("a running server announces its end")
	}
	cancel()
	return s, c, done
}

// stepUntil steps a client until done returns true.
func stepUntil(t *testing.T, c *client.Client, done func() bool) {
	t.Helper()
	waitFor(t, func() bool { c.Step(5 * time.Millisecond); return done() })
}

// A draining server sends its clients the deadline, refuses new clients at once and with that
// reason, and ends when the last client has left.
func TestADrainAnnouncesItsDeadlineAndEndsWithTheLastClient(t *testing.T) {
	const limit = 10 * time.Minute
	s, c, done := draining(t, limit)
	var told []client.State
	c.OnState(func(s client.State) { told = append(told, s) })
	began := c.Now()
	stepUntil(t, c, func() bool { return len(told) > 0 })
	if got := told[0]; got.Phase != client.Playing || got.Closing < began+limit-time.Minute || got.Closing > c.Now()+limit {
		t.Errorf("the client gets %+v at %v", got, c.Now())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked := time.Now()
	_, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema})
	var refused *netloop.Refusal
	if !errors.As(err, &refused) || refused.Code != netloop.CodeClosing {
		t.Errorf("a new client gets %v", err)
	}
	if took := time.Since(asked); took > 3*time.Second { // A hanging handshake takes longer.
		t.Errorf("a new client was refused after %v", took)
	} else {
		t.Logf("a new client was refused after %v", took)
	}
	stepUntil(t, c, func() bool { return true })
	if c.Closed() != nil {
		t.Errorf("a playing client was closed: %v", c.Closed())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server waits without clients")
	}
}

// At the deadline the remaining clients are closed with the reason.
func TestADrainEndsAtItsDeadline(t *testing.T) {
	const limit = 200 * time.Millisecond
	_, c, done := draining(t, limit)
	stepUntil(t, c, func() bool { return c.Closed() != nil })
	if why := c.Closed(); why.Code != netloop.CodeClosing || c.State().Closing != 0 {
		t.Errorf("the client was closed with %v, its deadline is %v", why, c.State().Closing)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
