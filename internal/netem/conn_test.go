package netem

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sock is a socket in memory: a test supplies its received datagrams, and reads the sent ones.
type sock struct {
	in     chan Packet
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	sent []Packet
	when []time.Time
}

func newSock() *sock { return &sock{in: make(chan Packet), closed: make(chan struct{})} }

var errBroken = errors.New("the socket is broken")

func (s *sock) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case p := <-s.in:
		if !p.Addr.IsValid() {
			return 0, nil, errBroken
		}
		return copy(b, p.Data), net.UDPAddrFromAddrPort(p.Addr), nil
	case <-s.closed:
		return 0, nil, net.ErrClosed
	}
}

func (s *sock) WriteTo(b []byte, to net.Addr) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, Packet{Addr: to.(*net.UDPAddr).AddrPort(), Data: slices.Clone(b)})
	s.when = append(s.when, time.Now())
	return len(b), nil
}

func (s *sock) Close() error                     { s.once.Do(func() { close(s.closed) }); return nil }
func (s *sock) LocalAddr() net.Addr              { return net.UDPAddrFromAddrPort(peer(0)) }
func (s *sock) SetDeadline(time.Time) error      { return nil }
func (s *sock) SetReadDeadline(time.Time) error  { return nil }
func (s *sock) SetWriteDeadline(time.Time) error { return nil }

func (s *sock) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// sockets makes a client's Conn of sockets in memory, and returns the opened ones. Opening more
// than most fails.
func sockets(spec Spec, most int) (*Conn, func() []*sock) {
	var mu sync.Mutex
	var all []*sock
	open := func() (net.PacketConn, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(all) == most {
			return nil, errBroken
		}
		all = append(all, newSock())
		return all[len(all)-1], nil
	}
	first, _ := open()
	return newConn(first, open, Config{Spec: spec, Client: true}), func() []*sock {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func udp(n int) *net.UDPAddr { return net.UDPAddrFromAddrPort(peer(n)) }

// TestAConnDelaysBothWays checks the delays of both ways, to the nanosecond.
func TestAConnDelaysBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSock()
		c := Listen(s, Config{Spec: parse(t, "up.delay=30ms,down.delay=80ms")})
		defer c.Close()
		start := time.Now()
		s.in <- Packet{Addr: peer(1), Data: payload(1)}
		s.in <- Packet{Addr: peer(2), Data: nil} // Empty ones are datagrams too.
		b := make([]byte, maxPacket)
		for _, want := range []int{100, 0} {
			n, from, err := c.ReadFrom(b)
			if err != nil || n != want || time.Since(start) != 30*ms || from.String() != peer(map[int]int{100: 1, 0: 2}[want]).String() {
				t.Error(n, from, err, time.Since(start))
			}
		}
		if _, err := c.WriteTo(payload(3), udp(1)); err != nil {
			t.Error(err)
		}
		if s.LocalAddr().String() != c.LocalAddr().String() {
			t.Error("the address is", c.LocalAddr())
		}
		time.Sleep(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.sent) != 1 || s.sent[0].Addr != peer(1) || s.when[0].Sub(start) != 110*ms {
			t.Error(s.sent, s.when)
		}
		if err := c.SetReadBuffer(1); err != nil {
			t.Error("a socket without a buffer says", err)
		}
		c.Set(parse(t, "up.delay=1ms"))
		start = time.Now()
		s.in <- Packet{Addr: peer(1)}
		if _, _, err := c.ReadFrom(b); err != nil || time.Since(start) != ms {
			t.Errorf("over another network it takes %v, %v", time.Since(start), err)
		}
	})
}

// TestADeadlineEndsARead checks deadlines that are set before and during a read; the next read
// waits again.
func TestADeadlineEndsARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Listen(newSock(), Config{})
		defer c.Close()
		start := time.Now()
		time.AfterFunc(time.Second, func() { _ = c.SetReadDeadline(time.Now().Add(time.Second)) })
		if _, _, err := c.ReadFrom(nil); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Error(err, time.Since(start))
		}
		_ = c.SetDeadline(time.Time{})
		time.AfterFunc(2*forever, func() { _ = c.SetReadDeadline(time.Now()) })
		if _, _, err := c.ReadFrom(nil); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 2*time.Second+2*forever {
			t.Error(err, time.Since(start))
		}
	})
}

