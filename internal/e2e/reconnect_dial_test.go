package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// Dial returns after the game's decision, with an admitted client or the refusal, or when its
// context ends.
func TestDialReturnsAfterAdmission(t *testing.T) {
	joined := make(chan netloop.ClientID, 1)
	s, _ := serve(t, script(func(r *netloop.Room) {
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			if c.Join().Token == "cheat" {
				return netloop.Refuse(netloop.CodeGame+4, "not you")
			}
			joined <- c.ID()
			return nil
		})
	}), 60)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	dial := func(ctx context.Context, token string) (*client.Client, error) {
		return client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema, Token: token})
	}
	c, err := dial(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-joined:
		if id != c.ID() {
			t.Errorf("client %d joined, and is %d", id, c.ID())
		}
	default:
		t.Error("it returned before OnJoin ran")
	}
	_ = c.Close()
	_, err = dial(ctx, "cheat")
	var refused *netloop.Refusal
	if !errors.As(err, &refused) || refused.Code != netloop.CodeGame+4 || refused.Text != "not you" {
		t.Errorf("a refused client gets %v", err)
	}
}

// A server that does not run never decides.
func TestDialWaitsNoLongerThanItsContext(t *testing.T) {
	s := newUnrunServer(t, netloop.Config{Listen: "127.0.0.1:0"}, script(func(*netloop.Room) {}))
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer cancel()
	if _, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it returned %v", err)
	}
}

// Closing a client during reconnection leaks no goroutine, with its own or a shared Dialer, and
// closing the Dialer ends its attempts.
func TestClosingAReconnectingClientLeaksNothing(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	d, err := client.NewDialer()
	if err != nil {
		t.Fatal(err)
	}
	for _, dial := range []func(context.Context, string, client.Config) (*client.Client, error){client.Dial, d.Dial, d.Dial} {
		tokens, asked := 0, make(chan struct{}, 100)
		s, _ := serve(t, script(func(r *netloop.Room) {
			r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
				tick.AfterFunc(50*time.Millisecond, func(tick *netloop.Tick) { c.Kick(tick, netloop.CodeTimeout, "go away, and come back") })
				return nil
			})
		}), 60)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		c, err := dial(ctx, s.Addr().String(), client.Config{Schema: schema, Tokens: func(ctx context.Context) (string, error) {
			if tokens++; tokens > 1 {
				asked <- struct{}{}
				<-ctx.Done() // The dial hangs until its context ends.
			}
			return "", ctx.Err()
		}})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { c.Step(time.Millisecond); return c.State().Phase == client.Reconnecting })
		<-asked
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
