package quicnet

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// ServerConfig is what a listener needs to know.
type ServerConfig struct {
	Listen  string      // host:port of the UDP socket
	TLS     *tls.Config // nil: a generated development certificate
	Clock   func() time.Duration
	Handler transport.Handler
	Stats   *transport.Stats
	Log     *slog.Logger
}

// Listener serves sessions on one UDP socket.
type Listener struct{}

// Listen opens the socket and serves.
func Listen(cfg ServerConfig) (*Listener, error) { panic("quicnet: not yet") }

// Addr is the socket's address.
func (l *Listener) Addr() net.Addr { panic("quicnet: not yet") }

// CertHash is the SHA-256 of the certificate.
func (l *Listener) CertHash() [32]byte { panic("quicnet: not yet") }

// Refuse answers new dials at once with a refusal.
func (l *Listener) Refuse(code transport.Code, text string) { panic("quicnet: not yet") }

// Close ends every connection and returns when every goroutine has ended.
func (l *Listener) Close(ctx context.Context, code transport.Code, text string) error {
	panic("quicnet: not yet")
}

// Dialer is one UDP socket that many clients share.
type Dialer struct{}

// NewDialer opens a socket.
func NewDialer() (*Dialer, error) { panic("quicnet: not yet") }

// Close closes the socket after every connection has ended.
func (d *Dialer) Close() error { panic("quicnet: not yet") }

// DialConfig is what a dial needs to know.
type DialConfig struct {
	Addr    string
	TLS     *tls.Config // nil: ClientTLS for the address's host
	Hello   *netloopv1.Hello
	Session transport.SessionConfig
	Dialer  *Dialer // nil: a socket of its own
}

// Dial connects.
func Dial(ctx context.Context, cfg DialConfig) (*transport.Session, *netloopv1.Welcome, error) {
	panic("quicnet: not yet")
}

// DevCertificate makes a development certificate.
func DevCertificate() (tls.Certificate, [32]byte, error) { panic("quicnet: not yet") }

// Trust says which certificates a client accepts.
type Trust struct {
	CAFile   string // PEM file
	CertHash string // SHA-256 of the certificate, hex
}

// ClientTLS makes a client's configuration for an address.
func ClientTLS(addr string, t Trust) (*tls.Config, error) { panic("quicnet: not yet") }
