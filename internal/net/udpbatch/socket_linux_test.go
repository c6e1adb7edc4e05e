package udpbatch

import (
	"errors"
	"net"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the waits of tests; no test measures against it.
const patience = 20 * time.Second

// The time of arrival is in the control message of the socket's level and its own type only.
func TestTheArrivalIsInItsControlMessage(t *testing.T) {
	message := func(level, kind int32, size int) []byte {
		b := make([]byte, unix.CmsgSpace(size))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		h.Level, h.Type = level, kind
		h.SetLen(unix.CmsgLen(size))
		b[unix.CmsgLen(0)] = 7
		return b
	}
	for _, c := range []struct {
		control []byte
		want    int64
	}{
		{nil, 0},
		{message(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 16), 7e9},
		{append(message(unix.IPPROTO_IP, unix.IP_PKTINFO, 12), message(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 16)...), 7e9},
		{message(unix.IPPROTO_IPV6, unix.SO_TIMESTAMPNS, 16), 0},
		{message(unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 16), 0},
		{message(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 8), 0},
	} {
		if got, _ := arrival(c.control); got != c.want {
			t.Errorf("of %v the arrival is %d, want %d", c.control, got, c.want)
		}
	}
}

// open returns a listening socket, or skips the test if the machine lacks the address.
func open(t *testing.T, listen string) (*Socket, *Peers) {
	t.Helper()
	addr, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		t.Skip(err)
	}
	s, peers, err := Open(conn, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return s.(*Socket), peers
}

// dial returns a client's socket, which receives packets from that address alone.
func dial(t *testing.T, to *net.UDPAddr) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp", nil, to)
	if err != nil {
		t.Skip(err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return c
}

func port(s *Socket) int { return s.LocalAddr().(*net.UDPAddr).Port }

func send(t *testing.T, c *net.UDPConn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// TestRepliesLeaveByTheAddressThatWasAsked, for either family on a socket for one or both: the
// clients accept packets from that address alone, and the control messages are like QUIC's.
func TestRepliesLeaveByTheAddressThatWasAsked(t *testing.T) {
	for _, c := range []struct{ listen, ask string }{
		{"127.0.0.1:0", "127.0.0.1"}, {"0.0.0.0:0", "127.0.0.2"}, {":0", "127.0.0.2"}, {":0", "::1"}, {"[::1]:0", "::1"},
	} {
		t.Run(c.listen+" "+c.ask, func(t *testing.T) {
			s, _ := open(t, c.listen)
			raw, _ := s.SyscallConn()
			_ = raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
			})
			client := dial(t, &net.UDPAddr{IP: net.ParseIP(c.ask), Port: port(s)})
			send(t, client, "where are you?")
			b, oob := make([]byte, 100), make([]byte, 128)
			n, oobn, _, from, err := s.ReadMsgUDP(b, oob)
			if err != nil || string(b[:n]) != "where are you?" || !from.IP.Equal(client.LocalAddr().(*net.UDPAddr).IP) {
				t.Fatalf("read %q of %v: %v", b[:n], from, err)
			}
			for _, size := range []int{1150, 1150, 300} { // One message, which the kernel splits.
				if _, _, err := s.WriteMsgUDP(make([]byte, size), source(t, oob[:oobn]), from); err != nil {
					t.Fatal(err)
				}
			}
			for _, size := range []int{1150, 1150, 300} {
				if n, err := client.Read(make([]byte, 2000)); n != size || err != nil {
					t.Fatalf("the client read %d bytes, want %d: %v", n, size, err)
				}
			}
		})
	}
}

// source converts the control messages of a packet to those of its answer, as QUIC does.
func source(t *testing.T, oob []byte) []byte {
	var four ipv4.ControlMessage
	var six ipv6.ControlMessage
	if err := errors.Join(four.Parse(oob), six.Parse(oob)); err != nil {
		t.Fatal(err)
	}
	switch {
	case six.Dst != nil && six.Dst.To4() == nil:
		return (&ipv6.ControlMessage{Src: six.Dst, IfIndex: six.IfIndex}).Marshal()
	case four.Dst != nil:
		return (&ipv4.ControlMessage{Src: four.Dst, IfIndex: four.IfIndex}).Marshal()
	}
	return nil
}

// TestBatchesHaveArrivedPacketsInOrder: batches hold the arrived packets in order, at most as many
// as fit.
func TestBatchesHaveArrivedPacketsInOrder(t *testing.T) {
	testBatches(t, 8)
	testBatches(t, readBatch+8)
}

func testBatches(t *testing.T, room int) {
	s, _ := open(t, "127.0.0.1:0")
	waits := 0
	s.reader.cfg.Stats.Wait = func(time.Duration) { waits++ }
	client := dial(t, s.LocalAddr().(*net.UDPAddr))
	for i := range 20 {
		send(t, client, string(make([]byte, i+1)))
	}
	ms := make([]ipv4.Message, room)
	for i := range ms {
		ms[i].Buffers, ms[i].OOB = [][]byte{make([]byte, 100)}, make([]byte, 128)
	}
	batches := 0
	for next := 1; next <= 20; batches++ {
		n, err := s.ReadBatch(ms, 0)
		if n == 0 || n > len(ms) || err != nil || s.drained != (n < min(room, readBatch)) {
			t.Fatal(n, err, s.drained)
		}
		for _, m := range ms[:n] {
			if m.N != next {
				t.Fatalf("a packet of %d bytes, want %d", m.N, next)
			}
			next++
		}
	}
	if got := s.reader.cfg.Stats.Received.Load(); got != 20 || waits != batches {
		t.Errorf("20 packets were read in %d batches, counted %d and %d waits", batches, got, waits)
	}
}

// TestATickBeginsBetweenTwoBatchesOfARound: on one core other goroutines run between the batches of
// a long round.
func TestATickBeginsBetweenTwoBatchesOfARound(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s, _ := open(t, "127.0.0.1:0")
	client := dial(t, s.LocalAddr().(*net.UDPAddr))
	const batches = 5
	for range batches * readBatch {
		send(t, client, "x")
	}
	ms := make([]ipv4.Message, readBatch)
	for i := range ms {
		ms[i].Buffers, ms[i].OOB = [][]byte{make([]byte, 100)}, make([]byte, 128)
	}
	var began atomic.Int64
	turns := int64(0)
	for left := batches * readBatch; left > 0; {
		more := !s.drained
		before := began.Load()
		if more {
			go began.Add(1)
		}
		n, err := s.ReadBatch(ms, 0)
		if err != nil {
			t.Fatal(err)
		}
		if left -= n; more {
			turns += began.Load() - before
		}
	}
	if turns < batches-2 { // At times the scheduler prefers the goroutine that has yielded.
		t.Errorf("somebody else came between %d of %d batches", turns, batches)
	}
}

// TestWaitedIsTheKernelsTime: however late a packet is read, its arrival is between the times
// before and after it was sent. The kernel starts to stamp packets a moment after it was asked to,
// and a packet that is read very late has no mark: one good packet is enough.
func TestWaitedIsTheKernelsTime(t *testing.T) {
	const slack = 100 * time.Microsecond // between the kernel's two clocks
	s, peers := open(t, "127.0.0.1:0")
	client := dial(t, s.LocalAddr().(*net.UDPAddr))
	peer := peers.Follow(client.LocalAddr())
	b, oob := make([]byte, 200), make([]byte, 128)
	for began := time.Now(); time.Since(began) < patience; {
		before := time.Now()
		send(t, client, string(make([]byte, 100+sealed)))
		after := time.Now()
		for time.Since(after) < time.Millisecond { // It waits.
		}
		_, _, _, from, err := s.ReadMsgUDP(b, oob)
		if err != nil {
			t.Fatal(err)
		}
		if from != peer.addr {
			t.Fatalf("a peer that is followed is at %v, want the address that is known", from)
		}
		now := time.Now()
		arrived := now.Add(-peer.Waited(100, now))
		if !arrived.Before(before.Add(-slack)) && !arrived.After(after.Add(slack)) {
			return
		}
	}
	t.Error("no packet arrived when it was sent")
}

// TestRoundsAreApart: while packets keep arriving, rounds are at least Pause apart.
func TestRoundsAreApart(t *testing.T) {
	s, _ := open(t, "127.0.0.1:0")
	client := dial(t, s.LocalAddr().(*net.UDPAddr))
	const rounds = 10
	began := time.Now()
	for range rounds {
		send(t, client, "x")
		readOne(t, s)
	}
	if d := time.Since(began); d < (rounds-2)*Pause {
		t.Errorf("%d rounds in %v, want %v between two", rounds, d, Pause)
	}
}

// readOne reads a packet in a round of its own: with room for two it detects that no other waits.
func readOne(t *testing.T, s *Socket) {
	t.Helper()
	ms := []ipv4.Message{{Buffers: [][]byte{make([]byte, 10)}}, {Buffers: [][]byte{make([]byte, 10)}}}
	if n, err := s.ReadBatch(ms, 0); n != 1 || err != nil || !s.drained {
		t.Fatal(n, err, s.drained)
	}
}

// TestQuietEndsThePauses: a packet after a quiet time is read at once, and so is the next.
func TestQuietEndsThePauses(t *testing.T) {
	s, _ := open(t, "127.0.0.1:0")
	client := dial(t, s.LocalAddr().(*net.UDPAddr))
	send(t, client, "x")
	if readOne(t, s); !s.pausing {
		t.Error("after a packet that was there at once there is no pause")
	}
	armed, arm := 0, s.arm
	s.arm = func(poll uintptr) {
		armed++
		arm(poll)
		time.AfterFunc(2*quiet, func() { _, _ = client.Write([]byte("x")) })
	}
	if readOne(t, s); armed != 1 || s.pausing {
		t.Errorf("after a round with nothing it waits for %d arrivals, want 1; after the quiet it pauses: %v", armed, s.pausing)
	}
}

// TestOneArrivalWakesTheReader, and no send does: udpbatch exists to save those wake-ups.
func TestOneArrivalWakesTheReader(t *testing.T) {
	s, _ := open(t, "127.0.0.1:0")
	client := dial(t, s.LocalAddr().(*net.UDPAddr))
	arrived := func() (yes bool) {
		_ = s.pollRaw.Control(func(fd uintptr) { yes = s.arrived(fd) })
		return yes
	}
	_ = s.pollRaw.Control(s.arm)
	if _, err := s.WriteTo([]byte("x"), client.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if arrived() {
		t.Error("a send wakes the reader")
	}
	for i, want := range []bool{true, false} {
		send(t, client, "x")
		if arrived() != want {
			t.Errorf("arrival %d wakes the reader: %v, want %v", i, !want, want)
		}
	}
}

// TestBuffersAreTheKernels: QUIC asks for larger ones.
func TestBuffersAreTheKernels(t *testing.T) {
	s, _ := open(t, "127.0.0.1:0")
	for option, set := range map[int]func(int) error{unix.SO_RCVBUF: s.SetReadBuffer, unix.SO_SNDBUF: s.SetWriteBuffer} {
		if err := set(20_000); err != nil {
			t.Error(err)
		}
		if n, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, option); n != 2*20_000 || err != nil {
			t.Errorf("a buffer of 20 000 bytes has %d: %v", n, err)
		}
	}
}

// TestDeadlineEndsRead, as QUIC's transport asks for when it closes, and no read before it.
func TestDeadlineEndsRead(t *testing.T) {
	s, _ := open(t, "127.0.0.1:0")
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.ReadFrom(make([]byte, 10))
		ended <- err
	}()
	if err := s.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	var temporary interface{ Temporary() bool }
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &temporary) || !temporary.Temporary() {
		t.Error("a read after the deadline:", err)
	}
	client := dial(t, s.LocalAddr().(*net.UDPAddr))
	send(t, client, "x")
	for _, s.pausing = range []bool{false, true} {
		s.reader.some = s.pausing
		if _, _, err := s.ReadFrom(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read after the deadline of what is there, pausing %v: %v", s.pausing, err)
		}
		for _, s.drained = range []bool{true, false} {
			if n, err := s.ReadBatch(make([]ipv4.Message, 1), 0); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a batch after the deadline, drained %v: %d packets, error %v", s.drained, n, err)
			}
		}
	}
	if err := s.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ReadFrom(make([]byte, 10)); err != nil {
		t.Error("a read without a deadline:", err)
	}
}

