package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A dial ends at its limit, also when the server accepts the TCP connection and never answers.
func TestADialEndsAtItsLimit(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // The kernel accepts, no goroutine answers.
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	d := dialerOf(nil)
	defer d.sockets.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e := &attempt{hello: new(netloopv1.Hello), limit: time.Millisecond}
	d.dial(ctx, silent.Addr().String(), &Config{Transport: WebSocket}, e)
	if ended, err := e.result(); !ended || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("the dial ended: %v, with %v, and its context with %v", ended, err, ctx.Err())
	}
}
