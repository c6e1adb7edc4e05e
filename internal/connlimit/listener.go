package connlimit

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/netloop/netloop/internal/transport"
)

// Pool is a listener with at most a number of connections open. When one more comes, another one is
// closed: so no site keeps others out by holding connections.
type Pool struct {
	net.Listener
	cfg Config

	mu sync.Mutex
	// of *Conn, the longest in their state first; under mu
	quiet list.List            // no answer is made for them
	busy  list.List            // an answer is made for them
	sites map[netip.Prefix]int // how many connections each has; under mu
}

// Config says how many connections there may be.
type Config struct {
	Max     int
	PerSite int    // of one site; 0 is Max
	Closed  func() // counts the connections that were closed for others, or turned away
	// Proxy tells whether connections of an address are for others, whose site [Conn.Belongs]
	// tells: until then they are of no site. nil: no address is.
	Proxy func(net.Addr) bool
	// Welcome is asked before a connection costs anything, with the mutex held. nil: all are.
	Welcome func(net.Addr) bool
}

// Conn is a connection of a pool.
type Conn struct {
	net.Conn
	pool *Pool
	site netip.Prefix
	// at is its place in list, which is quiet or busy of the pool; nil once it has left. Both are
	// under the pool's mu.
	at   *list.Element
	list *list.List
}

// New makes a pool of what a listener accepts.
func New(ln net.Listener, cfg Config) *Pool {
	return &Pool{Listener: ln, cfg: cfg, sites: make(map[netip.Prefix]int)}
}

// Accept takes the next connection at once, and makes room for it.
func (p *Pool) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if own := p.admit(c); own != nil {
			return own, nil
		}
		_ = c.Close() // It was told nothing yet.
	}
}

// admit makes room for a connection. It returns nil if there is none to be made.
func (p *Pool) admit(c net.Conn) net.Conn {
	own := &Conn{Conn: c, pool: p}
	if p.cfg.Proxy == nil || !p.cfg.Proxy(c.RemoteAddr()) {
		own.site = siteOf(c.RemoteAddr())
	}
	gone, ok := p.enter(own)
	if gone != nil {
		_ = gone.Conn.Close() // It was told nothing, or reads too slowly.
	}
	if !ok {
		return nil
	}
	return own
}

// enter puts a connection into the pool, and takes out the connection that is closed for it.
func (p *Pool) enter(own *Conn) (gone *Conn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Welcome != nil && !p.cfg.Welcome(own.RemoteAddr()) {
		return nil, false
	}
	if p.fullLocked(own.site) || p.quiet.Len()+p.busy.Len() >= p.cfg.Max {
		p.cfg.Closed()
		if gone = p.yieldsLocked(own.site); gone == nil {
			return nil, false
		}
		gone.leaveLocked()
	}
	own.putLocked(&p.quiet)
	own.countLocked(1)
	return gone, true
}

// yieldsLocked returns the connection that is closed for one of a site, nil if there is none. It is
// the oldest quiet one of the site that has the most with the newcomer's, unless the newcomer's
// site has more. But where a site has at least two more than both, and those are busy, such as with
// answers that it does not read, its oldest busy one is closed. A site that has as many as it may
// closes a quiet one of its own.
func (p *Pool) yieldsLocked(newcomer netip.Prefix) *Conn {
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

// fullLocked tells whether a site has as many connections as it may.
func (p *Pool) fullLocked(site netip.Prefix) bool {
	return p.cfg.PerSite > 0 && p.sites[site] >= p.cfg.PerSite
}

// largestLocked returns the oldest connection of a list, among some, of the site that has the most
// with the newcomer's, and how many that are; -1 if there is no connection.
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

// putLocked puts the connection at the end of a list of the pool.
func (c *Conn) putLocked(in *list.List) { c.list, c.at = in, in.PushBack(c) }

// countLocked counts the connection for its site, if that is known, or takes it off.
func (c *Conn) countLocked(n int) {
	if !c.site.IsValid() {
		return
	}
	if c.pool.sites[c.site] += n; c.pool.sites[c.site] == 0 {
		delete(c.pool.sites, c.site)
	}
}

// leaveLocked takes the connection out of the pool, and reports false if it has left before.
func (c *Conn) leaveLocked() bool {
	if c.at == nil {
		return false
	}
	c.list.Remove(c.at)
	c.at = nil
	c.countLocked(-1)
	return true
}

// Leave takes the connection out of the pool, which bounds it no more. It reports false if the
// connection had to go meanwhile.
func (c *Conn) Leave() bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.leaveLocked()
}

// Close closes the connection, however often it is called.
func (c *Conn) Close() error {
	c.Leave()
	return c.Conn.Close()
}

// Belongs makes the connection one of the site of another address, for which a proxy asks. It
// reports false if that site has as many as it may.
func (c *Conn) Belongs(to net.Addr) bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	site := siteOf(to)
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

// Work counts the connection as busy while an answer is made for it; its result ends that.
func (c *Conn) Work() (done func()) {
	c.moveTo(&c.pool.busy)
	return func() { c.moveTo(&c.pool.quiet) }
}

// moveTo puts the connection at the end of a list, unless it has left.
func (c *Conn) moveTo(to *list.List) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.at != nil {
		c.list.Remove(c.at)
		c.putLocked(to)
	}
}

// siteOf returns the site of a peer.
func siteOf(addr net.Addr) netip.Prefix {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return transport.Site(tcp.AddrPort().Addr())
	}
	return netip.Prefix{}
}

// connKey finds the connection of a request in its context.
type connKey struct{}

// With is the ConnContext of an http.Server whose listener is a pool, with TLS around it or not.
func With(ctx context.Context, c net.Conn) context.Context {
	if around, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = around.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// Of returns the connection of a request by its context.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