// TestCloseEndsRead, and later calls fail.
func TestCloseEndsRead(t *testing.T) {
	s, _ := open(t, "127.0.0.1:0")
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.ReadFrom(make([]byte, 10))
		ended <- err
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error("a read ended with", err)
	}
	if _, _, err := s.ReadFrom(make([]byte, 10)); !errors.Is(err, net.ErrClosed) {
		t.Error("a read after the close:", err)
	}
	if _, err := s.WriteTo([]byte("x"), peerAddr(1)); !errors.Is(err, net.ErrClosed) {
		t.Error("a write after the close:", err)
	}
	if n, err := s.WriteTo([]byte("x"), new(net.TCPAddr)); n != 0 || !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a write to another kind of address: %d bytes, %v", n, err)
	}
	if err := s.Close(); !errors.Is(err, net.ErrClosed) {
		t.Error("a second close:", err)
	}
}

// TestAddressesAreWrittenForTheirSocket: a socket of IPv6 has IPv4 addresses as mapped ones.
func TestAddressesAreWrittenForTheirSocket(t *testing.T) {
	short, long := net.IPv4(10, 1, 2, 3).To4(), net.IPv4(10, 1, 2, 3).To16()
	for _, c := range []struct {
		family uint16
		ip     net.IP
		length uint32
		bytes  net.IP
	}{
		{unix.AF_INET, short, unix.SizeofSockaddrInet4, short},
		{unix.AF_INET, long, unix.SizeofSockaddrInet4, short},
		{unix.AF_INET6, short, unix.SizeofSockaddrInet6, long},
		{unix.AF_INET6, long, unix.SizeofSockaddrInet6, long},
		{unix.AF_INET6, net.ParseIP("2001:db8::7"), unix.SizeofSockaddrInet6, net.ParseIP("2001:db8::7")},
	} {
		var s sockaddr
		n := s.set(c.family, &net.UDPAddr{IP: c.ip, Port: 4433})
		if a := s.addr(); n != c.length || !slices.Equal(a.IP, c.bytes) || a.Port != 4433 {
			t.Errorf("%v for family %d became %v, of %d bytes", c.ip, c.family, a, n)
		}
	}
}

