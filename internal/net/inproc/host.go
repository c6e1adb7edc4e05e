package inproc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Host is the server's end of all connections in memory. Any goroutine may use it.
type Host struct {
	// Handler admits clients, within AdmitTimeout.
	Handler      transport.Handler
	AdmitTimeout time.Duration
	Clock        func() time.Duration
	Stats        *transport.Stats

	chunks driver.Chunks
	wait   sync.WaitGroup // the goroutines of serve; Add is called with mu held and closed false

	mu     sync.Mutex
	closed bool
	conns  map[*conn]struct{}
}

// errClosed is the error of a dial to a closed server.
var errClosed = transport.Refuse(transport.CodeClosing, "the server is closing")

// open starts to serve a new connection and returns the client's end.
func (h *Host) open() (*conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	client, server := pair()
	if h.conns == nil {
		h.conns = map[*conn]struct{}{}
	}
	h.conns[server] = struct{}{}
	h.wait.Go(func() {
		h.serve(server)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.conns, server)
	})
	return client, nil
}

// Close refuses further clients and returns when all connections have ended. When ctx ends it
// closes the remaining connections.
func (h *Host) Close(ctx context.Context) {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for c := range h.conns {
			c.Close(transport.CodeClosing, "")
		}
	})
	defer stop()
	driver.WaitUntil(ctx, h.wait.Wait) // It abandons an admission that ignores its context.
}

// serve runs one connection from its handshake to its end.
func (h *Host) serve(c *conn) {
	a, err := h.handshake(c)
	if err != nil {
		r, _ := transport.Declined(err)
		h.Stats.Refused.Add(1)
		_, _ = c.Write(transport.AppendRefused(nil, r)) // The close repeats it.
		c.Close(r.Code, r.Text)
		return
	}
	if a.Session.Clock == nil {
		a.Session.Clock = h.Clock
	}
	if a.Session.Stats == nil {
		a.Session.Stats = h.Stats
	}
	session, link := transport.NewSession(a.Session)
	link.Transport = "memory"
	h.letMove(c, link, a.Who)
	_ = link.Welcome(a.Welcome) // Its error ends the session.
	a.Joined(session)           // Even after an error: each client ends with the arrival Gone.
	link.End(driver.Run(driver.Config{Conn: c, Link: link, Clock: a.Session.Clock, Chunks: &h.chunks, Peer: c.RemoteAddr()}))
}

// letMove lets a client move to another room over the same connection.
func (h *Host) letMove(c *conn, link *transport.Link, who any) {
	link.LetMove(transport.Moves{
		Admit: func(hello *netloopv1.Hello, known bool) (*transport.Admitted, error) {
			ctx := c.Context()
			if known {
				ctx = transport.WithWho(ctx, who)
			}
			a, err := h.admit(ctx, c, hello)
			if err != nil {
				h.Stats.Refused.Add(1)
				return nil, err
			}
			who = a.Who
			return a, nil
		},
		Later: func(fn func()) {
			wait, cancel := context.WithTimeout(context.Background(), moveTime)
			context.AfterFunc(wait, func() { defer cancel(); fn() })
		},
	})
}

// moveTime bounds the time until a moving client sends its hello for the new room.
const moveTime = 5 * time.Second

// handshake reads the client's hello and asks the handler.
func (h *Host) handshake(c *conn) (*transport.Admitted, error) {
	r := transport.Reception{Handler: h.Handler, Stats: h.Stats}
	for {
		frame, err := transport.ReadFrame(c, transport.MaxHandshake)
		if err != nil {
			return nil, transport.Refuse(transport.CodeProtocol, "no hello")
		}
		answer, hello, err := r.Take(frame)
		if err != nil {
			return nil, err
		}
		if hello != nil {
			return h.admit(c.Context(), c, hello)
		}
		_, _ = c.Write(answer) // After a failed write the next read fails.
	}
}

// admit asks the handler. A panic in it is returned as an error.
func (h *Host) admit(ctx context.Context, c *conn, hello *netloopv1.Hello) (a *transport.Admitted, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.AdmitTimeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			a, err = nil, fmt.Errorf("inproc: the handler panicked: %v\n%s", v, debug.Stack())
		}
	}()
	a, err = h.Handler.Admit(ctx, hello, c.RemoteAddr().String())
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = transport.Refuse(transport.CodeTimeout, "admission timed out")
	}
	return a, err
}

// Dialer connects clients to a Host of the same process. Any goroutine may use it.
type Dialer struct {
	Host *Host

	chunks driver.Chunks
	wait   sync.WaitGroup // the links' goroutines; Add is called with mu held and closed false

	mu     sync.Mutex
	closed bool
	links  map[*transport.Link]struct{}
}

// Close ends the dialer's connections and returns when all of their goroutines have ended.
func (d *Dialer) Close() {
	d.mu.Lock()
	d.closed = true
	for l := range d.links {
		l.Shutdown(transport.CodeLeft, "")
	}
	d.mu.Unlock()
	d.wait.Wait()
}

// Dial connects to the host. A refusal is a *transport.Refusal.
func (d *Dialer) Dial(ctx context.Context, g transport.Greeting, cfg transport.SessionConfig) (*transport.Session, *netloopv1.Welcome, error) {
	hello, err := g.Open(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("hello: %w", err)
	}
	c, err := d.Host.open()
	if err != nil {
		return nil, nil, err
	}
	welcome, err := driver.Greet(ctx, c, &g, hello, driver.DefaultTablesTimeout)
	if err != nil {
		return nil, nil, err
	}
	cfg.Client, cfg.ID = true, welcome.GetClientId()
	session, link := transport.NewSession(cfg)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		c.Close(transport.CodeLeft, "")
	}
	if d.links == nil {
		d.links = map[*transport.Link]struct{}{}
	}
	d.links[link] = struct{}{}
	d.wait.Go(func() {
		link.End(driver.Run(driver.Config{Conn: c, Link: link, Clock: cfg.Clock, Chunks: &d.chunks}))
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.links, link)
	})
	return session, welcome, nil
}
