package quicnet

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/time/rate"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/guard"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/transport/gate"
)

// ServerConfig is what a listener needs to know.
type ServerConfig struct {
	Listen  string               // host:port of the UDP socket; port 0 picks a free one
	TLS     *tls.Config          // nil: a certificate for development, which stays
	Clock   func() time.Duration // monotonic; stamps what arrives; nil: since Listen
	Handler transport.Handler
	Stats   *transport.Stats // nil: not counted
	Socket  *gate.Stats      // nil: not counted
	Log     *slog.Logger     // nil: silent
	// Through puts something in front of the socket, such as an emulated network; its Close
	// closes the socket. The socket is a plain one then. nil: nothing.
	Through func(socket net.PacketConn) net.PacketConn
	// PlainSocket leaves the socket to quic-go as package net has made it. It is also asked
	// for by NETLOOP_PLAIN_SOCKET=true.
	PlainSocket bool

	IdleTimeout  time.Duration // 0: 10 s without a sign of a client until it counts as lost
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
	// It is asked before a connection costs anything, on a goroutine of quic-go, so it must
	// not wait. nil: always 0.
	Refusing func() (code transport.Code, hear bool)
	// Secret is what the listener's keys are derived from. If it is the same after a crash and
	// a restart, the clients of before notice within milliseconds, and proofs of addresses
	// stay good. It must be another for every listener. Empty: drawn.
	Secret []byte
}

// plainSocketEnv is the environment variable that is ServerConfig.PlainSocket for a whole
// process, so that everything can be played with and without the gate.
const plainSocketEnv = "NETLOOP_PLAIN_SOCKET"

// Listener serves sessions on one UDP socket.
type Listener struct {
	cfg       ServerConfig
	socket    net.PacketConn
	peers     *gate.Peers // nil if the socket is a plain one
	transport *quic.Transport
	quic      *quic.Listener
	accepting sync.WaitGroup
	serving   sync.WaitGroup // Add is called while refuse is nil under mu, or by one that it counts
	strangers *strangers
	heard     *rate.Limiter // of those who come while nobody can come in
	chunks    sync.Pool     // of carrier

	mu       sync.Mutex
	conns    map[*quic.Conn]*transport.Link // nil while it is a stranger
	admitted int                            // of conns
	maxConns int                            // bounds that
	refuse   *transport.Refusal             // nil: dials are welcome
	told     guard.Throttle[string]         // of what the log is told
}

// Listen opens the socket and serves until Close.
func Listen(cfg ServerConfig) (*Listener, error) {
	cfg = cfg.withDefaults()
	l := &Listener{
		cfg: cfg, conns: make(map[*quic.Conn]*transport.Link), heard: rate.NewLimiter(heardRate, heardBurst),
		maxConns:  cfg.MaxConns,
		strangers: newStrangers(cfg.MaxStrangers, max(cfg.MaxConns, minBurst), cfg.Stats),
	}
	l.strangers.dismiss = l.dismiss
	conf, err := cfg.serverTLS()
	if err != nil {
		return nil, err
	}
	addr, err := net.ResolveUDPAddr("udp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", cfg.Listen, err)
	}
	socket, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", cfg.Listen, err)
	}
	if err := l.take(socket); err != nil {
		return nil, fmt.Errorf("%q: %w", cfg.Listen, err)
	}
	l.transport = &quic.Transport{
		Conn:                l.socket,
		StatelessResetKey:   (*quic.StatelessResetKey)(derive(cfg.Secret, "netloop stateless reset")),
		TokenGeneratorKey:   (*quic.TokenGeneratorKey)(derive(cfg.Secret, "netloop address token")),
		VerifySourceAddress: l.strangers.askForProof,
		ConnContext:         l.opening,
	}
	withoutGSO()
	if l.quic, err = l.transport.Listen(conf, serverQUIC(cfg.IdleTimeout)); err != nil {
		return nil, errors.Join(fmt.Errorf("%q: %w", cfg.Listen, err), l.transport.Close(), l.socket.Close())
	}
	l.accepting.Go(l.accept)
	return l, nil
}

// take makes of the socket what QUIC gets.
func (l *Listener) take(socket *net.UDPConn) (err error) {
	plain, _ := strconv.ParseBool(os.Getenv(plainSocketEnv))
	switch {
	case l.cfg.Through != nil:
		l.socket = l.cfg.Through(socket)
	case plain || l.cfg.PlainSocket:
		l.socket = socket
	default:
		failed := func(err error) { l.failed("a packet was not sent", "error", err) }
		l.socket, l.peers, err = gate.Open(socket, gate.Config{Stats: l.cfg.Socket, Failed: failed})
	}
	return err
}

func (c ServerConfig) withDefaults() ServerConfig {
	if c.Stats == nil {
		c.Stats = new(transport.Stats)
	}
	if c.Clock == nil {
		c.Clock = sinceNow()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = idleTimeout
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
	if c.Refusing == nil {
		c.Refusing = func() (transport.Code, bool) { return 0, true }
	}
	if len(c.Secret) == 0 {
		c.Secret = make([]byte, sha256.Size)
		_, _ = rand.Read(c.Secret) // It never fails.
	}
	return c
}

// derive makes the key for a purpose.
func derive(secret []byte, purpose string) *[32]byte {
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, 32)
	if err != nil {
		panic("quicnet: " + err.Error()) // Only a length far above 32 is an error.
	}
	return (*[32]byte)(key)
}

// serverTLS completes the caller's TLS configuration, or makes one.
func (c *ServerConfig) serverTLS() (*tls.Config, error) {
	conf := c.TLS.Clone()
	if conf == nil {
		pair, err := certificate.SelfSigned()
		if err != nil {
			return nil, err
		}
		conf = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	conf.MinVersion = tls.VersionTLS13
	conf.NextProtos = []string{ALPN}
	// A client that comes back shakes hands anew, so a ticket would be work and memory for nothing.
	conf.SessionTicketsDisabled = true
	return conf, nil
}

// Addr returns the socket's address.
func (l *Listener) Addr() net.Addr { return l.socket.LocalAddr() }

// SetMaxConns replaces ServerConfig.MaxConns. Who is in stays.
func (l *Listener) SetMaxConns(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxConns = n
}

// Refuse answers every new dial at once with code and text; who is in stays.
func (l *Listener) Refuse(code transport.Code, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = &transport.Refusal{Code: code, Text: text}
}

// Close ends every session with the reason given to Refuse, or CodeClosing, and returns
// when every goroutine of the listener has ended. Sessions get until the end of ctx, and
// at most lingerTimeout, to bring out what was sent. It is called once.
func (l *Listener) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.refuse == nil {
		l.refuse = &transport.Refusal{Code: transport.CodeClosing}
	}
	why := *l.refuse
	var strangers []*quic.Conn
	for conn, link := range l.conns {
		if link != nil {
			link.Shutdown(why.Code, why.Text)
		} else {
			strangers = append(strangers, conn)
		}
	}
	l.mu.Unlock()
	for _, conn := range strangers {
		closeConn(conn, why.Code, why.Text)
	}
	stop := context.AfterFunc(ctx, func() { l.closeAll(why) })
	l.serving.Wait() // New dials are still answered meanwhile.
	stop()
	err := l.quic.Close()
	l.accepting.Wait()
	return errors.Join(err, l.transport.Close(), l.socket.Close())
}

// closeAll closes what is left without waiting for anybody.
func (l *Listener) closeAll(why transport.Refusal) {
	l.mu.Lock()
	conns := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, conn := range conns {
		closeConn(conn, why.Code, why.Text)
	}
}
