package nats

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/netloop/netloop/cluster"
)

// The connections to NATS. A lost one is made again for as long as the server runs.
const (
	reconnectWait   = 250 * time.Millisecond
	reconnectJitter = 250 * time.Millisecond
	dialTime        = 2 * time.Second // also the limit of a write
	pingInterval    = 2 * time.Second // two without an answer end a silent connection
	// The messages that wait for a subscription's goroutine: a burst of boards, or of calls to a
	// server that was frozen. Further ones are dropped; boards and calls are sent again.
	maxPending, maxPendingBytes = 8192, 32 << 20
	// newsReads is the number of times in a heartbeat that news are read.
	newsReads = 10
	// maxLogged is the number of reasons that are logged until the next connection: one for each
	// address of NATS, and some more.
	maxLogged = 16
)

// link is a connection to NATS, with the reasons of refusals. A Cluster has two: main for calls and
// the store, and news for the heartbeats and boards of other servers.
type link struct {
	c    *Cluster
	news bool
	conn *nats.Conn // set by Join

	// The callbacks of the NATS client and the heartbeats write these, with the Cluster's lock.
	connected bool
	lost      bool          // the connection was lost, or was not made, and is being made again
	lostAt    time.Duration // 0: it was never made
	refused   error         // of the newest failed attempt to connect
	// A missing permission. That of a subscription counts until the next connection, that of a
	// message until messages pass, as heartbeats repeat it.
	deniedSubscription, deniedMessage error
	deniedAt                          time.Duration
}

// connect makes a connection that may not be established yet.
func (l *link) connect() error {
	cfg := &l.c.cfg
	options := []nats.Option{
		nats.Name("netloop " + l.c.id), nats.NoEcho(), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.Timeout(dialTime), nats.FlusherTimeout(dialTime), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1),   // A message that waited would arrive late.
		nats.IgnoreAuthErrorAbort(), // A corrected password is noticed without a restart.
		nats.ConnectHandler(l.onConnect), nats.ReconnectHandler(l.onConnect),
		nats.DisconnectErrHandler(l.onDisconnect), nats.ReconnectErrHandler(l.onRefused), nats.ErrorHandler(l.onError),
	}
	if l.news {
		options = append(options, nats.SetCustomDialer(newsDialer{cfg.Beat / newsReads}))
	}
	if cfg.Credentials != "" {
		options = append(options, nats.UserCredentials(cfg.Credentials))
	}
	if cfg.NKey != "" {
		key, err := nats.NkeyOptionFromSeed(cfg.NKey)
		if err != nil {
			return fmt.Errorf("Config.NKey: %w", err)
		}
		options = append(options, key)
	}
	if cfg.TLS != nil {
		options = append(options, nats.Secure(cfg.TLS))
	}
	conn, err := nats.Connect(cfg.URL, options...)
	l.conn = conn
	return err
}

// newsDialer makes connections on which messages wait for each other: a server of a large cluster
// receives hundreds in a second, and an idle process takes most of their CPU time for its waking.
type newsDialer struct{ interval time.Duration }

func (d newsDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, dialTime)
	if err != nil {
		return nil, err
	}
	return &newsConn{Conn: conn, interval: d.interval}, nil
}

type newsConn struct {
	net.Conn
	interval time.Duration
	next     time.Time
}

// Read reads all that waits, and then no more for the interval.
func (c *newsConn) Read(b []byte) (int, error) {
	time.Sleep(time.Until(c.next))
	n, err := c.Conn.Read(b)
	if n < len(b) {
		c.next = time.Now().Add(c.interval)
	}
	return n, err
}

// subscribe calls handle with the messages of a subject.
func (l *link) subscribe(subject string, handle handler) error {
	c := l.c
	s, err := l.conn.Subscribe(c.prefix+subject, func(m *nats.Msg) {
		if err := handle(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:], m.Data, c.now()); err != nil {
			c.mu.Lock()
			c.dropped++
			c.mu.Unlock()
			c.cfg.Log.Debug("message dropped", "subject", m.Subject, "error", err)
		}
	})
	if err != nil {
		return err
	}
	return s.SetPendingLimits(maxPending, maxPendingBytes)
}

