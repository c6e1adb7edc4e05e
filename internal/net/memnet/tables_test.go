package memnet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// greet dials with an Adapt and runs until the handshake is over.
func (w *world) greet(l Link, adapt func(*netloopv1.SchemaTables) error) (s *transport.Session, took time.Duration, err error) {
	w.t.Helper()
	calls, began := 0, w.net.Now()
	w.net.Dial(l, transport.Greeting{Hello: hello(), Adapt: adapt}, transport.SessionConfig{Inbox: transport.NewInbox(0, nil)},
		func(session *transport.Session, _ *netloopv1.Welcome, e error) {
			s, err, took = session, e, w.net.Now()-began
			calls++
		})
	w.net.Advance(began + 2*HandshakeTimeout)
	if calls != 1 {
		w.t.Fatalf("called %d times", calls)
	}
	return s, took, err
}

func (w *world) setTables(t *testing.T) {
	t.Helper()
	var err error
	w.tables, err = transport.AppendTables(nil, &netloopv1.SchemaTables{
		Classes: []*netloopv1.ClassTable{{Name: strings.Repeat("c", 10*transport.MaxFrame)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTablesTravelOverABadLink(t *testing.T) {
	bad := Link{Delay: 30 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1}
	for seed := range uint64(10) {
		w := newWorld(t, seed)
		w.setTables(t)
		size := 0
		s, _, err := w.greet(bad, func(tables *netloopv1.SchemaTables) error {
			size = len(tables.GetClasses()[0].GetName())
			return nil
		})
		if err != nil || s == nil || size != 10*transport.MaxFrame || len(w.joined) != 1 {
			t.Fatalf("seed %d: %d bytes of a name, %d joined: %v", seed, size, len(w.joined), err)
		}
		if n := w.net.Stats.Handshakes[transport.QUIC].Load(); n != 1 {
			t.Fatalf("seed %d: one handshake of two frames counts as %d", seed, n)
		}
	}
}

// TestTheSameSchemaCostsNoRoundTrip compares the times of a handshake with and without the tables:
// the tables take one round trip.
func TestTheSameSchemaCostsNoRoundTrip(t *testing.T) {
	const delay = 50 * time.Millisecond
	accept := func(*netloopv1.SchemaTables) error { return nil }
	w := newWorld(t, 1)
	_, same, _ := w.greet(Link{Delay: delay}, accept)
	if same != 4*delay {
		t.Errorf("with the same schema it takes %v", same)
	}
	w.tables, _ = transport.AppendTables(nil, new(netloopv1.SchemaTables))
	if _, other, _ := w.greet(Link{Delay: delay}, accept); other != same+2*delay {
		t.Errorf("with another schema it takes %v", other)
	}
}

func TestAClientThatCannotAdaptLeavesUnadmitted(t *testing.T) {
	w := newWorld(t, 1)
	w.setTables(t)
	_, _, err := w.greet(Link{Delay: time.Millisecond}, func(*netloopv1.SchemaTables) error {
		return &transport.Refusal{Code: transport.CodeSchemaMismatch, Text: "no"}
	})
	var refusal *transport.Refusal
	if !errors.As(err, &refusal) || refusal.Text != "no" || len(w.joined) != 0 {
		t.Error(err, len(w.joined))
	}
	w.tables = []byte("\x02\xff\xff")
	var closed *transport.Closed
	if _, _, err = w.greet(Link{}, nil); !errors.As(err, &closed) || closed.Code != transport.CodeProtocol {
		t.Error("garbage:", err)
	}
}
