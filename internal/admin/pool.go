package admin

import (
	"container/list"
	"context"
	"net"
	"sync"
)

// pool is a listener with at most a number of connections open. When one more comes, the one
// that has been quiet for longest has to go, whether it ever said something or not: so nobody
// keeps a probe out by holding connections.
type pool struct {
	net.Listener
	max    int
	closed func() // counts the connections that had to go

	mu    sync.Mutex
	quiet list.List // of *conn: those that no page is made for, the longest first; under mu
	busy  int       // under mu
}

// conn is a connection of a pool.
type conn struct {
	net.Conn
	pool *pool
	// at is where it stands among the quiet ones, nil while a page is made for it, or once it is
	// closed; under the pool's mu.
	at   *list.Element
	gone bool // under the pool's mu
}

func newPool(ln net.Listener, limit int, closed func()) *pool {
	return &pool{Listener: ln, max: limit, closed: closed}
}

// Accept takes the next connection at once, and makes room for it.
func (p *pool) Accept() (net.Conn, error) {
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

// admit makes room for a connection. It returns nil if pages are made for all that there are.
func (p *pool) admit(c net.Conn) net.Conn {
	p.mu.Lock()
	var oldest *conn
	if p.quiet.Len()+p.busy >= p.max {
		p.closed()
		if p.quiet.Len() == 0 {
			p.mu.Unlock()
			return nil
		}
		oldest = p.quiet.Front().Value.(*conn)
		oldest.leaveLocked()
	}
	own := &conn{Conn: c, pool: p}
	own.at = p.quiet.PushBack(own)
	p.mu.Unlock()
	if oldest != nil {
		_ = oldest.Conn.Close() // It was quiet.
	}
	return own
}

// leaveLocked takes the connection out of the pool.
func (c *conn) leaveLocked() {
	switch {
	case c.gone:
		return
	case c.at != nil:
		c.pool.quiet.Remove(c.at)
		c.at = nil
	default:
		c.pool.busy--
	}
	c.gone = true
}

// Close closes the connection, however often it is called.
func (c *conn) Close() error {
	c.pool.mu.Lock()
	c.leaveLocked()
	c.pool.mu.Unlock()
	return c.Conn.Close()
}

// work keeps the connection while a page is made for it; its result ends that.
func (c *conn) work() (done func()) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.at == nil {
		return func() {} // It had to go as the question came.
	}
	c.pool.quiet.Remove(c.at)
	c.at = nil
	c.pool.busy++
	return func() {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		if !c.gone {
			c.pool.busy--
			c.at = c.pool.quiet.PushBack(c)
		}
	}
}

// connKey finds the connection of a request in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
