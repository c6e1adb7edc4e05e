package quicnet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

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
	chunks    sync.Pool // of carrier

	mu     sync.Mutex // orders links.Add before links.Wait
	closed bool
}

// NewDialer opens a socket on a free port.
func NewDialer() (*Dialer, error) {
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	return NewDialerOn(socket), nil
}

// NewDialerOn makes a dialer of a socket, which belongs to it from now on.
func NewDialerOn(socket net.PacketConn) *Dialer {
	withoutGSO()
	d := &Dialer{socket: socket, transport: &quic.Transport{Conn: socket}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Close closes the socket, after every connection on it: those that are still open tell
// their server CodeLeft.
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

// ErrDialerClosed is the error of a dial after Close. It is not net.ErrClosed, because QUIC calls
// every connection that has ended that, one that nobody has answered in time included.
var ErrDialerClosed = errors.New("the dialer was closed")

// enter counts a connection, unless the dialer is closed.
func (d *Dialer) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrDialerClosed
	}
	d.links.Add(1)
	return nil
}

// DialConfig is what a dial needs to know.
type DialConfig struct {
	Addr     string      // host:port of the server
	TLS      *tls.Config // nil: ClientTLS with the zero Trust
	Greeting transport.Greeting
	// TablesTimeout bounds the time that a server may take to tell all of its tables
	// once it has begun; 0: 5 s.
	TablesTimeout time.Duration
	// Session needs an Inbox; Dial fills in Client and ID, and a clock if there is none.
	Session transport.SessionConfig
	Dialer  *Dialer // nil: a socket of its own, closed with the connection
}

// Dial connects and waits for the server's answer. When that is a refusal, the error is a
// *transport.Refusal; ctx bounds the whole of it.
func Dial(ctx context.Context, cfg DialConfig) (*transport.Session, *netloopv1.Welcome, error) {
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
		return nil, nil, fmt.Errorf("the hello: %w", err)
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

// clientTLS completes the caller's TLS configuration, or makes one.
func (cfg *DialConfig) clientTLS() (*tls.Config, error) {
	if cfg.TLS == nil {
		return ClientTLS(cfg.Addr, Trust{})
	}
	conf := cfg.TLS.Clone()
	conf.NextProtos = []string{ALPN}
	if conf.ServerName == "" {
		host, _, err := net.SplitHostPort(cfg.Addr)
		if err != nil {
			return nil, fmt.Errorf("address %q: %w", cfg.Addr, err)
		}
		conf.ServerName = host
	}
	return conf, nil
}

// dial connects, shakes hands and starts the link, whose end calls release.
func (d *Dialer) dial(ctx context.Context, addr net.Addr, conf *tls.Config, cfg DialConfig, hello []byte, release func()) (*transport.Session, *netloopv1.Welcome, error) {
	conn, err := d.connect(ctx, addr, conf)
	if err != nil {
		return nil, nil, err
	}
	stream, welcome, err := cfg.greet(ctx, conn, hello)
	if err != nil {
		bye := cfg.Greeting.Goodbye(err)
		closeConn(conn, bye.Code, bye.Text)
		return nil, nil, err
	}
	cfg.Session.Client, cfg.Session.ID = true, welcome.ClientId
	if cfg.Session.Clock == nil {
		cfg.Session.Clock = sinceNow()
	}
	session, link := transport.NewSession(cfg.Session)
	c := carrier{conn: conn, stream: stream, link: link, clock: cfg.Session.Clock, chunks: &d.chunks}
	go func() {
		stop := context.AfterFunc(d.ctx, func() { link.Shutdown(transport.CodeLeft, "") })
		end := c.run()
		stop()
		release()
		link.End(end)
		d.links.Done()
	}()
	return session, welcome, nil
}

// connect opens a connection. A server that has no place for it at the moment is asked again
// some times, at random moments: whoever was refused together shall not come back together.
func (d *Dialer) connect(ctx context.Context, addr net.Addr, conf *tls.Config) (*quic.Conn, error) {
	pause, refused := dialPause, error(nil)
	for attempt := 1; ; attempt++ {
		conn, err := d.transport.Dial(ctx, addr, conf, clientQUIC())
		switch {
		case err != nil && ctx.Err() != nil && refused != nil:
			return nil, refused // It says more than that the time is over.
		case !refusedAtOnce(err), attempt == dialAttempts:
			return conn, err
		}
		refused = err
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return nil, refused
		}
		pause = min(2*pause, maxDialPause)
	}
}

// greet shakes hands on a new stream.
func (cfg *DialConfig) greet(ctx context.Context, conn *quic.Conn, hello []byte) (*quic.Stream, *netloopv1.Welcome, error) {
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { closeConn(conn, transport.CodeLeft, "") })
	defer stop()
	g, begun := &cfg.Greeting, false
	for say := hello; ; {
		if _, err := stream.Write(say); err != nil {
			return nil, nil, cause(conn, err)
		}
		frame, err := transport.ReadFrame(stream, transport.MaxHandshake)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, nil, &transport.Closed{Code: transport.CodeTimeout, Text: "the server's tables did not come in time"}
		case errors.Is(err, transport.ErrFrameTooLarge):
			return nil, nil, err
		}
		if err != nil {
			return nil, nil, cause(conn, err)
		}
		var welcome *netloopv1.Welcome
		if say, welcome, err = g.Take(frame); err != nil {
			return nil, nil, err
		}
		if welcome == nil {
			if reads := g.Reads(); reads != begun { // The first part, and then the last.
				begun = reads
				cfg.limitTables(stream, begun)
			}
			continue
		}
		if !stop() {
			err = ctx.Err() // The connection is being closed.
		}
		return stream, welcome, err
	}
}

// limitTables begins or ends the time for the server's tables.
func (cfg *DialConfig) limitTables(stream *quic.Stream, begin bool) {
	var end time.Time
	if begin {
		end = time.Now().Add(cmp.Or(cfg.TablesTimeout, defaultTablesTimeout))
	}
	_ = stream.SetReadDeadline(end) // It never fails.
}

// cause prefers what ended the connection to what ended the stream.
func cause(conn *quic.Conn, err error) error {
	select {
	case <-conn.Context().Done():
		return context.Cause(conn.Context())
	case <-time.After(lingerTimeout): // The close is under way: it follows a stream's end.
		return err
	}
}
