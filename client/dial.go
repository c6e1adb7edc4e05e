package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/net/inproc"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/net/wtnet"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Dialer lets many clients of a process share one UDP socket, as load tests need. Its methods may
// be called from any goroutine.
type Dialer struct {
	d       *quicnet.Dialer
	local   *inproc.Dialer // used in place of d for Config.Local
	sockets *wsnet.Dialer  // for clients over WebSocket, each with its own TCP socket
}

func dialerOf(d *quicnet.Dialer) *Dialer { return &Dialer{d: d, sockets: wsnet.NewDialer()} }

// NewDialer opens a UDP socket on a free port.
func NewDialer() (*Dialer, error) {
	d, err := quicnet.NewDialer()
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return dialerOf(d), nil
}

// Close ends every connection that the Dialer made, and returns when all of
// their goroutines have ended.
func (d *Dialer) Close() error {
	d.sockets.Close()
	return d.d.Close()
}

// Dial connects to a server at addr, host:port, joins its room, and returns when the game has
// admitted the client. If the server or the game refuses the client, the error is a
// *netloop.Refusal. For an incompatible build of the server it has CodeSchemaMismatch, and names
// the class or method, the field, and both types. If the client loses the connection later, it
// reconnects with the same Dialer: see [Reconnect]. With a Config.Local the address and the Dialer
// are not used.
func (d *Dialer) Dial(ctx context.Context, addr string, cfg Config) (*Client, error) {
	c, err := newClient(cfg, systemClock())
	if err != nil {
		return nil, err
	}
	if cfg.Local != nil {
		addr = "the server of this process"
		d = &Dialer{local: &inproc.Dialer{Host: bridge.Netloop.Server(cfg.Local).Local}}
		c.closer = d.local.Close
	}
	c.conn.dial = func(ctx context.Context, a *attempt) {
		go func() { d.dial(ctx, addr, &c.conn.cfg, a) }()
	}
	c.conn.travels = cfg.Local == nil
	a := c.conn.newAttempt()
	for next := a; next != nil; next = c.conn.redirected(a, a.err) {
		a = next
		d.dial(ctx, addr, &c.conn.cfg, a)
	}
	if _, err := a.result(); err != nil {
		return nil, dialError(addr, err)
	}
	c.connected(a)
	if closed := c.Closed(); closed != nil {
		return nil, dialError(addr, closed)
	}
	if err := c.conn.waitAccepted(ctx); err != nil {
		return nil, dialError(addr, err)
	}
	return c, nil
}

// waitAccepted waits until the game has admitted the client. The arrivals are kept for the first
// Step.
func (n *connection) waitAccepted(ctx context.Context) error {
	select {
	case <-n.session.Accepted():
		return nil
	case <-n.session.Closing():
	case <-ctx.Done():
		n.session.Close(netloop.CodeLeft, "")
		return context.Cause(ctx)
	}
	select {
	case <-n.session.Accepted(): // The connection has ended since; the first Step finds that.
		return nil
	default:
	}
	why, _ := n.session.Cause()
	if why.Remote {
		return &transport.Refusal{Code: why.Code, Text: why.Text}
	}
	return &why
}

// dial dials, and stores the result in the attempt.
func (d *Dialer) dial(ctx context.Context, addr string, cfg *Config, a *attempt) {
	if err := a.fetchToken(ctx); err != nil {
		a.finish(nil, nil, fmt.Errorf("the token: %w", err))
		return
	}
	if a.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.limit)
		defer cancel()
	}
	certificates, how := cfg.TLS, cfg.Transport
	if a.to != nil {
		var err error
		if addr, certificates, how, err = cfg.reach(a.to); err != nil {
			a.finish(nil, nil, err)
			return
		}
	}
	// This is the only code that differs by transport.
	switch {
	case d.local != nil:
		a.finish(d.local.Dial(ctx, a.greeting(), a.config))
		return
	case how == WebSocket:
		a.finish(d.dialSocket(ctx, addr, certificates, a))
		return
	}
	conf := quicnet.DialConfig{
		Dialer: d.d, Addr: addr, TLS: certificates, Greeting: a.greeting(), Session: a.config, Quiet: a.quiet, QUICOnly: cfg.QUICDatagrams,
	}
	if how == WebTransport {
		conf.Protocol = wtnet.Client()
	}
	a.finish(quicnet.Dial(ctx, conf))
}

