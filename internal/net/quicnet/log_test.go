package quicnet

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/testing/nettest"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// locked is a buffer for any goroutine.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Failing admissions are logged once in ten seconds, with the number of messages left out.
func TestFailedAdmissionsDoNotFillTheLog(t *testing.T) {
	var lines locked
	var now atomic.Int64
	h := serve(t, func(c *ServerConfig) {
		c.Log = slog.New(slog.NewTextHandler(&lines, nil))
		c.Clock = func() time.Duration { return time.Duration(now.Load()) }
	})
	h.admitBy(func(context.Context, *netloopv1.Hello) error { return errors.New("the game's own") })
	d := dialerAt(t, nil)
	logged := func() string {
		if _, err := dial(t, h, d, nettest.Hello()); err == nil {
			t.Fatal("somebody was let in")
		}
		return lines.String()
	}
	for range 5 {
		if n := strings.Count(logged(), "the game's own"); n != 1 {
			t.Fatalf("%d lines", n)
		}
	}
	now.Store(int64(10 * time.Second))
	if text := logged(); strings.Count(text, "the game's own") != 2 || !strings.Contains(text, "unlogged_before=4") {
		t.Error(text)
	}
}