// TestAddressesKeepTheirZone: the zone of a link-local address is the number of an interface.
func TestAddressesKeepTheirZone(t *testing.T) {
	var s sockaddr
	a := &net.UDPAddr{IP: net.ParseIP("fe80::1"), Port: 7, Zone: "3"}
	if s.set(unix.AF_INET6, a); s.addr().String() != a.String() {
		t.Errorf("%v became %v", a, s.addr())
	}
	a.Zone = "lo"
	if s.set(unix.AF_INET6, a); s.addr().Zone != "1" {
		t.Errorf("the zone of the loopback interface is %q", s.addr().Zone)
	}
	a.Zone = "no such interface"
	if s.set(unix.AF_INET6, a); s.addr().Zone != "" {
		t.Errorf("the zone of no interface is %q", s.addr().Zone)
	}
	if s.key() != keyOf(a.AddrPort()) {
		t.Error("one address has two keys")
	}
}

func TestAClosedSocketIsRefused(t *testing.T) {
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Skip(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(conn, Config{}); !errors.Is(err, net.ErrClosed) {
		t.Error("a socket that is closed opens:", err)
	}
}

// An error of the kernel ends a read.
func TestAReadThatFailsSaysWhy(t *testing.T) {
	s, _ := open(t, "127.0.0.1:0")
	s.reader.socket, s.drained = -1, false
	if n, err := s.ReadBatch([]ipv4.Message{{Buffers: [][]byte{nil}}}, 0); n != 0 || !errors.Is(err, unix.EBADF) {
		t.Errorf("without a descriptor %d packets are read, %v", n, err)
	}
}
