package quicnet

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/netloop/netloop/internal/testing/nettest"
)

// A packet counts as refused for ECONNREFUSED alone. Errors such as that of an unreachable network
// may pass.
func TestOnlyRefusalsCountAsRefused(t *testing.T) {
	for _, m := range []struct {
		level, kind int32
		size        int // of the data
		errno       unix.Errno
		refuses     bool
	}{
		{unix.SOL_IP, unix.IP_RECVERR, 16, unix.ECONNREFUSED, true},
		{unix.SOL_IPV6, unix.IPV6_RECVERR, 16, unix.ECONNREFUSED, true},
		{unix.SOL_IP, unix.IP_RECVERR, 16, unix.ENETUNREACH, false},
		{unix.SOL_IPV6, unix.IPV6_RECVERR, 16, unix.EMSGSIZE, false},
		{unix.SOL_IP, unix.IP_RECVERR, 4, unix.ECONNREFUSED, true},
		{unix.SOL_IP, unix.IP_RECVERR, 3, unix.ECONNREFUSED, false},
		{unix.SOL_IP, unix.IP_TTL, 4, unix.ECONNREFUSED, false},
		{unix.SOL_IPV6, unix.IPV6_HOPLIMIT, 4, unix.ECONNREFUSED, false},
	} {
		b := make([]byte, unix.CmsgSpace(16))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		h.Level, h.Type = m.level, m.kind
		h.SetLen(unix.CmsgLen(m.size))
		binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], uint32(m.errno))
		if refuses(b[:unix.CmsgSpace(m.size)]) != m.refuses {
			t.Errorf("%+v", m)
		}
		h.SetLen(len(b) + 1)
		if refuses(b) {
			t.Errorf("%+v with a wrong length", m)
		}
	}
}

// Among the errors that the kernel holds, only refusals count: times of sent packets, which it
// reports as errors too, do not. A refusal has the address to which the packet was sent.
func TestOnlyRefusalsAreTaken(t *testing.T) {
	for _, network := range []string{"127.0.0.1:0", "[::1]:0"} {
		peer, udp := listenUDP(t, network), listenUDP(t, network)
		var refused []netip.AddrPort
		s := newSocket(udp, nil, func(addr netip.AddrPort) { refused = append(refused, addr) })
		raw, err := s.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_TX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
		})
		if err != nil {
			t.Skip("the kernel reports no times of sent packets:", err)
		}
		to := peer.LocalAddr().(*net.UDPAddr)
		send := func() {
			t.Helper()
			if _, _, err := s.WriteMsgUDP([]byte("x"), nil, to); err != nil {
				t.Fatal(err)
			}
			nettest.Eventually(t, "an error", s.takeRefusals)
		}
		if send(); refused != nil {
			t.Errorf("the time of a sent packet counts as a refusal by %v", refused)
		}
		_ = peer.Close()
		nettest.Eventually(t, "a refusal", func() bool { send(); return refused != nil })
		if refused[0] != to.AddrPort() {
			t.Errorf("refused by %v, want %v", refused[0], to)
		}
	}
}

func listenUDP(t *testing.T, addr string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.UDPConn)
}

// Refusals end neither reads nor writes, although each goroutine reads the errors of all.
func TestRefusalsEndNoCall(t *testing.T) {
	gone := listenUDP(t, "127.0.0.1:0")
	to := gone.LocalAddr().(*net.UDPAddr)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	s := newSocket(listenUDP(t, "127.0.0.1:0"), nil, func(netip.AddrPort) { refused.Add(1) })
	var writing, reading sync.WaitGroup
	reading.Go(func() {
		ms := []ipv4.Message{{Buffers: [][]byte{make([]byte, 1500)}, OOB: make([]byte, 128)}}
		if _, err := s.ReadBatch(ms, 0); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("ReadBatch: %v", err)
		}
	})
	for range 4 {
		writing.Go(func() {
			for range 2000 {
				if _, _, err := s.WriteMsgUDP([]byte{1}, nil, to); err != nil {
					t.Errorf("WriteMsgUDP: %v", err)
					return
				}
			}
		})
	}
	writing.Wait()
	if err := s.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	if refused.Load() == 0 {
		t.Error("no refusal")
	}
	if s.earlier(net.ErrClosed) || !s.earlier(os.NewSyscallError("recvmmsg", unix.ECONNREFUSED)) {
		t.Error("the end of a socket is an error, and that of an earlier packet is none")
	}
}
