package simulation

import (
	"context"
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/net/inproc"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/net/wtnet"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// The carriers of clients.
const (
	overQUIC         = "quic"
	overWebTransport = "webtransport"
	overWebSocket    = "websocket"
	inProcess        = "in-process"
)

// realClient is a client with a real carrier. All of its packets take its route.
type realClient struct {
	w      *realWorld
	c      *client.Client
	join   *joining
	link   *realLink
	route  *route
	cancel context.CancelFunc // of its dials

	udp     *quicnet.Dialer
	sockets *wsnet.Dialer
	local   *inproc.Dialer

	period, next, last time.Duration // of frames
	frozen, gone       bool
}

// frameRate is that of clients that otherwise have a frame in each tick.
const frameRate = 30

// join makes a client.
func (w *realWorld) join(cfg client.Config, e *Event) *client.Client {
	c := &realClient{w: w, join: e.Join, link: newRealLink(*e.Link, w.p.story.Seed, uint64(e.Bot)), last: w.Now()}
	c.period = time.Second / frameRate
	if e.Join.FPS > 0 {
		c.period = time.Second / time.Duration(e.Join.FPS)
	}
	c.next = c.last + c.period
	var err error
	if c.route, err = newRoute(c.link, w.server.Addr().String(), w.server.WebAddr().String()); err != nil {
		panic(err)
	}
	if c.udp, err = quicnet.NewDialer(); err != nil {
		panic(err)
	}
	c.sockets = wsnet.NewDialer()
	c.local = &inproc.Dialer{Host: bridge.Netloop.Server(w.server).Local}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	dial := func(g transport.Greeting, conf transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error)) {
		w.dials.Go(func() { c.dial(ctx, g, conf, done) })
	}
	if e.Do == vanish {
		dial = func(g transport.Greeting, conf transport.SessionConfig, _ func(*transport.Session, *netloopv1.Welcome, error)) {
			w.dials.Go(func() { c.vanish(ctx, e, g, conf) })
		}
		c.gone = true
	}
	made, err := bridge.Client.New(cfg, bridge.Memory{Clock: w.clock, Seed: w.p.story.Seed + uint64(e.Bot), Dial: dial})
	if err != nil {
		panic(err)
	}
	c.c = made.(*client.Client)
	w.clients = append(w.clients, c)
	return c.c
}

// dialTime bounds a dial, as a client's own dials are bounded.
const dialTime = 5 * time.Second

// dial connects, and lets the goroutine of the play take the result.
func (c *realClient) dial(ctx context.Context, g transport.Greeting, conf transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error)) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	s, welcome, err := c.connect(ctx, g, conf)
	c.w.posted <- func() { done(s, welcome, err) }
}

func (c *realClient) connect(ctx context.Context, g transport.Greeting, conf transport.SessionConfig) (*transport.Session, *netloopv1.Welcome, error) {
	switch c.join.Carrier {
	case overWebSocket:
		to, err := wsnet.URL(c.route.tcpAddr(), true)
		if err != nil {
			return nil, nil, err
		}
		return c.sockets.Dial(ctx, wsnet.DialConfig{URL: to, Greeting: g, Session: conf, Quiet: time.Second})
	case inProcess:
		return c.local.Dial(ctx, g, conf)
	}
	to := quicnet.DialConfig{Addr: c.route.udpAddr(), Greeting: g, Session: conf, Dialer: c.udp, Quiet: time.Second}
	if c.join.Carrier == overWebTransport {
		to.Protocol = wtnet.Client()
	}
	return quicnet.Dial(ctx, to)
}

// step runs a frame.
func (c *realClient) step() {
	now := c.w.Now()
	for c.next <= now {
		c.next += c.period
	}
	if c.frozen || c.gone {
		return
	}
	c.c.Step(now - c.last)
	c.last = now
}

// drop kills the client's program: the kernel resets its WebSocket, and the others fall silent.
func (c *realClient) drop() {
	c.gone = true
	c.link.cut(true, true)
	if c.join.Carrier == overWebSocket {
		c.route.breakAll()
	}
	if c.join.Carrier == inProcess {
		c.local.Close()
	}
}

// close ends all connections of the client.
func (c *realClient) close() {
	c.cancel()
	c.link.cut(false, false)
	c.link.stall(false)
	_ = c.udp.Close()
	c.sockets.Close()
	c.local.Close()
	c.route.close()
}
