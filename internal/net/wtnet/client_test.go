package wtnet

import (
	"context"
	"errors"
	"testing"

	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// testClient is a program that plays as a browser does.
type testClient struct {
	*nettest.Owner
	*transport.Session
}

func dial(h *host) (*testClient, error) {
	g := &testClient{Owner: nettest.NewOwner(nil)}
	ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
	defer cancel()
	var err error
	g.Session, _, err = quicnet.Dial(ctx, quicnet.DialConfig{
		Addr: h.listener.Addr().String(), Protocol: Client(), Greeting: transport.Greeting{Hello: nettest.Hello()},
		Session: transport.SessionConfig{Inbox: g.Arrivals},
	})
	return g, err
}

// A program plays over WebTransport: in both directions, over the stream and in datagrams, and each
// end gets the reason of the other's close.
func TestProgramsPlayAsBrowsersDo(t *testing.T) {
	h := serve(t, nil, nil)
	for _, closes := range []string{"server", "client"} {
		g, err := dial(h)
		if err != nil {
			t.Fatal(err)
		}
		s := <-h.sessions
		for n, reliable := range []bool{true, false} {
			method := uint32(2*s.ID()) + uint32(n)
			s.Send(transport.Message{Method: method, Reliable: reliable})
			s.Flush(0)
			g.Find(t, "the server's message", nettest.Message(method))
			g.Session.Send(transport.Message{Method: method, Reliable: reliable})
			g.Session.Flush(0)
			h.Find(t, "the client's message", nettest.Message(method))
		}
		near, far, first, other := s, g.Session, h.Owner, g.Owner
		if closes == "client" {
			near, far, first, other = far, near, other, first
		}
		near.Close(1234, "bye")
		mine := first.Find(t, "the end", func(a *transport.Arrival) bool { return nettest.Kind(transport.Gone)(a) && a.Session == near })
		yours := other.Find(t, "the other end", func(a *transport.Arrival) bool { return nettest.Kind(transport.Gone)(a) && a.Session == far })
		if *mine.Closed != (transport.Closed{Code: 1234, Text: "bye"}) || *yours.Closed != (transport.Closed{Code: 1234, Text: "bye", Remote: true}) {
			t.Errorf("the %s closes: %+v, and the other end reads %+v", closes, mine.Closed, yours.Closed)
		}
	}
	if n := h.stats.Joined[transport.WebTransport].Load(); n != 2 {
		t.Error(n, "are counted as let in")
	}
}

// A refused program gets the reason, before or after its hello.
func TestARefusedProgramReadsWhy(t *testing.T) {
	h := serve(t, nil, nil)
	h.refuse = func(*netloopv1.Hello) error { return transport.Refuse(transport.CodeRoomUnknown, "no such room") }
	refused := func(want transport.Refusal) {
		t.Helper()
		_, err := dial(h)
		var r *transport.Refusal
		if !errors.As(err, &r) || *r != want {
			t.Errorf("instead of %v the client reads %v", want, err)
		}
	}
	refused(transport.Refusal{Code: transport.CodeRoomUnknown, Text: "no such room"})
	h.listener.Admission().Refuse(transport.CodeClosing, "see you")
	refused(transport.Refusal{Code: transport.CodeClosing, Text: "see you"})
}
