package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/netloop/netloop/cluster"
)

// access is the state of the connection to NATS, with the reasons of refusals. The callbacks of the
// NATS client and the heartbeats write it, with the lock.
type access struct {
	connected bool
	lost      bool  // the connection was lost, or was not made, and is being made again
	refused   error // of the newest failed attempt to connect
	// A missing permission. That of a subscription counts until the next connection, that of a
	// message until messages pass, as heartbeats repeat it.
	deniedSubscription, deniedMessage error
	deniedAt                          time.Duration
	logged                            []string // reasons since the newest connection
}

// maxLogged is the number of reasons that are logged until the next connection: one for each
// address of NATS, and some more.
const maxLogged = 16

// denied returns the missing permission at present, or nil.
func (a *access) denied(now, beat time.Duration) error {
	switch {
	case a.deniedSubscription != nil:
		return a.deniedSubscription
	case a.deniedMessage != nil && now-a.deniedAt < cluster.SuspectBeats*beat:
		return a.deniedMessage
	}
	return nil
}

// busy returns ErrBusy with its reason, if it is known.
func (a *access) busy(now, beat time.Duration) error {
	why := a.refused
	if a.connected {
		why = a.denied(now, beat)
	}
	if why == nil {
		return cluster.ErrBusy
	}
	return fmt.Errorf("%w: %w", cluster.ErrBusy, why)
}

// away reports whether the connection is being made again. Meanwhile calls of the NATS client wait
// for each attempt, up to dialTime, also after their contexts have ended.
func (c *Cluster) away() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.access.lost
}

// onConnect handles a new connection.
func (c *Cluster) onConnect(n *nats.Conn) {
	c.mu.Lock()
	again := len(c.access.logged) > 0 || c.access.connected
	c.access = access{connected: true}
	c.mu.Unlock()
	if again {
		c.cfg.Log.Info("connected to NATS", "url", n.ConnectedUrlRedacted())
	}
}

// onDisconnect handles the end of a connection.
func (c *Cluster) onDisconnect(_ *nats.Conn, err error) {
	c.mu.Lock()
	c.access.connected, c.access.lost = false, true
	c.mu.Unlock()
	if c.ctx.Err() == nil { // Otherwise Close has ended it.
		c.warn("connection to NATS lost", err)
	}
}

// onRefused handles a failed attempt to connect.
func (c *Cluster) onRefused(_ *nats.Conn, err error) {
	if err == nil {
		return
	}
	err = explain(err)
	c.mu.Lock()
	c.access.connected, c.access.lost, c.access.refused = false, true, err
	c.mu.Unlock()
	c.warn("NATS is not connected", err)
}

// onError handles an error of a connection that continues.
func (c *Cluster) onError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		c.cfg.Log.Debug("NATS", "error", err)
		return
	}
	err = explain(err)
	c.mu.Lock()
	if strings.Contains(strings.ToLower(err.Error()), "for subscription") {
		c.access.deniedSubscription = err
	} else {
		c.access.deniedMessage, c.access.deniedAt = err, c.now()
	}
	c.mu.Unlock()
	c.warn("NATS refuses a message or a subscription", err)
}

// warn logs a reason, once until the next connection.
func (c *Cluster) warn(text string, err error) {
	line := text + ": " + withoutPort(err)
	c.mu.Lock()
	known := slices.Contains(c.access.logged, line) || len(c.access.logged) == maxLogged
	if !known {
		c.access.logged = append(c.access.logged, line)
	}
	c.mu.Unlock()
	if !known {
		c.cfg.Log.Warn(text, "error", err)
	}
}

// withoutPort returns the text of an error without the local port of its connection, which differs
// in each attempt.
func withoutPort(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Sprint(op.Op, " ", op.Addr, ": ", op.Err)
	}
	return err.Error()
}

// pollRefusal reads the reason of a failed attempt to connect that the NATS client reports by no
// callback. It may wait for an attempt under way.
func (c *Cluster) pollRefusal() {
	c.mu.Lock()
	connected := c.access.connected
	c.mu.Unlock()
	if !connected && !c.conn.IsConnected() {
		c.onRefused(c.conn, c.conn.LastError())
	}
}

// explain adds the remedy to an error of the connection.
func explain(err error) error {
	is := func(any ...error) bool {
		return slices.ContainsFunc(any, func(e error) bool { return errors.Is(err, e) })
	}
	says := func(text string) bool { return strings.Contains(err.Error(), text) }
	for _, known := range []struct {
		remedy string
		found  bool
	}{
		{"NATS refuses the credentials, because they have expired: make new ones", is(nats.ErrAuthExpired, nats.ErrAccountAuthExpired)},
		{"NATS refuses the credentials, because they were revoked: make new ones", is(nats.ErrAuthRevoked)},
		{"NATS refuses the credentials: check the user and password or the token of the URL, or the file of the key", is(nats.ErrAuthorization)},
		{"the user of NATS lacks a permission: docs/SCALING.md lists all", is(nats.ErrPermissionViolation)},
		{"NATS requires TLS: use a URL with tls://", is(nats.ErrSecureConnRequired)},
		{"NATS offers no TLS: use a URL with nats://, and no CA", is(nats.ErrSecureConnWanted) || isType[tls.RecordHeaderError](err)},
		{"the certificate of NATS is signed by an unknown authority: name the file of its CA", isType[x509.UnknownAuthorityError](err)},
		{"the certificate of NATS is for other names: use one of them in the URL, or another certificate", isType[x509.HostnameError](err)},
		{"the certificate of NATS is not valid", isType[x509.CertificateInvalidError](err)},
		{"NATS requires a certificate of the server: set one in Config.TLS", says("certificate required") || says("bad certificate")},
	} {
		if known.found {
			return fmt.Errorf("%s: %w", known.remedy, err)
		}
	}
	return err
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
