package quicnet

import (
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

// ALPN is the name of the protocol in TLS.
const ALPN = "netloop/1"

const (
	// handshakeIdleTimeout bounds a silent QUIC handshake: a half-open handshake takes four
	// goroutines and 69 KiB.
	handshakeIdleTimeout = 3 * time.Second
	// idleTimeout is the time without packets of the peer after which a connection ends.
	idleTimeout = 10 * time.Second
	// keepAlivePeriod is the interval of packets that keep an idle connection open.
	keepAlivePeriod = 3 * time.Second

	// initialPacketSize is the size of QUIC's packets; the search for a larger size is disabled.
	initialPacketSize = 1200
	// peerStreams and peerUniStreams bound the open streams of a peer. netloop uses one stream, a
	// browser's CONNECT another one, and HTTP/3 three unidirectional streams. Further streams are
	// never read.
	peerStreams    = 4
	peerUniStreams = 6
	// serverWindow bounds the unread stream data of one client on the server: 32 KiB hold a hello,
	// or two of the largest frames.
	serverWindow = 32 << 10
	// clientWindow is the same bound at a client, which reads from one server only.
	clientWindow = 256 << 10
)

// serverQUIC is the configuration of the server's end.
func serverQUIC(idle time.Duration) *quic.Config {
	c := commonQUIC(serverWindow)
	c.MaxIdleTimeout = idle
	c.MaxIncomingStreams, c.MaxIncomingUniStreams = peerStreams, peerUniStreams
	return c
}

// clientQUIC is the configuration of the client's end.
func clientQUIC() *quic.Config {
	c := commonQUIC(clientWindow)
	c.MaxIncomingStreams = -1 // The server opens none, and with HTTP/3 one unidirectional.
	c.MaxIncomingUniStreams = peerUniStreams
	return c
}

func commonQUIC(window uint64) *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:           handshakeIdleTimeout,
		MaxIdleTimeout:                 idleTimeout,
		KeepAlivePeriod:                keepAlivePeriod,
		InitialStreamReceiveWindow:     window,
		MaxStreamReceiveWindow:         window,
		InitialConnectionReceiveWindow: window * 3 / 2,
		MaxConnectionReceiveWindow:     window * 3 / 2,
		// The least that QUIC allows: with IP and UDP headers it fits any path for IPv6, whose
		// packets may be limited to 1 280 B.
		InitialPacketSize: initialPacketSize,
		EnableDatagrams:   true,
		// Datagrams are smaller than 1200 B anyway. On a path whose packet size decreases, all
		// larger datagrams would be lost while the connection remains open.
		DisablePathMTUDiscovery: true,
	}
}

// sinceNow returns a monotonic clock that starts at zero.
func sinceNow() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// withoutGSO disables quic-go's segmentation offload, unless the environment sets it. With it the
// kernel cuts quic-go's buffers into packets of one size. Our packets have many sizes, so there is
// no gain; but quic-go takes a buffer of 20 KB for each packet, and several buffers per connection
// are in use or in its pool. quic-go has no other switch.
func withoutGSO() {
	const key = "QUIC_GO_DISABLE_GSO"
	if _, said := os.LookupEnv(key); !said {
		_ = os.Setenv(key, "true")
	}
}