// denied returns the missing permission at present, or nil.
func (l *link) denied(now time.Duration) error {
	switch {
	case l.deniedSubscription != nil:
		return l.deniedSubscription
	case l.deniedMessage != nil && now-l.deniedAt < cluster.SuspectBeats*l.c.cfg.Beat:
		return l.deniedMessage
	}
	return nil
}

// problem returns the reason why the connection does not work, or nothing.
func (l *link) problem(now time.Duration) string {
	if denied := l.denied(now); l.connected && denied != nil {
		return denied.Error()
	} else if l.connected {
		return ""
	}
	text := fmt.Sprintf("NATS is not connected, for %v", (now - l.lostAt).Round(time.Second/10))
	if l.refused != nil {
		text += ": " + l.refused.Error()
	}
	return text
}

// busy returns ErrBusy with its reason, if it is known.
func (l *link) busy(now time.Duration) error {
	why := l.refused
	if l.connected {
		why = l.denied(now)
	}
	if why == nil {
		return cluster.ErrBusy
	}
	return fmt.Errorf("%w: %w", cluster.ErrBusy, why)
}

// away reports whether the connection is being made again. Meanwhile calls of the NATS client wait
// for each attempt, up to dialTime, also after their contexts have ended.
func (l *link) away() bool {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.lost
}

// onConnect handles a new connection.
func (l *link) onConnect(n *nats.Conn) {
	c := l.c
	c.mu.Lock()
	again := !l.news && (len(c.logged) > 0 || l.connected)
	l.connected, l.lost, l.refused, l.deniedSubscription, l.deniedMessage = true, false, nil, nil, nil
	c.logged = nil
	c.mu.Unlock()
	if again {
		c.cfg.Log.Info("connected to NATS", "url", n.ConnectedUrlRedacted())
	}
}

// onDisconnect handles the end of a connection.
func (l *link) onDisconnect(_ *nats.Conn, err error) {
	l.c.mu.Lock()
	l.connected, l.lost, l.lostAt = false, true, l.c.now()
	l.c.mu.Unlock()
	if l.c.ctx.Err() == nil { // Otherwise Close has ended it.
		l.c.warn("connection to NATS lost", err)
	}
}

// onRefused handles a failed attempt to connect.
func (l *link) onRefused(_ *nats.Conn, err error) {
	if err == nil {
		return
	}
	err = explain(err)
	l.c.mu.Lock()
	l.connected, l.lost, l.refused = false, true, err
	l.c.mu.Unlock()
	l.c.warn("NATS is not connected", err)
}

// onError handles an error of a connection that continues.
func (l *link) onError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		l.c.cfg.Log.Debug("NATS", "error", err)
		return
	}
	err = explain(err)
	l.c.mu.Lock()
	if strings.Contains(strings.ToLower(err.Error()), "for subscription") {
		l.deniedSubscription = err
	} else {
		l.deniedMessage, l.deniedAt = err, l.c.now()
	}
	l.c.mu.Unlock()
	l.c.warn("NATS refuses a message or a subscription", err)
}

// pollRefusal reads the reason of a failed attempt to connect that the NATS client reports by no
// callback. It may wait for an attempt under way, so the heartbeats call it for main alone: they do
// not wait for news.
func (l *link) pollRefusal() {
	l.c.mu.Lock()
	connected := l.connected
	l.c.mu.Unlock()
	if !connected && !l.conn.IsConnected() {
		l.onRefused(l.conn, l.conn.LastError())
	}
}

// warn logs a reason, once until the next connection.
func (c *Cluster) warn(text string, err error) {
	line := text + ": " + withoutPort(err)
	c.mu.Lock()
	known := slices.Contains(c.logged, line) || len(c.logged) == maxLogged
	if !known {
		c.logged = append(c.logged, line)
	}
	c.mu.Unlock()
	if !known {
		c.cfg.Log.Warn(text, "error", err)
	}
}
