package netem

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

const (
	// maxPacket is longer than every datagram that QUIC reads or sends.
	maxPacket = 2 << 10
	// lingerTimeout bounds the time for which Close waits for sent datagrams to arrive, so that a
	// delayed close frame still arrives.
	lingerTimeout = time.Second
	// forever is longer than any wait.
	forever = time.Hour
)

// Conn is a UDP socket behind an emulated network. One goroutine may read from it, and any
// number may call its other methods. It has two goroutines of its own until Close.
type Conn struct {
	open      func() (net.PacketConn, error) // nil: the socket is never replaced
	start     time.Time
	receivers sync.WaitGroup

	received, toSend chan struct{} // size 1: signals a new datagram or state
	closing          chan struct{} // closed by Close
	sent             chan struct{} // closed when send has ended

	mu       sync.Mutex
	exchange *Exchange
	socket   net.PacketConn
	buffer   int       // size in bytes of the socket's receive buffer in the kernel; 0: the default
	failed   error     // of the socket
	deadline time.Time // of ReadFrom
	closed   bool
}

var _ net.PacketConn = (*Conn)(nil)

// Listen puts a network in front of a server's socket, which then belongs to the Conn. The server
// receives datagrams from its clients' own addresses, and after a rebind from another port.
func Listen(socket net.PacketConn, cfg Config) *Conn {
	cfg.Client = false
	return newConn(socket, nil, cfg)
}

// Dial opens a client's socket behind a network. A rebind closes it and opens another one.
func Dial(cfg Config) (*Conn, error) {
	cfg.Client = true
	open := func() (net.PacketConn, error) { return net.ListenUDP("udp", nil) }
	socket, err := open()
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	return newConn(socket, open, cfg), nil
}

func newConn(socket net.PacketConn, open func() (net.PacketConn, error), cfg Config) *Conn {
	news := func() chan struct{} { return make(chan struct{}, 1) }
	c := &Conn{
		open: open, start: time.Now(), exchange: NewExchange(cfg),
		received: news(), toSend: news(), closing: make(chan struct{}), sent: make(chan struct{}),
	}
	c.use(socket)
	go c.send()
	return c
}

func notify(news chan struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}

func (c *Conn) now() time.Duration { return time.Since(c.start) }

// use makes a socket the current one of the Conn, and starts to read from it.
func (c *Conn) use(socket net.PacketConn) {
	c.socket = socket
	c.receivers.Go(func() { c.receive(socket) })
}

// receive reads datagrams from a socket until it is closed.
func (c *Conn) receive(socket net.PacketConn) {
	buf := make([]byte, maxPacket)
	for {
		n, from, err := socket.ReadFrom(buf)
		if !c.take(socket, buf[:n], from, err) {
			return
		}
	}
}

// take passes the result of one read of a socket to the Exchange, and reports whether to continue
// reading the socket.
func (c *Conn) take(socket net.PacketConn, b []byte, from net.Addr, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var passing interface{ Temporary() bool }
	switch {
	case c.closed || c.socket != socket:
		return false
	case err == nil:
		if addr, ok := addrPort(from); ok {
			c.exchange.In(c.now(), addr, b)
			c.rebindLocked()
		}
	case errors.As(err, &passing) && passing.Temporary():
		return true
	default:
		c.failed = err
	}
	notify(c.received)
	return err == nil
}

// addrPort converts a UDP address to the form that the Exchange uses, in which an IPv4 address is
// not mapped to IPv6. It reports false for an address of another kind.
func addrPort(a net.Addr) (netip.AddrPort, bool) {
	u, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	at := u.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
}

// ReadFrom implements net.PacketConn.
func (c *Conn) ReadFrom(b []byte) (n int, from net.Addr, err error) {
	for {
		p, wait, err := c.next()
		if err != nil {
			return 0, nil, err
		}
		if p.Addr.IsValid() {
			return copy(b, p.Data), net.UDPAddrFromAddrPort(p.Addr), nil
		}
		pause(wait, c.received, c.closing)
	}
}

