package admission

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Config is what a door needs to know.
type Config struct {
	Clock   func() time.Duration // monotonic; stamps what arrives; nil: since now
	Handler transport.Handler
	Stats   *transport.Stats // nil: not counted
	Log     *slog.Logger     // nil: silent

	HelloTimeout time.Duration // 0: 5 s from the connection to the whole hello
	AdmitTimeout time.Duration // 0: 10 s for Handler.Admit
	// MaxConns bounds the connections that have been let in; who comes when there are as
	// many is told CODE_FULL. 0: 4096.
	MaxConns int
	// MaxStrangers bounds the connections that have not been let in, beside the others.
	// 0: 1024.
	MaxStrangers int
	// Refusing says why nobody can come in now, whoever it is: CODE_FULL, or another code
	// for overload; 0 if somebody may. Some of them are heard all the same, if it says so.
	// It is asked before a connection costs anything, on a goroutine that reads the network, so
	// it must not wait. nil: always 0.
	Refusing func() (code transport.Code, hear bool)
}

const (
	// defaultHelloTimeout bounds the time from the end of the cryptographic handshake to the
	// last byte of the hello, so that a slow one holds nothing for long.
	defaultHelloTimeout = 5 * time.Second
	// defaultAdmitTimeout bounds Handler.Admit: it may ask a service elsewhere.
	defaultAdmitTimeout = 10 * time.Second

	// defaultMaxConns bounds the connections that have been let in, at about 100 KB each, and
	// defaultMaxStrangers those that have not.
	defaultMaxConns     = 4096
	defaultMaxStrangers = defaultMaxConns / 4
	// maxHalfOpen bounds the handshakes that are half open with an address that may be
	// forged: more than players cause who come as they like. From then on addresses are
	// to be proven by a Retry, which costs a newcomer a round trip and the server little.
	maxHalfOpen = 12
	// retryRate is how many Retries a second are sent, at once retryBurst. A flood with
	// forged addresses is not to be answered with a tenth of its bytes, and a Retry for
	// each first packet would be more.
	retryRate  = 250
	retryBurst = 50
	// maxPerSite bounds the strangers of one household or machine.
	maxPerSite = 8
	// dismissAfter is how long a stranger keeps its place at least, unless it is one of
	// many from its site: longer than a player over a bad link takes to come in.
	dismissAfter = time.Second
	// siteRate and allRate are how many handshakes a second of one household or machine,
	// and of all, are taken in the long run, each of less than a millisecond of a core. At
	// once there may be as many as have a place on the server, and minBurst at least.
	siteRate = 50
	allRate  = 200
	minBurst = 64
	// heardRate and heardBurst are how many connections a second a server takes that can let
	// in nobody: players who only want their seat back, and others to be told so in words.
	heardRate  = 10
	heardBurst = 20
)

// complete fills in the defaults.
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
	if c.MaxStrangers <= 0 {
		c.MaxStrangers = defaultMaxStrangers
	}
	return c
}
