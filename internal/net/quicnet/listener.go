package quicnet

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/udpbatch"
)

// ServerConfig is what a listener needs to know.
type ServerConfig struct {
	// Config is what is asked of who comes. The listener's door has it.
	admission.Config
	Listen string      // host:port of the UDP socket; port 0 picks a free one
	TLS    *tls.Config // nil: a certificate for development, which stays
	// Protocols are those that are spoken beside [Plain].
	Protocols []Protocol
	Socket    *udpbatch.Stats // nil: not counted
	// Through puts something in front of the socket, such as an emulated network; its Close
	// closes the socket. The socket is a plain one then. nil: nothing.
	Through func(socket net.PacketConn) net.PacketConn
	// PlainSocket leaves the socket to quic-go as package net has made it. It is also asked
	// for by NETLOOP_PLAIN_SOCKET=true.
	PlainSocket bool

	IdleTimeout time.Duration // 0: 10 s without a sign of a client until it counts as lost
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
	peers     *udpbatch.Peers // nil if the socket is a plain one
	protocols map[string]Protocol
	transport *quic.Transport
	quic      *quic.Listener
	accepting sync.WaitGroup
	door      *admission.Door
}

// Listen opens the socket and serves until Close.
func Listen(cfg ServerConfig) (*Listener, error) {
	cfg = cfg.withDefaults()
	l := &Listener{cfg: cfg, protocols: make(map[string]Protocol), door: admission.New(cfg.Config)}
	for _, p := range append([]Protocol{Plain()}, cfg.Protocols...) {
		l.protocols[p.ALPN] = p
	}
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
		VerifySourceAddress: l.door.AskForProof,
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
		failed := func(err error) { l.door.Failed("a packet was not sent", "error", err) }
		l.socket, l.peers, err = udpbatch.Open(socket, udpbatch.Config{Stats: l.cfg.Socket, Failed: failed})
	}
	return err
}

func (c ServerConfig) withDefaults() ServerConfig {
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = idleTimeout
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
	for _, p := range c.Protocols {
		conf.NextProtos = append(conf.NextProtos, p.ALPN)
	}
	// A client that comes back shakes hands anew, so a ticket would be work and memory for nothing.
	conf.SessionTicketsDisabled = true
	return conf, nil
}

// Addr returns the socket's address.
func (l *Listener) Addr() net.Addr { return l.socket.LocalAddr() }

// Door is what lets in who comes, for those who come by another way too.
func (l *Listener) Door() *admission.Door { return l.door }

// Close closes the door, and then the socket. It is called once.
func (l *Listener) Close(ctx context.Context) error {
	l.door.Close(ctx)
	err := l.quic.Close()
	l.accepting.Wait()
	return errors.Join(err, l.transport.Close(), l.socket.Close())
}