// dialSocket connects over a WebSocket. The address is host:port of the server's pages, or the URL
// of the socket.
func (d *Dialer) dialSocket(ctx context.Context, addr string, certificates *tls.Config, a *attempt) (*transport.Session, *netloopv1.Welcome, error) {
	to, err := wsnet.URL(addr, quicnet.OnLoopback(addr))
	if err != nil {
		return nil, nil, err
	}
	conf := certificates.Clone()
	if conf == nil {
		if conf, err = quicnet.ClientTLS(wsnet.HostOf(to), quicnet.Trust{}); err != nil {
			return nil, nil, err
		}
		conf.ServerName = "" // The URL contains the name.
	}
	conf.NextProtos = []string{"http/1.1"}
	return d.sockets.Dial(ctx, wsnet.DialConfig{URL: to, TLS: conf, Greeting: a.greeting(), Session: a.config, Quiet: a.quiet})
}

// built lists the available transports.
var built = map[Transport]bool{QUIC: true, WebTransport: true, WebSocket: true}

// Dial connects with a new socket, which Client.Close closes.
func Dial(ctx context.Context, addr string, cfg Config) (*Client, error) {
	if cfg.Local != nil {
		return new(Dialer).Dial(ctx, addr, cfg)
	}
	d, err := NewDialer()
	if err != nil {
		return nil, err
	}
	c, err := d.Dial(ctx, addr, cfg)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	c.closer = func() { _ = d.Close() }
	return c, nil
}

// refusal returns the reason why a client was not admitted.
func refusal(err error) netloop.Closed {
	var (
		refused *transport.Refusal
		closed  *transport.Closed
	)
	switch {
	case errors.As(err, &refused):
		return netloop.Closed{Code: refused.Code, Text: refused.Text}
	case errors.As(err, &closed):
		return netloop.Closed{Code: closed.Code, Text: closed.Text}
	}
	return netloop.Closed{Code: netloop.CodeInternal, Text: err.Error()}
}

func dialError(addr string, err error) error {
	var refused *transport.Refusal
	if errors.As(err, &refused) {
		return &netloop.Refusal{Code: refused.Code, Text: refused.Text}
	}
	return fmt.Errorf("client: dialing %s: %w", addr, err)
}

// The bridge for package netlooptest: its clients have a link in memory.
func init() { //nolint:gochecknoinits // The only bridge: see package bridge.
	bridge.Client.Blind = func(c any) { c.(*Client).replica.Blind() }
	bridge.Client.Inspect = func(c any, fn func(tick any)) { c.(*Client).inspect(func(t *netloop.Tick) { fn(t) }) }
	bridge.Client.NewDialer = func(socket net.PacketConn) any { return dialerOf(quicnet.NewDialerOn(socket)) }
	bridge.Client.Break = func(c any) {
		if n := &c.(*Client).conn; n.live() && n.reconnects(netloop.CodeTimeout) {
			n.drop(netloop.Closed{Code: netloop.CodeTimeout, Text: "broken by a test"})
		}
	}
	bridge.Client.WrapStreams = func(d any, wrap func(net.Conn) net.Conn) { d.(*Dialer).sockets.Wrap = wrap }
	bridge.Client.New = func(cfg any, m bridge.Memory) (any, error) {
		c, err := newClient(cfg.(Config), m.Clock)
		if err != nil {
			return nil, err
		}
		c.conn.jitter = rand.New(rand.NewPCG(m.Seed, 0))
		c.conn.dial = func(ctx context.Context, a *attempt) { dialInMemory(ctx, m, a, a.finish) }
		c.conn.travels = m.DialTo != nil
		var first func(a *attempt)
		first = func(a *attempt) {
			dialInMemory(context.Background(), m, a, func(s *transport.Session, w *netloopv1.Welcome, err error) {
				a.finish(s, w, err)
				switch next := c.conn.redirected(a, err); {
				case next != nil:
					first(next)
				case err != nil:
					c.end(refusal(err))
				default:
					c.connected(a)
				}
			})
		}
		first(c.conn.newAttempt())
		return c, nil
	}
}

func dialInMemory(ctx context.Context, m bridge.Memory, a *attempt, done func(*transport.Session, *netloopv1.Welcome, error)) {
	if err := a.fetchToken(ctx); err != nil {
		done(nil, nil, err)
		return
	}
	if a.to != nil {
		m.DialTo(a.to.Addr, a.greeting(), a.config, done)
		return
	}
	m.Dial(a.greeting(), a.config, done)
}
