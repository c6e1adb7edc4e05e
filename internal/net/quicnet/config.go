package quicnet

import (
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

// ALPN is the protocol that both ends negotiate in TLS.
const ALPN = "netloop/1"

const (
	// handshakeIdleTimeout bounds a silent QUIC handshake: a half-open one holds four
	// goroutines and 69 KiB.
	handshakeIdleTimeout = 3 * time.Second
	// idleTimeout is how long a connection lives without a sign of the peer.
	idleTimeout = 10 * time.Second
	// keepAlivePeriod keeps a connection up that neither side uses.
	keepAlivePeriod = 3 * time.Second

	// initialPacketSize is the size of QUIC's packets; the search for a larger one is off.
	initialPacketSize = 1200
	// peerStreams and peerUniStreams bound the streams that a peer has open at once. One stream is
	// netloop's own, one more a browser's CONNECT, and HTTP/3 has three in one direction. What no
	// protocol asks for is never read.
	peerStreams    = 4
	peerUniStreams = 6
	// serverWindow bounds the unread stream data that one client may leave on the
	// server: 32 KiB hold a hello, or two of the largest frames.
	serverWindow = 32 << 10
	// clientWindow is that for a client, which reads from one server only.
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
	c.MaxIncomingStreams = -1 // The server opens none, and by HTTP/3 one in one direction.
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
		// The least that QUIC allows: with what IP and UDP add, it goes through any
		// path for IPv6, which may carry no more than 1 280 B.
		InitialPacketSize: initialPacketSize,
		EnableDatagrams:   true,
		// Datagrams stay below 1200 B anyway, and on a path that shrinks every larger
		// one would be lost while the connection stays up.
		DisablePathMTUDiscovery: true,
	}
}

// sinceNow makes a monotonic clock that starts at zero.
func sinceNow() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// withoutGSO keeps quic-go from segmentation offload, unless somebody has said what quic-go shall
// do. The kernel would cut what quic-go hands over into packets of one size. Ours are of many, so
// nothing is ever cut, but for each packet quic-go takes a buffer of 20 KB, of which several per
// connection are under way or wait in its pool. quic-go has no other switch.
func withoutGSO() {
	const key = "QUIC_GO_DISABLE_GSO"
	if _, said := os.LookupEnv(key); !said {
		_ = os.Setenv(key, "true")
	}
}
