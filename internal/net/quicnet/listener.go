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
	"github.com/netloop/netloop/internal/net/sealed"
	"github.com/netloop/netloop/internal/net/udpbatch"
)

// ServerConfig configures a listener.
type ServerConfig struct {
	// Config configures the listener's admission.
	admission.Config
	Listen string      // host:port of the UDP socket; port 0 picks a free one
	TLS    *tls.Config // nil: a certificate for development
	// Protocols are served besides [Plain].
	Protocols []Protocol
	Socket    *udpbatch.Stats // nil: not counted
	// Through wraps the socket, for example with an emulated network; its Close closes the socket.
	// The wrapped socket is a socket of package net, not of udpbatch. nil: not wrapped.
	Through func(socket net.PacketConn) net.PacketConn
	// PlainSocket makes quic-go use the socket of package net directly. NETLOOP_PLAIN_SOCKET=true
	// has the same effect.
	PlainSocket bool

	Records *sealed.Stats // nil: not counted
	// QUICOnly disables sealed records: all datagrams travel over QUIC.
	QUICOnly bool

	IdleTimeout time.Duration // 0: a client without packets for 10 s is lost
	// Secret is the source of the listener's keys. If it is the same after a crash and a restart,
	// former clients detect the restart within milliseconds, and proofs of addresses remain valid.
	// It must differ for every listener. Empty: random.
	Secret []byte
}

// plainSocketEnv is the environment variable that sets ServerConfig.PlainSocket for a whole
// process, to compare runs with and without udpbatch.
const plainSocketEnv = "NETLOOP_PLAIN_SOCKET"

// Listener serves sessions on one UDP socket.
type Listener struct {
	cfg       ServerConfig
	socket    net.PacketConn
	peers     *udpbatch.Peers // nil for a plain socket
	records   *sealed.Table   // nil: none
	protocols map[string]Protocol
	transport *quic.Transport
	quic      *quic.Listener
	accepting sync.WaitGroup
	admission *admission.Controller
}

// Listen opens the socket and serves until Close.
func Listen(cfg ServerConfig) (*Listener, error) {
	cfg = cfg.withDefaults()
	l := &Listener{cfg: cfg, protocols: make(map[string]Protocol), admission: admission.New(cfg.Config)}
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
		VerifySourceAddress: l.admission.MustProveAddress,
		ConnContext:         l.reserve,
	}
	withoutGSO()
	if l.quic, err = l.transport.Listen(conf, serverQUIC(cfg.IdleTimeout)); err != nil {
		return nil, errors.Join(fmt.Errorf("%q: %w", cfg.Listen, err), l.transport.Close(), l.socket.Close())
	}
	l.accepting.Go(l.accept)
	return l, nil
}

// take sets the socket that QUIC uses.
func (l *Listener) take(socket *net.UDPConn) (err error) {
	if !l.cfg.QUICOnly {
		l.records = newRecords(l.cfg.Records, l.writeRecord)
	}
	plain, _ := strconv.ParseBool(os.Getenv(plainSocketEnv))
	switch {
	case l.cfg.Through != nil:
		l.socket = filtered(l.cfg.Through(socket), l.records)
	case plain || l.cfg.PlainSocket:
		l.socket = newSocket(socket, takerOf(l.records), nil)
	default:
		failed := func(err error) { l.admission.Failed("packet was not sent", "error", err) }
		l.socket, l.peers, err = udpbatch.Open(socket, udpbatch.Config{Stats: l.cfg.Socket, Failed: failed, Take: takerOf(l.records)})
		if udp, same := l.socket.(*net.UDPConn); same { // This system does not support batches.
			l.socket = newSocket(udp, takerOf(l.records), nil)
		}
	}
	return err
}

// writeRecord sends a sealed record.
func (l *Listener) writeRecord(b, local []byte, to *net.UDPAddr) error {
	return writeRecord(l.socket, b, local, to)
}

func (c ServerConfig) withDefaults() ServerConfig {
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = idleTimeout
	}
	if c.Records == nil {
		c.Records = new(sealed.Stats)
	}
	if len(c.Secret) == 0 {
		c.Secret = make([]byte, sha256.Size)
		_, _ = rand.Read(c.Secret) // It never fails.
	}
	return c
}

// derive returns the key for a purpose.
func derive(secret []byte, purpose string) *[32]byte {
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, 32)
	if err != nil {
		panic("quicnet: " + err.Error()) // It fails only for a length far above 32.
	}
	return (*[32]byte)(key)
}

// serverTLS completes the caller's TLS configuration, or creates one.
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
	// A returning client performs a new handshake, so session tickets would only cost time and
	// memory.
	conf.SessionTicketsDisabled = true
	return conf, nil
}

// Addr returns the socket's address.
func (l *Listener) Addr() net.Addr { return l.socket.LocalAddr() }

// Admission returns the listener's admission, so that other transports can share it.
func (l *Listener) Admission() *admission.Controller { return l.admission }

// Close closes the listener's admission, see [admission.Controller.Close], and then the socket. It
// is called once.
func (l *Listener) Close(ctx context.Context) error {
	l.admission.Close(ctx)
	err := l.quic.Close()
	l.accepting.Wait()
	return errors.Join(err, l.transport.Close(), l.socket.Close())
}
