package wtnet

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a server under test that admits all clients and collects arrivals.
type host struct {
	*nettest.Owner
	listener *quicnet.Listener
	stats    *transport.Stats
	refuse   func(*netloopv1.Hello) error
	sessions chan *transport.Session

	mu sync.Mutex
	id uint64
}

func (h *host) Tables(*netloopv1.Hello) ([]byte, error) { return nil, nil }

func (h *host) Admit(_ context.Context, hello *netloopv1.Hello, _ string) (*transport.Admitted, error) {
	if h.refuse != nil {
		if err := h.refuse(hello); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.id++
	return &transport.Admitted{
		Welcome: &netloopv1.Welcome{
			Protocol: transport.ProtocolVersion, ClientId: h.id,
			TickRate: &netloopv1.Rate{Num: 60, Den: 1}, FixedRate: &netloopv1.Rate{Num: 60, Den: 1},
		},
		Session: transport.SessionConfig{ID: h.id, Inbox: h.Arrivals},
		Joined:  func(s *transport.Session) { h.sessions <- s },
	}, nil
}

// serve listens for programs, and for the pages of some origins.
func serve(t *testing.T, pages *origin.Set, change func(*quicnet.ServerConfig)) *host {
	t.Helper()
	h := &host{stats: new(transport.Stats), sessions: make(chan *transport.Session, 8)}
	h.Owner = nettest.NewOwner(h.stats)
	cfg := quicnet.ServerConfig{
		Listen: "127.0.0.1:0", Config: admission.Config{Handler: h, Stats: h.stats},
		Protocols: []quicnet.Protocol{Protocol(pages, h.stats)},
	}
	if change != nil {
		change(&cfg)
	}
	l, err := quicnet.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.listener = l
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}
