package wsnet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Dialer is shared by any number of clients, so that all are closed together.
type Dialer struct {
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	links  sync.WaitGroup
	chunks driver.Chunks
	// Wrap replaces each TCP connection, if it is not nil. It is set before the first dial.
	Wrap func(net.Conn) net.Conn

	mu     sync.Mutex // orders links.Add before links.Wait
	closed bool
}

// NewDialer returns an open dialer.
func NewDialer() *Dialer {
	d := new(Dialer)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Close ends every connection with CodeLeft and waits for their goroutines.
func (d *Dialer) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.links.Wait()
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
	URL      string      // made by URL
	TLS      *tls.Config // for wss
	Greeting transport.Greeting
	// TablesTimeout bounds the time from the first part of the server's tables to the last; 0: 5 s.
	TablesTimeout time.Duration
	// Session needs an Inbox; Dial sets Client and ID, and a clock if there is none.
	Session transport.SessionConfig
	// Quiet bounds the time to connect the socket; 0 means that only the dial's own limit applies.
	Quiet time.Duration
}

// URL completes the address of a server's pages, host:port, or the URL of its WebSocket. For an
// address without a scheme it uses TLS, unless the address is local, where a server's pages have no
// TLS by default.
func URL(addr string, local bool) (string, error) {
	if !strings.Contains(addr, "://") {
		scheme := "wss://"
		if local {
			scheme = "ws://"
		}
		addr = scheme + addr
	}
	u, err := url.Parse(addr)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" {
		return "", fmt.Errorf("address %q: use host:port of the server's pages, or ws://host:port or wss://host:port", addr)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = endpoint.Path
	}
	return u.String(), nil
}

// HostOf returns the host and port of a URL made by URL.
func HostOf(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return ""
	case u.Port() != "":
		return u.Host
	case u.Scheme == "ws":
		return net.JoinHostPort(u.Hostname(), "80")
	}
	return net.JoinHostPort(u.Hostname(), "443")
}

// Dial connects and waits for the server's answer. A refusal is the error *transport.Refusal; ctx
// bounds all of it.
func (d *Dialer) Dial(ctx context.Context, cfg DialConfig) (*transport.Session, *netloopv1.Welcome, error) {
	hello, err := cfg.Greeting.Open(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("hello: %w", err)
	}
	if err := d.enter(); err != nil {
		return nil, nil, err
	}
	session, welcome, err := d.dial(ctx, cfg, hello)
	if err != nil {
		d.links.Done()
		return nil, nil, dialError(ctx, err)
	}
	return session, welcome, nil
}

// dial connects, performs the handshake and starts the link.
func (d *Dialer) dial(ctx context.Context, cfg DialConfig, hello []byte) (*transport.Session, *netloopv1.Welcome, error) {
	c, err := driver.Retry(ctx, func() (*Conn, error) { return d.connect(ctx, &cfg) }, refusedAtOnce)
	if err != nil {
		return nil, nil, err
	}
	welcome, err := driver.Greet(ctx, c, &cfg.Greeting, hello, cmp.Or(cfg.TablesTimeout, driver.DefaultTablesTimeout))
	if err != nil {
		return nil, nil, err
	}
	cfg.Session.Client, cfg.Session.ID = true, welcome.ClientId
	if cfg.Session.Clock == nil {
		cfg.Session.Clock = func() time.Duration { return time.Since(c.began) }
	}
	session, link := transport.NewSession(cfg.Session)
	go func() {
		stop := context.AfterFunc(d.ctx, func() { link.Shutdown(transport.CodeLeft, "") })
		end := driver.Run(driver.Config{Conn: c, Link: link, Clock: cfg.Session.Clock, Chunks: &d.chunks})
		stop()
		link.End(end)
		d.links.Done()
	}()
	return session, welcome, nil
}

// errBusy is the error of a dial that the server answers with the HTTP status 503.
var errBusy = errors.New("server accepts no clients now")

func refusedAtOnce(err error) bool { return errors.Is(err, errBusy) }

// connect opens a WebSocket.
func (d *Dialer) connect(ctx context.Context, cfg *DialConfig) (*Conn, error) {
	var c *Conn
	dial := &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: cfg.TLS,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			socket, err := (&net.Dialer{Timeout: cfg.Quiet}).DialContext(ctx, network, addr)
			if err == nil {
				c = newConn(socket)
				if d.Wrap != nil {
					socket = d.Wrap(socket)
				}
			}
			return socket, err
		},
	}
	//nolint:bodyclose // The library closes it.
	ws, resp, err := websocket.Dial(ctx, cfg.URL, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: dial}, Subprotocols: []string{Protocol},
		OnPingReceived: func(context.Context, []byte) bool { return c.controlled() },
	})
	switch {
	case err != nil && resp != nil && resp.StatusCode == http.StatusServiceUnavailable:
		return nil, errBusy
	case err != nil && resp != nil:
		return nil, fmt.Errorf("%s is not a netloop WebSocket: %s", cfg.URL, resp.Status)
	case err != nil:
		return nil, err
	}
	c.open(ws)
	return c, nil
}

// dialError converts the error of a failed dial: a *transport.Refusal if the server sent one. The
// caller adds the address.
func dialError(ctx context.Context, err error) error {
	var closed *transport.Closed
	var said websocket.CloseError
	switch {
	case refusedAtOnce(err):
		return transport.Refuse(transport.CodeBusy, "server accepts no clients now: it is full or overloaded, or has too many new connections")
	case errors.As(err, &closed) && closed.Remote:
		return &transport.Refusal{Code: closed.Code, Text: closed.Text}
	case errors.As(err, &said):
		c := closedBy(err)
		return &transport.Refusal{Code: c.Code, Text: c.Text}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer in time: %w", context.Cause(ctx))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}
