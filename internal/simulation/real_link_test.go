package simulation

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/netlooptest"
)

// realLink is the network between a client and the server, which may change at any time.
type realLink struct {
	began time.Time

	mu       sync.Mutex
	paths    [2]netem.Path // by netem.Direction
	blocked  [2]bool
	stalling bool
	left     int // datagrams until a cut; 0: no such cut
}

func newRealLink(l netlooptest.Link, seed, n uint64) *realLink {
	r := &realLink{began: time.Now()}
	for d := range r.paths {
		r.paths[d] = netem.NewPath(netem.Link(l), seed, 2*n+uint64(d))
	}
	return r
}

func (l *realLink) set(to netlooptest.Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := range l.paths {
		l.paths[d].Link = netem.Link(to)
	}
}

// cut makes black holes of the directions.
func (l *realLink) cut(up, down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked[netem.Up], l.blocked[netem.Down] = up, down
}

// cutAfter makes black holes of both directions after n datagrams.
func (l *realLink) cutAfter(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = n + 1
}

// stall keeps packets from the client until it is called again.
func (l *realLink) stall(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalling = on
}

// send returns the delays with which the copies of a datagram arrive: none if it is lost.
func (l *realLink) send(d netem.Direction, size int) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left > 0 {
		l.left--
		l.blocked[netem.Up], l.blocked[netem.Down] = l.left == 0, l.left == 0
	}
	if l.blocked[d] || l.stalling && d == netem.Down {
		return nil
	}
	now := time.Since(l.began)
	sent := l.paths[d].Send(now, size)
	var delays []time.Duration
	for _, at := range sent.At[:sent.Copies] {
		delays = append(delays, at-now)
	}
	return delays
}

// streamDelay returns the delay of a piece of a stream, which loses no data.
func (l *realLink) streamDelay(d netem.Direction) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paths[d].Link.Delay
}

func (l *realLink) holds(d netem.Direction) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blocked[d] || l.stalling && d == netem.Down
}

// route forwards the packets of a client to the ports of the server over a link.
type route struct {
	link *realLink
	web  string
	game *net.UDPAddr
	tcp  net.Listener
	work sync.WaitGroup

	mu     sync.Mutex
	udp    *net.UDPConn                    // under mu: the client sends to it
	flows  map[netip.AddrPort]*net.UDPConn // under mu: to the server, by the client's address
	pairs  map[*net.TCPConn]*net.TCPConn   // under mu: the client's end to the server's
	closed bool                            // under mu
}

func newRoute(link *realLink, game, web string) (r *route, err error) {
	r = &route{link: link, web: web, pairs: map[*net.TCPConn]*net.TCPConn{}}
	if r.game, err = net.ResolveUDPAddr("udp", game); err != nil {
		return nil, err
	}
	if r.tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.listenLocked(); err != nil {
		return nil, err
	}
	r.work.Go(r.accept)
	return r, nil
}

func (r *route) listenLocked() (err error) {
	if r.udp, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		return err
	}
	r.flows = map[netip.AddrPort]*net.UDPConn{}
	udp := r.udp
	r.work.Go(func() { r.forward(udp) })
	return nil
}

func (r *route) udpAddr() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.udp.LocalAddr().String()
}

func (r *route) tcpAddr() string { return r.tcp.Addr().String() }

// breakAll breaks all connections: the system tells the client, and not the server, unless it is a
// WebSocket.
func (r *route) breakAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked()
	if !r.closed {
		if err := r.listenLocked(); err != nil {
			panic(err)
		}
	}
}

// rebind gives the client another address, over QUIC and WebTransport.
func (r *route) rebind() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for addr, flow := range r.flows {
		_ = flow.Close()
		delete(r.flows, addr)
	}
}

func (r *route) endLocked() {
	_ = r.udp.Close()
	for _, flow := range r.flows {
		_ = flow.Close()
	}
	for near, far := range r.pairs {
		for _, c := range []*net.TCPConn{near, far} {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	}
}

func (r *route) close() {
	r.mu.Lock()
	r.closed = true
	_ = r.tcp.Close()
	r.endLocked()
	r.mu.Unlock()
	r.work.Wait()
}

// packetHeaders is the size of the headers of a datagram.
const packetHeaders = 28

// carry sends a datagram after its delays.
func (r *route) carry(d netem.Direction, b []byte, send func([]byte)) {
	for _, delay := range r.link.send(d, len(b)+packetHeaders) {
		if delay <= 0 {
			send(b)
			continue
		}
		later := append([]byte(nil), b...)
		time.AfterFunc(delay, func() { send(later) })
	}
}

// forward forwards the client's datagrams, each address of it by a socket of its own.
func (r *route) forward(from *net.UDPConn) {
	b := make([]byte, 2048)
	for {
		n, addr, err := from.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if flow := r.flow(from, addr); err == nil && flow != nil {
			r.carry(netem.Up, b[:n], func(b []byte) { _, _ = flow.Write(b) })
		}
	}
}

func (r *route) flow(from *net.UDPConn, addr netip.AddrPort) *net.UDPConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.udp != from {
		return nil
	}
	if flow := r.flows[addr]; flow != nil {
		return flow
	}
	flow, err := net.DialUDP("udp", nil, r.game)
	if err != nil {
		return nil
	}
	r.flows[addr] = flow
	r.work.Go(func() {
		b := make([]byte, 2048)
		for {
			n, err := flow.Read(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				r.carry(netem.Down, b[:n], func(b []byte) { _, _ = from.WriteToUDPAddrPort(b, addr) })
			}
		}
	})
	return flow
}

// accept forwards the client's WebSockets.
func (r *route) accept() {
	for {
		c, err := r.tcp.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.web)
		if err != nil {
			_ = c.Close()
			continue
		}
		r.pair(c.(*net.TCPConn), far.(*net.TCPConn))
	}
}

func (r *route) pair(near, far *net.TCPConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_, _ = near.Close(), far.Close()
		return
	}
	r.pairs[near] = far
	var both sync.WaitGroup
	both.Go(func() { r.pump(netem.Up, far, near) })
	both.Go(func() { r.pump(netem.Down, near, far) })
	r.work.Go(func() {
		both.Wait()
		_, _ = near.Close(), far.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pairs, near)
	})
}

// pump forwards one direction of a WebSocket, each piece after its delay. In a black hole it waits.
func (r *route) pump(d netem.Direction, to, from *net.TCPConn) {
	type piece struct {
		at time.Time
		b  []byte
	}
	pieces := make(chan piece, 64) // about a bandwidth of the delay
	go func() {
		defer close(pieces)
		b := make([]byte, 16<<10)
		for {
			n, err := from.Read(b)
			if n > 0 {
				pieces <- piece{time.Now().Add(r.link.streamDelay(d)), append([]byte(nil), b[:n]...)}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					_ = to.SetLinger(0)
					_ = to.Close()
				}
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		for r.link.holds(d) && !r.ended() {
			time.Sleep(5 * time.Millisecond)
		}
		_, _ = to.Write(p.b)
	}
	_ = to.CloseWrite()
}

func (r *route) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}