// TestCloseDeliversSentDatagrams checks that Close delivers sent datagrams, ends a read, and
// refuses later calls.
func TestCloseDeliversSentDatagrams(t *testing.T) {
	for delay, want := range map[string]struct {
		sent  int
		after time.Duration
	}{"300ms": {1, 300 * ms}, "0s": {1, 0}, "2s": {0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSock()
			c := Listen(s, Config{Spec: parse(t, "down.delay="+delay)})
			s.in <- Packet{Addr: peer(1), Data: payload(1)}
			b := make([]byte, maxPacket)
			_, from, _ := c.ReadFrom(b)
			ended := make(chan error)
			go func() {
				_, _, err := c.ReadFrom(b)
				ended <- err
			}()
			synctest.Wait()
			start := time.Now()
			if _, err := c.WriteTo(payload(2), from); err != nil {
				t.Error(err)
			}
			closed := make(chan struct{})
			go func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				close(closed)
			}()
			if err := <-ended; !errors.Is(err, net.ErrClosed) || time.Since(start) != 0 {
				t.Error("the read ends with", err, "after", time.Since(start))
			}
			<-closed
			if d := time.Since(start); len(s.sent) != want.sent || d != want.after || !s.isClosed() {
				t.Error(delay, "sent", len(s.sent), "closed", s.isClosed(), "after", d)
			}
			if _, err := c.WriteTo(payload(2), from); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			if _, _, err := c.ReadFrom(b); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			if err := c.Close(); !errors.Is(err, net.ErrClosed) || c.LocalAddr() == nil {
				t.Error(err)
			}
		})
	}
}

// TestARebindReplacesTheSocket checks a client's rebind: the old socket is closed, the new one
// sends and receives. When there are no more sockets, the last one is kept.
func TestARebindReplacesTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, opened := sockets(parse(t, "rebind=1s"), 3)
		defer c.Close()
		b := make([]byte, maxPacket)
		for turn := range 5 {
			if _, err := c.WriteTo(payload(1), udp(1)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			all := opened()
			if want := min(turn+1, 3); len(all) != want {
				t.Fatal(len(all), "sockets at turn", turn)
			}
			for i, s := range all {
				if last := i == len(all)-1; s.isClosed() == last || last && len(s.sent) == 0 {
					t.Error("turn", turn, "socket", i, "is closed:", s.isClosed(), "sent", len(s.sent))
				}
			}
			all[len(all)-1].in <- Packet{Addr: peer(1), Data: payload(2)}
			if n, _, err := c.ReadFrom(b); n != 100 || err != nil {
				t.Error(n, err)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestTheErrorOfABrokenSocketIsReturned checks that a reader gets a socket's error after the
// earlier datagrams, and no error of a replaced socket.
func TestTheErrorOfABrokenSocketIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, opened := sockets(Spec{}, 2)
		defer c.Close()
		b := make([]byte, maxPacket)
		if _, err := c.WriteTo(payload(1), udp(1)); err != nil {
			t.Error(err)
		}
		c.Rebind()
		synctest.Wait()
		all := opened()
		if len(all) != 2 || !all[0].isClosed() {
			t.Fatal(len(all), "sockets")
		}
		all[1].in <- Packet{Addr: peer(1), Data: payload(2)}
		all[1].in <- Packet{}
		synctest.Wait()
		if n, _, err := c.ReadFrom(b); n != 100 || err != nil {
			t.Error(n, err)
		}
		if _, _, err := c.ReadFrom(b); !errors.Is(err, errBroken) {
			t.Error(err)
		}
	})
}

// TestRealSockets sends over loopback: a server behind one Conn answers a client behind
// another, which changes its address now and then.
func TestRealSockets(t *testing.T) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	st := new(Stats)
	server := Listen(socket, Config{Spec: parse(t, "rtt=4ms"), Stats: st})
	if err := server.SetReadBuffer(1 << 20); err != nil {
		t.Error(err)
	}
	client, err := Dial(Config{Spec: parse(t, "dup=100%"), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	_ = client.SetReadDeadline(time.Now().Add(time.Minute))
	var echo sync.WaitGroup
	seen := map[netip.AddrPort]bool{}
	echo.Go(func() {
		b := make([]byte, maxPacket)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			seen[from.(*net.UDPAddr).AddrPort()] = true
			_, _ = server.WriteTo(b[:n], from)
		}
	})
	for n := range uint32(20) {
		if n%5 == 4 {
			client.Rebind()
		}
		if _, err := client.WriteTo(payload(n), server.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, maxPacket)
		for { // Older ones are copies.
			k, from, err := client.ReadFrom(b)
			if err != nil {
				t.Fatal(err)
			}
			if from.String() != server.LocalAddr().String() {
				t.Fatal("from", from)
			}
			if slices.Equal(b[:k], payload(n)) {
				break
			}
		}
	}
	if err := errors.Join(client.Close(), server.Close()); err != nil {
		t.Error(err)
	}
	echo.Wait()
	if len(seen) != 5 || st.Get(Up, Passed) < 20 || st.Get(Down, Passed) < 20 {
		t.Error("seen as", len(seen), "addresses:", st)
	}
}
