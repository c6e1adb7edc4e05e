package quicnet

import (
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"

	"github.com/netloop/netloop/internal/net/sealed"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// sealedWorld is a client and a server on a network in virtual time, which send each other a
// datagram every 20 ms.
type sealedWorld struct {
	t      *testing.T
	net    *thin
	host   *host
	client *testClient
	server *transport.Session
	method uint32 // of the newest messages
}

// onSealed runs a test with a round trip of 40 ms.
func onSealed(t *testing.T, change func(*DialConfig), test func(w *sealedWorld)) {
	onThin(t, netem.Link{Delay: 20 * time.Millisecond}, func(t *testing.T, n *thin, h *host) {
		n.mu.Lock()
		d := NewDialerOn(n.socket(1))
		n.mu.Unlock()
		defer func() { _ = d.Close() }()
		cfg := DialConfig{
			Dialer: d, Addr: "10.0.0.0:4433", TLS: &tls.Config{InsecureSkipVerify: true},
			Greeting: transport.Greeting{Hello: nettest.Hello()},
		}
		if change != nil {
			change(&cfg)
		}
		g := &testClient{Owner: nettest.NewOwner(nil)}
		cfg.Session.Inbox = g.Arrivals
		var err error
		if g.Session, _, err = Dial(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		test(&sealedWorld{t: t, net: n, host: h, client: g, server: h.session(g)})
	})
}

// run lets both ends send for some time, and returns the longest gap between two messages that
// arrived at the client and at the server. Every message may arrive once.
func (w *sealedWorld) run(d time.Duration) (toClient, toServer time.Duration) {
	w.t.Helper()
	seen := [2]map[uint32]bool{{}, {}}
	last, gaps := [2]time.Time{time.Now(), time.Now()}, [2]time.Duration{}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		w.method++
		for i, s := range []*transport.Session{w.client.Session, w.server} {
			s.Send(transport.Message{Method: w.method})
			s.Flush(0)
			owner := []*nettest.Owner{w.client.Owner, w.host.Owner}[i]
			for _, a := range owner.Arrivals.Swap(nil) {
				switch {
				case a.Kind == transport.Gone:
					w.t.Fatalf("the connection ended: %v", a.Closed)
				case a.Kind != transport.MessageArrived:
					continue
				case seen[i][a.Message.Method]:
					w.t.Errorf("message %d has arrived twice", a.Message.Method)
				}
				seen[i][a.Message.Method] = true
				gaps[i], last[i] = max(gaps[i], time.Since(last[i])), time.Now()
			}
		}
	}
	for i := range gaps {
		gaps[i] = max(gaps[i], time.Since(last[i]))
	}
	return gaps[0], gaps[1]
}

// drop drops the packets for which drops is true, from now on.
func (w *sealedWorld) drop(drops func(p simnet.Packet) bool) {
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	w.net.drops = drops
}

// records are the counts of the server.
func (w *sealedWorld) records() *sealed.Stats { return w.host.listener.cfg.Records }

// Datagrams travel as records once the path is proven, over QUIC while no record arrives in one or
// both directions, and as records again afterwards. No message arrives twice.
func TestDatagramsReturnToQUICWhileRecordsAreLost(t *testing.T) {
	server := &net.UDPAddr{IP: net.IPv4(10, 0, 0, 0), Port: 4433}
	for name, lost := range map[string]func(p simnet.Packet) bool{
		"both ways":   func(p simnet.Packet) bool { return sealed.Is(p.Data) },
		"to client":   func(p simnet.Packet) bool { return sealed.Is(p.Data) && p.From.String() == server.String() },
		"to server":   func(p simnet.Packet) bool { return sealed.Is(p.Data) && p.To.String() == server.String() },
		"all packets": func(p simnet.Packet) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			onSealed(t, nil, func(w *sealedWorld) {
				w.run(time.Second)
				if n := w.records(); n.Begins.Load() != 1 || n.Received.Load() < 40 {
					t.Fatalf("in a second %d records arrived at the server", n.Received.Load())
				}
				w.drop(lost)
				if name == "all packets" {
					w.run(2 * time.Second)
				} else if a, b := w.run(3 * time.Second); max(a, b) > 800*time.Millisecond {
					t.Errorf("messages to the client paused for %v, to the server for %v", a, b)
				}
				w.drop(nil)
				w.run(2 * time.Second)
				before := w.records().Received.Load()
				if a, b := w.run(10 * time.Second); max(a, b) > 100*time.Millisecond {
					t.Errorf("later messages to the client paused for %v, to the server for %v", a, b)
				}
				if n := w.records().Received.Load() - before; n < 300 {
					t.Errorf("%d records arrived in 10 s after the trouble", n)
				}
			})
		})
	}
}

// A client that wants QUIC alone gets no records.
func TestRecordsCanBeDisabled(t *testing.T) {
	onSealed(t, func(c *DialConfig) { c.QUICOnly = true }, func(w *sealedWorld) {
		w.run(time.Second)
		if n := w.records(); n.Sent.Load()+n.Received.Load() > 0 {
			t.Errorf("%d records were sent and %d arrived", n.Sent.Load(), n.Received.Load())
		}
	})
}

// A path without traffic carries no records, and its connection lives.
func TestAQuietPathSendsNothing(t *testing.T) {
	onSealed(t, nil, func(w *sealedWorld) {
		w.run(time.Second)
		time.Sleep(3 * time.Second)
		before := w.records().Sent.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.records().Sent.Load() - before; n > 0 {
			t.Errorf("%d records were sent in a minute", n)
		}
		if a, b := w.run(time.Second); max(a, b) > 100*time.Millisecond {
			t.Errorf("after a minute messages to the client paused for %v, to the server for %v", a, b)
		}
	})
}
