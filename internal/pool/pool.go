package pool

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/netloop/netloop/internal/transport"
)

// Pool is a listener with at most a number of connections open. When one more comes, one that is
// quiet has to go, whether it ever said something or not: so nobody keeps others out by holding
// connections.
type Pool struct {
	net.Listener
	cfg Config

	mu sync.Mutex
	// of *Conn: those that no answer is made for, the longest first; under mu
	quiet list.List
	sites map[netip.Prefix]int // how many connections each has; under mu
	open  int                  // under mu
}

// Config says how many connections there may be.
type Config struct {
	Max    int
	Closed func() // counts the connections that had to go
	// Welcome is asked before a connection costs anything, with the mutex held. nil: all are.
	Welcome func(net.Addr) bool
}

// Conn is a connection of a pool.
type Conn struct {
	net.Conn
	pool *Pool
	site netip.Prefix
	// at is where it stands among the quiet ones, nil while an answer is made for it, or once it
	// has left; under the pool's mu.
	at   *list.Element
	left bool // under the pool's mu
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
	own := &Conn{Conn: c, pool: p, site: siteOf(c.RemoteAddr())}
	gone, ok := p.enter(own)
	if gone != nil {
		_ = gone.Conn.Close() // It was quiet.
	}
	if !ok {
		return nil
	}
	return own
}

// enter puts a connection into the pool, and takes out who has to go for it.
func (p *Pool) enter(own *Conn) (gone *Conn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Welcome != nil && !p.cfg.Welcome(own.RemoteAddr()) {
		return nil, false
	}
	if p.open >= p.cfg.Max {
		p.cfg.Closed()
		if gone = p.yieldsLocked(own.site); gone == nil {
			return nil, false
		}
		gone.leaveLocked()
	}
	own.at = p.quiet.PushBack(own)
	p.sites[own.site]++
	p.open++
	return gone, true
}

// yieldsLocked returns the connection that goes for one of a site: of those that are quiet the
// oldest of the site that has the most. It returns nil if the newcomer's site has more than that.
func (p *Pool) yieldsLocked(newcomer netip.Prefix) (gone *Conn) {
	most := 0
	for e := p.quiet.Front(); e != nil; e = e.Next() {
		c := e.Value.(*Conn)
		n := p.sites[c.site]
		if c.site == newcomer {
			n++
		}
		if n > most {
			gone, most = c, n
		}
	}
	if p.sites[newcomer] > most {
		return nil
	}
	return gone
}

// leaveLocked takes the connection out of the pool.
func (c *Conn) leaveLocked() {
	if c.left {
		return
	}
	if c.at != nil {
		c.pool.quiet.Remove(c.at)
		c.at = nil
	}
	if c.pool.sites[c.site]--; c.pool.sites[c.site] == 0 {
		delete(c.pool.sites, c.site)
	}
	c.pool.open--
	c.left = true
}

// Leave takes the connection out of the pool, which bounds it no more. It reports false if the
// connection had to go meanwhile.
func (c *Conn) Leave() bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	stayed := !c.left
	c.leaveLocked()
	return stayed
}

// Close closes the connection, however often it is called.
func (c *Conn) Close() error {
	c.Leave()
	return c.Conn.Close()
}

// Work keeps the connection while an answer is made for it; its result ends that.
func (c *Conn) Work() (done func()) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.at == nil {
		return func() {} // It had to go as the question came.
	}
	c.pool.quiet.Remove(c.at)
	c.at = nil
	return func() {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		if !c.left {
			c.at = c.pool.quiet.PushBack(c)
		}
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
