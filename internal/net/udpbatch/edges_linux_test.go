package udpbatch

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// controlOf returns a control message with a body of a size that begins with a 5.
func controlOf(level, kind int32, size int) []byte {
	b := make([]byte, unix.CmsgSpace(size))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(size))
	b[unix.CmsgLen(0)] = 5
	return b
}

// Only the control message of UDP with two bytes is the size of segments. All others are kept.
func TestTheSizeOfSegmentsIsTaken(t *testing.T) {
	for _, c := range []struct {
		control []byte
		segment int
	}{
		{controlOf(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2), 5}, {controlOf(unix.IPPROTO_IP, unix.UDP_SEGMENT, 2), 0},
		{controlOf(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1), 0}, {controlOf(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 4), 0}, {controlOf(unix.IPPROTO_UDP, unix.UDP_GRO, 2), 0},
	} {
		var m message
		if got := m.takeControl(c.control); got != c.segment || (m.controlLen == len(c.control)) != (c.segment == 0) {
			t.Errorf("of % x the size is %d, and %d bytes are kept", c.control, got, m.controlLen)
		}
	}
}

// A message has up to messageBytes of one address and port. It is found among the last lookBack
// messages.
func TestPacketsJoinANearMessage(t *testing.T) {
	merges := func(b *batch, size int, to *net.UDPAddr) bool {
		before := len(b.messages)
		b.add(make([]byte, size), nil, to, true)
		return len(b.messages) == before
	}
	for first, want := range map[int]bool{messageBytes / 2: true, messageBytes/2 + 1: false} {
		b := newBatch()
		b.add(make([]byte, first), nil, peerAddr(1), true)
		if got := merges(b, first, peerAddr(1)); got != want {
			t.Errorf("two packets of %d bytes are one message: %v", first, got)
		}
	}
	for between, want := range map[int]bool{lookBack - 1: true, lookBack: false} {
		b := newBatch()
		for n := range between + 1 {
			b.add([]byte("x"), nil, peerAddr(n), true)
		}
		if got := merges(b, 1, peerAddr(0)); got != want {
			t.Errorf("with %d messages between them packets are one message: %v", between, got)
		}
	}
	b, other := newBatch(), peerAddr(1)
	other.Port++
	if b.add([]byte("x"), nil, peerAddr(1), true); merges(b, 1, other) {
		t.Error("packets to two ports are one message")
	}
}

// A sent batch is used again. Without the kernel's support no packets are merged.
func TestBatchesAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWriter(t, Config{})
		for range 3 {
			mustWrite(t, w, []byte("x"), nil, peerAddr(1))
			synctest.Wait()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.free) != 1 {
			t.Errorf("%d batches are free", len(w.free))
		}
	})
	w := new(writer)
	w.open(-1, unix.AF_INET, &Config{Stats: new(Stats)})
	if w.close(); w.merge.Load() {
		t.Error("packets are merged for a socket that has no such option")
	}
}

// The descriptors are closed in programs that the process starts.
func TestDescriptorsAreNotInherited(t *testing.T) {
	s, _ := open(t, "127.0.0.1:0")
	_ = s.pollRaw.Control(func(poll uintptr) {
		for name, fd := range map[string]uintptr{"socket": uintptr(s.fd), "epoll": poll} {
			if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("%s: flags %#x, %v", name, flags, err)
			}
		}
	})
	client := dial(t, s.LocalAddr().(*net.UDPAddr))
	send(t, client, "x")
	if _, _, err := s.ReadFrom(make([]byte, 10)); err != nil || s.reader.cfg.Stats.Receives.Load() == 0 {
		t.Errorf("a read is not counted: %v", err)
	}
}

// A packet has waited from 0 to markAge for any time of the kernel.
func TestWaitedIsBounded(t *testing.T) {
	var got []time.Duration
	r := &reader{peers: new(Peers), cfg: &Config{Stats: new(Stats), Take: func(_ []byte, _ netip.AddrPort, _ []byte, waited time.Duration) bool {
		got = append(got, waited)
		return true
	}}}
	ms := make([]ipv4.Message, 3)
	for i, at := range []time.Time{time.Now().Add(time.Hour), time.Now().Add(-time.Hour), {}} {
		control := controlOf(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, int(unsafe.Sizeof(unix.Timespec{})))
		*(*unix.Timespec)(unsafe.Pointer(&control[unix.CmsgLen(0)])) = unix.NsecToTimespec(at.UnixNano())
		if at.IsZero() {
			control = nil
		}
		ms[i] = ipv4.Message{Buffers: [][]byte{make([]byte, 8)}, OOB: control}
		r.headers[i].SetControllen(len(control))
	}
	if n := r.finish(ms); n != 0 || !slices.Equal(got, []time.Duration{0, markAge, 0}) {
		t.Errorf("%d are left, the packets have waited for %v", n, got)
	}
}

// A deadline passes at its time; one of 1970 has passed.
func TestDeadlinesPass(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		at   time.Time
		want bool
	}{{time.Time{}, false}, {time.Unix(0, 0), true}, {now, true}, {now.Add(1), false}} {
		var d deadline
		if d.set(c.at); d.passed(now) != c.want {
			t.Errorf("%v has passed at %v: %v", c.at, now, !c.want)
		}
	}
}

// A packet is found among the last peerMarks of its peer, and up to markAge.
func TestArrivalsAreFoundAmongTheLast(t *testing.T) {
	now := time.Now()
	for small, want := range map[int]time.Duration{peerMarks - 1: markAge, peerMarks: 0} {
		var p Peer
		p.note(now.Add(-markAge), 100+sealed)
		for range small {
			p.note(now, 99+sealed)
		}
		if got := p.Waited(100, now); got != want {
			t.Errorf("before %d smaller packets it has waited for %v, want %v", small, got, want)
		}
		if got := p.Waited(100, now.Add(1)); got != 0 {
			t.Errorf("an older arrival is used: %v", got)
		}
	}
}

// An address has no part of the address that was stored before.
func TestAddressesAreOverwritten(t *testing.T) {
	var s sockaddr
	for _, text := range []string{"[fe80::1%3]:7", "[2001:db8::7]:8", "[::ffff:10.1.2.3]:9"} {
		a := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(text))
		s.set(unix.AF_INET6, a)
		if got := fmt.Sprint(s.addr()); got != a.String() {
			t.Errorf("%v became %s", a, got)
		}
	}
}
