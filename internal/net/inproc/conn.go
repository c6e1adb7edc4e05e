package inproc

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

const (
	// maxStream is the number of stream bytes that may wait in one direction. Above it Write
	// blocks.
	maxStream = 64 << 10
	// maxDatagrams is the number of datagrams that may wait in one direction. Above it SendDatagram
	// blocks.
	maxDatagrams = 32
)

// conn is one end of a connection in memory. It implements driver.Conn.
type conn struct {
	in, out   *pipe
	datagrams chan []byte // datagrams for this end; like QUIC's queue, a full one blocks the sender
	peer      *conn
	state     *state
}

// state is the state that both ends share.
type state struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	closedBy *conn // the end that closed the connection first
	closed   transport.Closed
}

// pair returns both ends of a new connection.
func pair() (client, server *conn) {
	l := &state{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	up, down := newPipe(), newPipe()
	client = &conn{in: down, out: up, datagrams: make(chan []byte, maxDatagrams), state: l}
	server = &conn{in: up, out: down, datagrams: make(chan []byte, maxDatagrams), state: l, peer: client}
	client.peer = server
	return client, server
}

// Read implements driver.Conn.
func (c *conn) Read(b []byte) (int, error) { return c.in.read(b, true) }

// Peek implements driver.Conn.
func (c *conn) Peek(b []byte) (int, error) { return c.in.read(b, false) }

// Write implements driver.Conn.
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }

// CloseWrite implements driver.Conn.
func (c *conn) CloseWrite() error { c.out.end(io.EOF); return nil }

// SetReadDeadline implements driver.Conn. It has no effect: both ends are in one process, which can
// only hang as a whole.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements driver.Conn. It has no effect, see SetReadDeadline.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SendDatagram implements driver.Conn.
func (c *conn) SendDatagram(b []byte) error {
	select {
	case c.peer.datagrams <- append([]byte(nil), b...):
		return nil
	case <-c.state.ctx.Done():
		return c.Err()
	}
}

// ReceiveDatagram implements driver.Conn.
func (c *conn) ReceiveDatagram() ([]byte, error) {
	select {
	case b := <-c.datagrams:
		return b, nil
	case <-c.state.ctx.Done():
		return nil, c.Err()
	}
}

// Context implements driver.Conn.
func (c *conn) Context() context.Context { return c.state.ctx }

// Err implements driver.Conn.
func (c *conn) Err() error {
	if c.state.ctx.Err() == nil {
		return nil
	}
	why := c.Closed()
	return &why
}

// Closed implements driver.Conn.
func (c *conn) Closed() transport.Closed {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	why := c.state.closed
	why.Remote = c.state.closedBy != c
	return why
}

// Close implements driver.Conn. The reason of the first end that closes is kept.
func (c *conn) Close(code transport.Code, text string) {
	c.state.mu.Lock()
	if c.state.closedBy == nil {
		c.state.closedBy, c.state.closed = c, transport.Closed{Code: code, Text: text}
	}
	c.state.mu.Unlock()
	c.state.cancel()
	c.in.end(net.ErrClosed)
	c.out.end(net.ErrClosed)
}

// RTT implements driver.Conn.
func (*conn) RTT() time.Duration { return 0 }

// RemoteAddr implements driver.Conn.
func (*conn) RemoteAddr() net.Addr { return address{} }

// address is the common address of all clients of this process.
type address struct{}

// Network implements net.Addr.
func (address) Network() string { return "local" }

// String implements net.Addr.
func (address) String() string { return "local" }

// pipe is one direction of a stream. Any goroutine may use it.
type pipe struct {
	mu      sync.Mutex
	changed *sync.Cond
	buf     []byte
	err     error // returned once buf is empty
}

func newPipe() *pipe {
	p := new(pipe)
	p.changed = sync.NewCond(&p.mu)
	return p
}

// read waits for bytes or an error, and copies the bytes. If take is set, it also removes them.
func (p *pipe) read(b []byte, take bool) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && p.err == nil {
		p.changed.Wait()
	}
	if len(p.buf) == 0 {
		return 0, p.err
	}
	n := copy(b, p.buf)
	if take {
		p.buf = append(p.buf[:0], p.buf[n:]...)
		p.changed.Broadcast()
	}
	return n, nil
}

// write waits until buf has room.
func (p *pipe) write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && len(p.buf) > 0 && len(p.buf)+len(b) > maxStream {
		p.changed.Wait()
	}
	if p.err != nil {
		return 0, io.ErrClosedPipe
	}
	p.buf = append(p.buf, b...)
	p.changed.Broadcast()
	return len(b), nil
}

// end closes the direction with err. Only the first error is kept.
func (p *pipe) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.changed.Broadcast()
}
