package quicnet

import (
	"crypto/tls"
	"net"
	"net/netip"
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
	dialer *Dialer
	client *testClient
	server *transport.Session
	method uint32 // of the newest messages
	size   int    // of their payloads

	reliable time.Time // the arrival of message 1<<20 at the client
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
		test(&sealedWorld{t: t, net: n, host: h, dialer: d, client: g, server: h.session(g)})
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
			s.Send(transport.Message{Method: w.method, Payload: make([]byte, w.size)})
			s.Flush(0)
			owner := []*nettest.Owner{w.client.Owner, w.host.Owner}[i]
			for _, a := range owner.Arrivals.Swap(nil) {
				switch {
				case a.Kind == transport.Gone:
					w.t.Fatalf("the connection ended: %v", a.Closed)
				case a.Kind != transport.MessageArrived:
					continue
				case a.Message.Method == 1<<20:
					w.reliable = time.Now()
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

// After an outage messages arrive at once, although QUIC is full of earlier ones and waits for
// seconds until it sends again.
func TestRecordsDoNotWaitForQUICAfterAnOutage(t *testing.T) {
	for _, outage := range []time.Duration{2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 6 * time.Second} {
		t.Run(outage.String(), func(t *testing.T) {
			onSealed(t, nil, func(w *sealedWorld) {
				w.size = 900
				w.run(time.Second)
				w.drop(func(simnet.Packet) bool { return true })
				w.run(outage)
				w.drop(nil)
				if a, b := w.run(5 * time.Second); max(a, b) > time.Second {
					t.Errorf("messages to the client waited for %v, to the server for %v", a, b)
				}
				before := w.records().Received.Load()
				w.run(2 * time.Second)
				if n := w.records().Received.Load() - before; n < 100 {
					t.Errorf("%d records arrived in the last 2 s", n)
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

// A client whose address changes six times pauses for two round trips at most, and sends without a
// pause. Reliable messages to it arrive soon as well, because its QUIC packets follow.
func TestRecordsFollowSixRebindings(t *testing.T) {
	const interval, trip = 20 * time.Millisecond, 40 * time.Millisecond
	onSealed(t, nil, func(w *sealedWorld) {
		w.run(time.Second)
		for i := range 6 {
			w.net.mu.Lock()
			w.net.outside = &net.UDPAddr{IP: net.IPv4(10, 1, 0, byte(i/2)), Port: 5000 + i}
			w.net.mu.Unlock()
			began := time.Now()
			w.server.Send(transport.Message{Method: 1 << 20, Reliable: true})
			w.server.Flush(0)
			a, b := w.run(time.Second)
			if a > 2*trip+3*interval || b > 3*interval {
				t.Errorf("rebinding %d: messages to the client paused for %v, to the server for %v", i, a, b)
			}
			if took := w.reliable.Sub(began); w.reliable.IsZero() || took > 300*time.Millisecond {
				t.Errorf("rebinding %d: a reliable message arrived after %v", i, took)
			}
			w.reliable = time.Time{}
			if n := w.records().Moves.Load(); n != uint64(i+1) {
				t.Errorf("the server counts %d moves after %d", n, i+1)
			}
		}
		if n := w.records(); n.Returns.Load() > 0 || w.host.stats.Dropped(transport.DropDatagram) > 0 {
			t.Errorf("datagrams returned to QUIC %d times, %d were malformed", n.Returns.Load(), w.host.stats.Dropped(transport.DropDatagram))
		}
	})
}

// A connection without packets of QUIC ends at both ends, although records arrive.
func TestRecordsDoNotKeepAConnection(t *testing.T) {
	onSealed(t, nil, func(w *sealedWorld) {
		w.run(time.Second)
		w.drop(func(p simnet.Packet) bool { return !sealed.Is(p.Data) })
		began, before := time.Now(), w.records().Received.Load()
		ended := [2]time.Duration{}
		for ; time.Since(began) < 20*time.Second && min(ended[0], ended[1]) == 0; time.Sleep(20 * time.Millisecond) {
			for i, s := range []*transport.Session{w.client.Session, w.server} {
				if ended[i] == 0 {
					s.Send(transport.Message{Method: 1})
					s.Flush(0)
				}
				owner := []*nettest.Owner{w.client.Owner, w.host.Owner}[i]
				for _, a := range owner.Arrivals.Swap(nil) {
					if a.Kind == transport.Gone {
						ended[i] = time.Since(began)
					}
				}
			}
		}
		if n := w.records().Received.Load() - before; n < 300 {
			t.Errorf("%d records arrived at the server", n)
		}
		for i, at := range ended {
			if at == 0 || at > idleTimeout+keepAlivePeriod {
				t.Errorf("end %d has ended after %v", i, at)
			}
		}
	})
}

// A refusal does not count if records arrive after it.
func TestRecordsDisproveARefusal(t *testing.T) {
	onSealed(t, nil, func(w *sealedWorld) {
		w.run(time.Second)
		w.drop(func(p simnet.Packet) bool { return !sealed.Is(p.Data) })
		w.dialer.refusals.refused(netip.MustParseAddrPort("10.0.0.0:4433"))
		w.run(2 * refusedAfter)
		w.drop(func(simnet.Packet) bool { return true })
		time.Sleep(time.Second) // The last packets have arrived.
		w.dialer.refusals.refused(netip.MustParseAddrPort("10.0.0.0:4433"))
		time.Sleep(2 * refusedAfter)
		select {
		case <-w.client.Closing():
		default:
			t.Error("a refusal without later packets does not count")
		}
	})
}

// A client that sends records notices within a quarter of a second that its server has restarted.
func TestARestartIsNoticedDespiteRecords(t *testing.T) {
	onSealed(t, nil, func(w *sealedWorld) {
		w.run(time.Second)
		w.host.once.Do(func() { _ = w.host.listener.socket.Close() }) // As after a crash.
		next := w.net.serve(w.t)
		began := time.Now()
		for gone := false; !gone; time.Sleep(20 * time.Millisecond) {
			w.client.Send(transport.Message{Method: 1})
			w.client.Flush(0)
			for _, a := range w.client.Arrivals.Swap(nil) {
				gone = gone || a.Kind == transport.Gone
			}
			if time.Since(began) > 20*time.Second {
				t.Fatal("it is not noticed")
			}
		}
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Errorf("it was noticed after %v", took)
		}
		next.close()
		_ = w.host.listener.Close(w.t.Context()) // Its error is that of the socket.
	})
}
