package connlimit

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/netloop/netloop/internal/net/endpoint"
)

// Pool is a listener with a bounded number of open connections. When it is full it closes an open
// connection for a new one, so that no site can keep out others by keeping connections open.
type Pool struct {
	net.Listener
	cfg Config

	mu sync.Mutex
	// lists of *Conn, the connection with the longest time in its state first; under mu
	quiet list.List            // without a request being answered
	busy  list.List            // with a request being answered
	sites map[netip.Prefix]int // number of connections of each site; under mu
}

// Config holds the bounds of a Pool.
type Config struct {
	Max     int
	PerSite int    // connections of one site; 0: Max
	Evicted func() // counts the connections that were closed or refused because the pool was full
	// Proxy reports whether an address is the address of a proxy. Connections of a proxy have no
	// site until [Conn.SetSite] sets it. nil: there are no proxies.
	Proxy func(net.Addr) bool
	// Allow is called for each new connection, with the mutex held, and reports whether to accept
	// it. nil: all are accepted.
	Allow func(net.Addr) bool
}

// Conn is a connection of a pool.
type Conn struct {
	net.Conn
	pool *Pool
	site netip.Prefix
	// at is the connection's element of list, and list is the pool's quiet or busy list; at is nil
	// after Detach. Both are under the pool's mu.
	at   *list.Element
	list *list.List
}

// New returns a Pool of the connections that a listener accepts.
func New(ln net.Listener, cfg Config) *Pool {
	return &Pool{Listener: ln, cfg: cfg, sites: make(map[netip.Prefix]int)}
}

// Accept returns the next connection that the pool admits. If the pool is full, it closes another
// connection, or the new one.
func (p *Pool) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if own := p.admit(c); own != nil {
			return own, nil
		}
		_ = c.Close() // It gets no answer.
	}
}

// admit adds a connection to the pool, and closes another one if the pool is full. It returns nil
// if Allow refuses the connection, or if no other connection is to be closed for it.
func (p *Pool) admit(c net.Conn) net.Conn {
	own := &Conn{Conn: c, pool: p}
	if p.cfg.Proxy == nil || !p.cfg.Proxy(c.RemoteAddr()) {
		own.site = endpoint.SiteOf(c.RemoteAddr())
	}
	gone, ok := p.enter(own)
	if gone != nil {
		_ = gone.Conn.Close() // The closed connection has no request, or reads too slowly.
	}
	if !ok {
		return nil
	}
	return own
}

// enter adds a connection to the pool, and reports whether it did. If the pool is full it removes
// another connection, gone, which the caller closes.
func (p *Pool) enter(own *Conn) (gone *Conn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Allow != nil && !p.cfg.Allow(own.RemoteAddr()) {
		return nil, false
	}
	if p.fullLocked(own.site) || p.quiet.Len()+p.busy.Len() >= p.cfg.Max {
		p.cfg.Evicted()
		if gone = p.victimLocked(own.site); gone == nil {
			return nil, false
		}
		gone.detachLocked()
	}
	own.putLocked(&p.quiet)
	own.countLocked(1)
	return gone, true
}

// victimLocked returns the connection to close for a new connection of the site newcomer, or nil.
// If newcomer has PerSite connections, it is the oldest quiet connection of newcomer. Otherwise
// the sites are compared by their connections, the new one included. Usually the result is the
// oldest quiet connection of the largest site that has a quiet one, or nil if newcomer is larger
// than that site. But if a site with busy connections, for example with unread answers, has at
// least two more connections than both, the result is the oldest busy connection of that site.
func (p *Pool) victimLocked(newcomer netip.Prefix) *Conn {
	own := p.sites[newcomer]
	if p.fullLocked(newcomer) {
		quiet, _ := p.largestLocked(&p.quiet, newcomer, func(c *Conn) bool { return c.site == newcomer })
		return quiet
	}
	all := func(*Conn) bool { return true }
	quiet, most := p.largestLocked(&p.quiet, newcomer, all)
	busy, larger := p.largestLocked(&p.busy, newcomer, all)
	switch {
	case larger > max(most, own)+1:
		return busy
	case own > most:
		return nil
	}
	return quiet
}

// fullLocked reports whether a site has PerSite connections.
func (p *Pool) fullLocked(site netip.Prefix) bool {
	return p.cfg.PerSite > 0 && p.sites[site] >= p.cfg.PerSite
}

// largestLocked considers the connections in a list for which among is true. It returns the oldest
// connection of the site with the most connections in the pool, including the new one, and that
// number, or nil and -1 if there is none.
func (p *Pool) largestLocked(in *list.List, newcomer netip.Prefix, among func(*Conn) bool) (oldest *Conn, most int) {
	most = -1
	for e := in.Front(); e != nil; e = e.Next() {
		c := e.Value.(*Conn)
		n := p.sites[c.site]
		if c.site == newcomer {
			n++
		}
		if n > most && among(c) {
			oldest, most = c, n
		}
	}
	return oldest, most
}

// putLocked appends the connection to a list of the pool.
func (c *Conn) putLocked(in *list.List) { c.list, c.at = in, in.PushBack(c) }

// countLocked adds n to the connections of the connection's site, if the site is known.
func (c *Conn) countLocked(n int) {
	if !c.site.IsValid() {
		return
	}
	if c.pool.sites[c.site] += n; c.pool.sites[c.site] == 0 {
		delete(c.pool.sites, c.site)
	}
}

// detachLocked removes the connection from the pool, and reports false if it was removed before.
func (c *Conn) detachLocked() bool {
	if c.at == nil {
		return false
	}
	c.list.Remove(c.at)
	c.at = nil
	c.countLocked(-1)
	return true
}

// Detach removes the connection from the pool, which no longer bounds it. It reports false if the
// pool has closed the connection meanwhile.
func (c *Conn) Detach() bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.detachLocked()
}

// Close closes the connection. It may be called again.
func (c *Conn) Close() error {
	c.Detach()
	return c.Conn.Close()
}

// SetSite sets the site of a proxy's connection to the site of the client's address. It reports
// false if that site has PerSite connections.
func (c *Conn) SetSite(to net.Addr) bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	site := endpoint.SiteOf(to)
	if site == c.site || c.at == nil {
		return true
	}
	if c.pool.fullLocked(site) {
		return false
	}
	c.countLocked(-1)
	c.site = site
	c.countLocked(1)
	return true
}

// Busy marks the connection as busy while a request is answered, until done is called.
func (c *Conn) Busy() (done func()) {
	c.moveTo(&c.pool.busy)
	return func() { c.moveTo(&c.pool.quiet) }
}

// moveTo moves the connection to the end of a list, unless it was removed.
func (c *Conn) moveTo(to *list.List) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.at != nil {
		c.list.Remove(c.at)
		c.putLocked(to)
	}
}

// connKey is the context key of a request's connection.
type connKey struct{}

// WithConn is the ConnContext of an http.Server that listens on a Pool, with or without TLS.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if around, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = around.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// FromContext returns the connection of a request from its context.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
