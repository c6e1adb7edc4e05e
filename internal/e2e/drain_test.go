package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// draining is a server with a client in it that has been told to close, with some time for it.
func draining(t *testing.T, limit time.Duration) (s *netloop.Server, c *client.Client, done <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s, done = running(ctx, t, netloop.Config{DrainTimeout: limit}, script(func(*netloop.Room) {}))
	c = connect(t, s.Addr().String())
	stepUntil(t, c, func() bool { return c.State().Phase == client.Playing })
	if c.State().Closing != 0 {
		t.Error("a server that stays says that it closes")
	}
	cancel()
	return s, c, done
}

// stepUntil lets a client play until something is true.
func stepUntil(t *testing.T, c *client.Client, done func() bool) {
	t.Helper()
	waitFor(t, func() bool { c.Step(5 * time.Millisecond); return done() })
}

// A server that drains tells its clients until when, refuses who comes now in so many words and at
// once, and ends when the last one has left.
func TestADrainTellsItsDeadlineAndEndsWithTheLastClient(t *testing.T) {
	const limit = 10 * time.Minute
	s, c, done := draining(t, limit)
	var told []client.State
	c.OnState(func(s client.State) { told = append(told, s) })
	began := c.Now()
	stepUntil(t, c, func() bool { return len(told) > 0 })
	if got := told[0]; got.Phase != client.Playing || got.Closing < began+limit-time.Minute || got.Closing > c.Now()+limit {
		t.Errorf("the client hears %+v at %v", got, c.Now())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked := time.Now()
	_, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema})
	var refused *netloop.Refusal
	if !errors.As(err, &refused) || refused.Code != netloop.CodeClosing {
		t.Errorf("a newcomer hears %v", err)
	}
	if took := time.Since(asked); took > 3*time.Second { // A handshake that hangs takes longer.
		t.Errorf("a newcomer was refused after %v", took)
	} else {
		t.Logf("a newcomer was refused after %v", took)
	}
	stepUntil(t, c, func() bool { return true })
	if c.Closed() != nil {
		t.Errorf("who plays was sent away: %v", c.Closed())
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
		t.Fatal("the server waits for nobody")
	}
}

// Who is still there at the deadline is told that the server closes.
func TestADrainEndsAtItsDeadline(t *testing.T) {
	const limit = 200 * time.Millisecond
	_, c, done := draining(t, limit)
	stepUntil(t, c, func() bool { return c.Closed() != nil })
	if why := c.Closed(); why.Code != netloop.CodeClosing || c.State().Closing != 0 {
		t.Errorf("the client was told %v, and that the server closes at %v", why, c.State().Closing)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
