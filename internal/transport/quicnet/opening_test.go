package quicnet

import (
	"context"
	"errors"
	"testing"

	"github.com/netloop/netloop/internal/transport"
)

// The bound holds for connections that quic-go has only begun with, and gives the place back
// when they end.
func TestConnectionsThatOnlyBeginAreBounded(t *testing.T) {
	l := &Listener{cfg: ServerConfig{MaxConns: 2, Stats: new(transport.Stats)}}
	ctx, end := context.WithCancel(context.Background())
	for range 2 + maxHandshakes {
		if _, err := l.opening(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.opening(ctx, nil); !errors.Is(err, errCrowded) || l.cfg.Stats.Dropped(transport.DropHandshakes) != 1 {
		t.Errorf("one too many: %v", err)
	}
	end()
	eventually(t, "the places are free again", func() bool { return l.open.Load() == 0 })

	h := serve(t, nil)
	g := mustDial(t, h, nil)
	if n := h.listener.open.Load(); n != 1 {
		t.Errorf("%d connections are open", n)
	}
	g.Session.Close(transport.CodeLeft, "")
	eventually(t, "the connection's place is free again", func() bool { return h.listener.open.Load() == 0 })
}
