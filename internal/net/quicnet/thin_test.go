package quicnet

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// thin is a network in virtual time in which each client has a link of its own to one server.
type thin struct {
	simnet.PerfectRouter
	began time.Time
	link  netem.Link

	mu    sync.Mutex
	drops func(p simnet.Packet) bool // nil: no further packets are dropped
	paths map[string]*[2]netem.Path  // by the client's address: to it, from it
	// outside is the address of host 1 that the server sees; nil: its own. Packets to another one
	// are lost.
	outside *net.UDPAddr
}

// inside is the address of host 1.
var inside = &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4433}

// ipHeaders is the size of the headers of IPv4 and UDP.
const ipHeaders = 28

// SendPacket implements simnet.Router.
func (n *thin) SendPacket(p simnet.Packet) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.drops != nil && n.drops(p) {
		return nil
	}
	from := p.From
	if n.outside != nil && p.From.String() == inside.String() {
		from = n.outside
	} else if n.outside != nil {
		if p.To.String() != n.outside.String() {
			return nil
		}
		p.To = inside
	}
	client, way := p.To.String(), 0
	if _, ok := n.paths[client]; !ok {
		client, way = p.From.String(), 1
	}
	now := time.Since(n.began)
	fate := n.paths[client][way].Send(now, len(p.Data)+ipHeaders)
	p.From = from
	if fate.Copies > 0 {
		time.AfterFunc(fate.At[0]-now, func() { _ = n.PerfectRouter.SendPacket(p) })
	}
	return nil
}

// socket opens the socket of a client or, with host 0, of the server.
func (n *thin) socket(host byte) net.PacketConn {
	addr := &net.UDPAddr{IP: net.IPv4(10, 0, 0, host), Port: 4433}
	if host > 0 {
		paths := [2]netem.Path{netem.NewPath(n.link, uint64(host), 0), netem.NewPath(n.link, uint64(host), 1)}
		n.paths[addr.String()] = &paths
	}
	return simnet.NewSimConn(addr, n)
}

// onThin runs a test with a server behind thin links.
func onThin(t *testing.T, link netem.Link, test func(t *testing.T, n *thin, h *host)) {
	synctest.Test(t, func(t *testing.T) {
		n := &thin{link: link, began: time.Now(), paths: make(map[string]*[2]netem.Path)}
		h := n.serve(t)
		test(t, n, h)
		h.close()
	})
}

// serve starts a server, in place of a former one. All have one secret.
func (n *thin) serve(t *testing.T) *host {
	return serve(t, func(c *ServerConfig) {
		c.Secret = []byte("secret")
		c.Through = func(socket net.PacketConn) net.PacketConn {
			_ = socket.Close()
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.socket(0)
		}
	})
}

// join dials from a client of its own and disconnects. It returns the time that the dial took.
func (n *thin) join(t *testing.T, client byte) (time.Duration, error) {
	n.mu.Lock()
	d := NewDialerOn(n.socket(client))
	n.mu.Unlock()
	defer func() { _ = d.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	s, _, err := Dial(ctx, DialConfig{
		Dialer: d, Addr: "10.0.0.0:4433", TLS: &tls.Config{InsecureSkipVerify: true},
		Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: nettest.NewOwner(nil).Arrivals},
	})
	took := time.Since(began)
	if s != nil {
		s.Close(transport.CodeLeft, "")
	}
	return took, err
}

// Twenty clients that arrive within a second join, each over a link of 40 kbit/s with a router
// that drops a packet if it would wait longer than 200, 250 or 400 ms: a full packet takes 246 ms.
// The server demands proofs of the addresses of the last eight, so their first packet crosses the
// link twice.
func TestAllClientsJoinOverThinLinks(t *testing.T) {
	for _, buffer := range []time.Duration{200 * time.Millisecond, 250 * time.Millisecond, 400 * time.Millisecond} {
		onThin(t, netem.Link{Delay: 30 * time.Millisecond, Bandwidth: 40_000, Buffer: buffer}, func(t *testing.T, n *thin, _ *host) {
			var wg sync.WaitGroup
			for i := range byte(20) {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 50 * time.Millisecond)
					if took, err := n.join(t, i+1); err != nil || took > 4*time.Second {
						t.Errorf("buffer of %v: client %d: %v after %v, want no error within 4 s", buffer, i, err, took)
					}
				})
			}
			wg.Wait()
		})
	}
}

// A caller's choice of key exchanges is kept.
func TestTheKeyExchangeIsTheCallersChoice(t *testing.T) {
	chosen := []tls.CurveID{tls.X25519MLKEM768}
	plain := Plain()
	for _, c := range []struct{ conf, want []tls.CurveID }{{nil, []tls.CurveID{tls.X25519, tls.CurveP256}}, {chosen, chosen}} {
		cfg := DialConfig{Addr: "10.0.0.0:1", TLS: &tls.Config{CurvePreferences: c.conf}, Protocol: &plain}
		conf, err := cfg.clientTLS()
		if err != nil || !slices.Equal(conf.CurvePreferences, c.want) {
			t.Errorf("with %v: %v, %v, want %v", c.conf, conf.CurvePreferences, err, c.want)
		}
	}
}
