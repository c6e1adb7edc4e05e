package admission

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Config configures a Controller.
type Config struct {
	Clock   func() time.Duration // monotonic, timestamps arrivals; nil: time since New
	Handler transport.Handler
	Stats   *transport.Stats // nil: not counted
	Log     *slog.Logger     // nil: silent

	HelloTimeout time.Duration // 0: 5 s from the connection to the whole hello
	AdmitTimeout time.Duration // 0: 10 s for Handler.Admit
	// MaxConns bounds the admitted connections; further ones are refused with CODE_FULL. 0: 4096.
	MaxConns int
	// MaxUnadmitted bounds the unadmitted connections, which are not counted in MaxConns. 0: 1024.
	MaxUnadmitted int
	// Refusing returns the code with which every client is refused now, CODE_FULL or another code
	// for overload, and 0 if clients are admitted. If resume is true, some connections are
	// nevertheless tried, at a limited rate. It is called for each new connection on a goroutine
	// that reads the network, so it must not block. nil: always 0.
	Refusing func() (code transport.Code, resume bool)
}

const (
	// defaultHelloTimeout bounds the time from the end of the cryptographic handshake to the last
	// byte of the hello, so that a slow client holds its entry only briefly.
	defaultHelloTimeout = 5 * time.Second
	// defaultAdmitTimeout bounds Handler.Admit, which may ask a remote service.
	defaultAdmitTimeout = 10 * time.Second

	// defaultMaxConns bounds the admitted connections, at about 100 KB each, and
	// defaultMaxUnadmitted the unadmitted connections.
	defaultMaxConns      = 4096
	defaultMaxUnadmitted = defaultMaxConns / 4
	// maxHalfOpen bounds the half-open handshakes with addresses that may be forged. Ordinary
	// players do not reach it. Above it a peer must prove its address with a Retry, which delays
	// the client by one round trip and is cheap for the server.
	maxHalfOpen = 12
	// retryRate is the number of Retries per second, in bursts of retryBurst. With a Retry for each
	// first packet, the answers to a flood from forged addresses would have more than a tenth of
	// its bytes, and the owners of the addresses would receive them.
	retryRate  = 250
	retryBurst = 50
	// maxPerSite bounds the unadmitted connections of one household or machine.
	maxPerSite = 8
	// dismissAfter is the time for which an unadmitted connection keeps its entry when a new
	// connection needs one. Only if its site has more connections than the site of the new
	// connection, it may lose the entry earlier. It is longer than a handshake over a bad link.
	dismissAfter = time.Second
	// siteRate and allRate are the sustained handshakes per second of one household or machine, and
	// of all sites. Each takes less than a millisecond of a core. Bursts may be as large as the
	// number of seats on the server, and at least minBurst.
	siteRate = 50
	allRate  = 200
	minBurst = 64
	// resumeRate and resumeBurst limit the connections per second that are tried while the server
	// admits no client: so that players can resume their seats, and other clients get a refusal
	// with a text.
	resumeRate  = 10
	resumeBurst = 20
)

// complete sets the defaults.
func (c Config) complete() Config {
	c.Stats = cmp.Or(c.Stats, new(transport.Stats))
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Clock == nil {
		start := time.Now()
		c.Clock = func() time.Duration { return time.Since(start) }
	}
	if c.Refusing == nil {
		c.Refusing = func() (transport.Code, bool) { return 0, true }
	}
	if c.HelloTimeout <= 0 {
		c.HelloTimeout = defaultHelloTimeout
	}
	if c.AdmitTimeout <= 0 {
		c.AdmitTimeout = defaultAdmitTimeout
	}
	if c.MaxConns <= 0 {
		c.MaxConns = defaultMaxConns
	}
	if c.MaxUnadmitted <= 0 {
		c.MaxUnadmitted = defaultMaxUnadmitted
	}
	return c
}
