package client

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/transport/quicnet"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Dialer lets many clients of a process share one UDP socket, as load tests
// want. Its methods may be called from any goroutine.
type Dialer struct{ d *quicnet.Dialer }

// NewDialer opens a UDP socket on a free port.
func NewDialer() (*Dialer, error) {
	d, err := quicnet.NewDialer()
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &Dialer{d}, nil
}

// Close ends every connection that the Dialer made, and returns when all of
// their goroutines have ended.
func (d *Dialer) Close() error { return d.d.Close() }

// Dial connects to a server at addr, host:port, and joins its room. A
// *netloop.Refusal says why the server did not let the client in, or in what a
// server of another build does not fit: it has CodeSchemaMismatch and names the
// class or method, the field, and both types.
func (d *Dialer) Dial(ctx context.Context, addr string, cfg Config) (*Client, error) {
	c, err := newClient(cfg, systemClock())
	if err != nil {
		return nil, err
	}
	greeting, err := c.greeting()
	if err != nil {
		return nil, err
	}
	s, welcome, err := quicnet.Dial(ctx, quicnet.DialConfig{Dialer: d.d, Addr: addr, TLS: cfg.TLS, Greeting: greeting, Session: c.sessionConfig()})
	if err != nil {
		return nil, dialError(addr, err)
	}
	c.connected(s, welcome)
	if closed := c.Closed(); closed != nil {
		return nil, dialError(addr, closed)
	}
	return c, nil
}

// Dial connects with a socket of the client's own, which Close closes.
func Dial(ctx context.Context, addr string, cfg Config) (*Client, error) {
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

func dialError(addr string, err error) error {
	var refused *transport.Refusal
	if errors.As(err, &refused) {
		return &netloop.Refusal{Code: refused.Code, Text: refused.Text}
	}
	return fmt.Errorf("client: dialing %s: %w", addr, err)
}

// The door for package netlooptest, whose clients have a link in memory.
func init() { //nolint:gochecknoinits // The one door: see package inside.
	inside.Client.Inspect = func(c any, fn func(tick any)) { c.(*Client).inspect(fn) }
	inside.Client.NewDialer = func(socket net.PacketConn) any { return &Dialer{quicnet.NewDialerOn(socket)} }
	inside.Client.New = func(cfg any, clock inside.Clock) (inside.MemoryClient, error) {
		c, err := newClient(cfg.(Config), clock)
		if err != nil {
			return inside.MemoryClient{}, err
		}
		greeting, err := c.greeting()
		return inside.MemoryClient{
			Client: c, Greeting: greeting, Session: c.sessionConfig(),
			Connected: func(s *transport.Session, w *netloopv1.Welcome, err error) {
				if err != nil {
					var refused *transport.Refusal
					if errors.As(err, &refused) {
						c.end(netloop.Closed{Code: refused.Code, Text: refused.Text})
						return
					}
					c.end(netloop.Closed{Code: netloop.CodeInternal, Text: err.Error()})
					return
				}
				c.connected(s, w)
			},
		}, err
	}
}