// next returns a datagram that has arrived, or the time to wait for one.
func (c *Conn) next() (p Packet, wait time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, wait := c.now(), forever
	if !c.deadline.IsZero() {
		if wait = time.Until(c.deadline); wait <= 0 {
			return p, 0, os.ErrDeadlineExceeded
		}
	}
	switch p, ok := c.exchange.Receive(now); {
	case c.closed:
		return p, 0, net.ErrClosed
	case ok:
		return p, 0, nil
	case c.failed != nil:
		return p, 0, c.failed
	}
	if at, ok := c.exchange.in.Next(); ok {
		wait = min(wait, at-now)
	}
	return p, wait, nil
}

// pause waits for a time or for news.
func pause(d time.Duration, news, closing <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-news:
	case <-closing:
	}
}

// WriteTo implements net.PacketConn. It never waits, and the network may drop the datagram.
func (c *Conn) WriteTo(b []byte, to net.Addr) (int, error) {
	addr, ok := addrPort(to)
	if !ok {
		return 0, fmt.Errorf("netem: %v is not a UDP address", to)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	c.exchange.Out(c.now(), addr, b)
	c.rebindLocked()
	notify(c.toSend)
	return len(b), nil
}

// rebindLocked gives a client another socket, if the Exchange requests it. Datagrams on their way
// to the old socket are lost. If the system cannot open another socket, the client keeps the old
// one.
func (c *Conn) rebindLocked() {
	if !c.exchange.Rebound() || c.open == nil {
		return
	}
	socket, err := c.open()
	if err != nil {
		return
	}
	_ = c.socket.Close() // Peers of the old socket are not notified, as with a router.
	c.use(socket)
	_ = c.setBuffer() // Best effort, as for the first socket.
}

// Rebind gives every client another address at once.
func (c *Conn) Rebind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.exchange.Rebind(c.now())
		c.rebindLocked()
	}
}

// Set changes the network from now on.
func (c *Conn) Set(s Spec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exchange.Set(s)
}

// send sends the datagrams that have crossed the network to the socket, until the Conn is closed
// and no datagram is under way, or lingering has lasted too long.
func (c *Conn) send() {
	defer close(c.sent)
	var end time.Duration
	for {
		socket, p, wait := c.nextToSend(&end)
		switch {
		case socket == nil:
			return
		case p.Addr.IsValid():
			_, _ = socket.WriteTo(p.Data, net.UDPAddrFromAddrPort(p.Addr)) // An error is a loss.
		case end > 0:
			pause(wait, nil, nil)
		default:
			pause(wait, c.toSend, c.closing)
		}
	}
}

// nextToSend returns a datagram and the socket to send it, or the time to wait for a datagram. It
// returns no socket when send must end. Once the Conn is closed, end is the time at which lingering
// ends.
func (c *Conn) nextToSend(end *time.Duration) (net.PacketConn, Packet, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, wait := c.now(), forever
	if c.closed && *end == 0 {
		*end = now + lingerTimeout
	}
	p, ok := c.exchange.Send(now)
	if ok {
		return c.socket, p, 0
	}
	at, ok := c.exchange.out.Next()
	if ok {
		wait = at - now
	}
	if *end > 0 && (!ok || at > *end) {
		return nil, p, 0
	}
	return c.socket, p, wait
}

// Close ends the Conn and its socket once the sent datagrams have crossed the network, or after
// lingerTimeout, and returns when its goroutines have ended.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.closed = true
	socket := c.socket // The last one: no rebind follows.
	c.mu.Unlock()
	close(c.closing)
	<-c.sent
	err := socket.Close()
	c.receivers.Wait()
	return err
}

// LocalAddr implements net.PacketConn.
func (c *Conn) LocalAddr() net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket.LocalAddr()
}

// SetDeadline implements net.PacketConn.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline implements net.PacketConn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	notify(c.received)
	return nil
}

// SetWriteDeadline implements net.PacketConn: WriteTo never waits.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// SetReadBuffer asks the kernel for a receive buffer, as quic-go does.
func (c *Conn) SetReadBuffer(bytes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffer = bytes
	return c.setBuffer()
}

func (c *Conn) setBuffer() error {
	if s, ok := c.socket.(interface{ SetReadBuffer(bytes int) error }); ok && c.buffer > 0 {
		return s.SetReadBuffer(c.buffer)
	}
	return nil
}

// SetWriteBuffer has no effect: datagrams wait in the Exchange, not in the socket.
func (c *Conn) SetWriteBuffer(int) error { return nil }
