package quicnet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/sealed"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Dialer is one UDP socket for any number of clients.
type Dialer struct {
	socket    net.PacketConn
	transport *quic.Transport
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	links     sync.WaitGroup
	chunks    driver.Chunks
	records   *sealed.Table
	refusals  refusals
	arrived   func() uint64 // grows with each packet at the socket; nil: unknown

	mu     sync.Mutex // orders links.Add before links.Wait
	closed bool
}

// NewDialer opens a socket on a free port.
func NewDialer() (*Dialer, error) {
	udp, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	d := newDialer()
	s := newSocket(udp, takerOf(d.records), d.refusals.refused)
	d.arrived = s.arrived.Load
	d.use(s)
	return d, nil
}

// NewDialerOn returns a dialer for a socket and takes ownership of the socket.
func NewDialerOn(socket net.PacketConn) *Dialer {
	d := newDialer()
	d.use(filtered(socket, d.records))
	return d
}

// newDialer returns a dialer without its socket.
func newDialer() *Dialer {
	d := new(Dialer)
	d.records = newRecords(nil, func(b, local []byte, to *net.UDPAddr) error { return writeRecord(d.socket, b, local, to) })
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// use sets the socket.
func (d *Dialer) use(socket net.PacketConn) {
	withoutGSO()
	d.socket, d.transport = socket, &quic.Transport{Conn: socket}
}

// Close ends all connections of the socket, with CodeLeft for their servers, and then closes the
// socket.
func (d *Dialer) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.links.Wait()
	return d.release()
}

func (d *Dialer) release() error {
	d.cancel()
	return errors.Join(d.transport.Close(), d.socket.Close())
}

// enter counts a connection, unless the dialer is closed.
func (d *Dialer) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return driver.ErrDialerClosed
	}
	d.links.Add(1)
	return nil
}

// DialConfig configures a dial.
type DialConfig struct {
	Addr     string      // host:port of the server
	TLS      *tls.Config // nil: ClientTLS with the zero Trust
	Protocol *Protocol   // nil: Plain
	Greeting transport.Greeting
	// TablesTimeout bounds the time from the first part of the server's tables to the last part; 0:
	// 5 s.
	TablesTimeout time.Duration
	// Session needs an Inbox; Dial sets Client and ID, and a clock if there is none.
	Session transport.SessionConfig
	Dialer  *Dialer // nil: a new socket, which is closed with the connection
	// QUICOnly disables sealed records: all datagrams travel over QUIC.
	QUICOnly bool
	// Quiet is the time after which a dial fails if no packet has arrived at the Dialer's socket;
	// 0: no limit. It applies only if the Dialer counts arrivals.
	Quiet time.Duration
}

// Dial connects and waits for the server's answer. A refusal is the error *transport.Refusal; ctx
// bounds the whole dial.
func Dial(ctx context.Context, cfg DialConfig) (*transport.Session, *netloopv1.Welcome, error) {
	if cfg.Protocol == nil {
		plain := Plain()
		cfg.Protocol = &plain
	}
	conf, err := cfg.clientTLS()
	if err != nil {
		return nil, nil, err
	}
	addr, err := net.ResolveUDPAddr("udp", cfg.Addr)
	if err != nil {
		return nil, nil, err
	}
	hello, err := cfg.Greeting.Open(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("hello: %w", err)
	}
	d, release := cfg.Dialer, func() {}
	if d == nil {
		if d, err = NewDialer(); err != nil {
			return nil, nil, err
		}
		release = func() { _ = d.release() }
	}
	if err := d.enter(); err != nil {
		return nil, nil, err
	}
	session, welcome, err := d.dial(ctx, addr, conf, cfg, hello, release)
	if err != nil {
		release()
		d.links.Done()
		return nil, nil, dialError(ctx, err)
	}
	return session, welcome, nil
}

// clientTLS completes the caller's TLS configuration, or creates one.
func (cfg *DialConfig) clientTLS() (conf *tls.Config, err error) {
	if cfg.TLS == nil {
		conf, err = ClientTLS(cfg.Addr, Trust{})
	} else {
		conf, err = named(cfg.TLS.Clone(), cfg.Addr)
	}
	if err != nil {
		return nil, err
	}
	conf.NextProtos = []string{cfg.Protocol.ALPN}
	if conf.CurvePreferences == nil {
		// Go's default adds X25519MLKEM768, with a key of 1184 bytes, which makes the client's
		// first flight two full packets. On a link of 40 kbit/s the router then drops the second
		// one repeatedly, until the handshake times out (docs/adr/0057).
		conf.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
	}
	return conf, nil
}

// named sets the server's name from the address if it is empty.
func named(conf *tls.Config, addr string) (*tls.Config, error) {
	if conf.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("address %q: %w", addr, err)
		}
		conf.ServerName = host
	}
	return conf, nil
}

// dial connects, performs the handshake and starts the link. When the link ends, it calls release.
func (d *Dialer) dial(ctx context.Context, addr net.Addr, conf *tls.Config, cfg DialConfig, hello []byte, release func()) (*transport.Session, *netloopv1.Welcome, error) {
	conn, err := d.connect(ctx, addr, conf, cfg.Quiet)
	if err != nil {
		return nil, nil, err
	}
	c, err := cfg.Protocol.Open(ctx, conn, cfg.Addr)
	if err != nil {
		cfg.Protocol.Close(conn, transport.CodeLeft, "")
		return nil, nil, err
	}
	welcome, err := driver.Greet(ctx, c, &cfg.Greeting, hello, cmp.Or(cfg.TablesTimeout, driver.DefaultTablesTimeout))
	if err != nil {
		return nil, nil, err
	}
	cfg.Session.Client, cfg.Session.ID = true, welcome.ClientId
	if cfg.Session.Clock == nil {
		cfg.Session.Clock = sinceNow()
	}
	session, link := transport.NewSession(cfg.Session)
	received := func() uint64 { return conn.ConnectionStats().PacketsReceived }
	if p, ok := c.(*plain); ok {
		received = p.received
		if !cfg.QUICOnly {
			p.records = d.records
		}
	}
	d.refusals.add(conn, received)
	go func() {
		stop := context.AfterFunc(d.ctx, func() { link.Shutdown(transport.CodeLeft, "") })
		end := driver.Run(driver.Config{Conn: c, Link: link, Clock: cfg.Session.Clock, Chunks: &d.chunks})
		stop()
		d.refusals.remove(conn)
		release()
		link.End(end)
		d.links.Done()
	}()
	return session, welcome, nil
}

// errQuiet is the cause of a dial that failed because no packet arrived within DialConfig.Quiet.
var errQuiet = errors.New("no answer")

// connect opens a connection.
func (d *Dialer) connect(ctx context.Context, addr net.Addr, conf *tls.Config, quiet time.Duration) (*quic.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if quiet > 0 && d.arrived != nil {
		before := d.arrived()
		defer time.AfterFunc(quiet, func() {
			if d.arrived() == before {
				cancel(errQuiet)
			}
		}).Stop()
	}
	dial := func() (*quic.Conn, error) { return d.transport.Dial(ctx, addr, conf, clientQUIC()) }
	conn, err := driver.Retry(ctx, dial, refusedAtOnce)
	if err != nil && errors.Is(context.Cause(ctx), errQuiet) {
		return nil, errQuiet
	}
	return conn, err
}
