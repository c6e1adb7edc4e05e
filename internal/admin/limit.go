package admin

import (
	"net"
	"sync"
)

// limited is a listener with at most a number of connections open. Accept waits for one to
// close; what comes meanwhile waits in the kernel's backlog.
type limited struct {
	net.Listener
	slots  chan struct{} // a semaphore: as many as there may be connections
	closed chan struct{}
	once   sync.Once
}

func newLimited(ln net.Listener, n int) *limited {
	return &limited{Listener: ln, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// slotConn gives its place back when it is closed, however often that is.
type slotConn struct {
	net.Conn
	free func()
}

func (c *slotConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
