package udpbatch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// Socket is a batched UDP socket. QUIC calls ReadBatch from one goroutine and WriteMsgUDP from
// many.
type Socket struct {
	fd     int
	family uint16
	local  net.Addr
	reader
	writer
}

// Open returns a batched socket that uses a duplicate of the socket's descriptor, and closes the
// socket itself. Peers holds the times of arrival.
func Open(socket *net.UDPConn, cfg Config) (net.PacketConn, *Peers, error) {
	if cfg.Stats == nil {
		cfg.Stats = new(Stats)
	}
	s := &Socket{local: socket.LocalAddr()}
	err := s.take(socket)
	if err == nil {
		err = s.reader.open(s.fd, &cfg)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("epoll: %w", err), s.closeDescriptor())
	}
	s.writer.open(s.fd, s.family, &cfg)
	return s, s.peers, nil
}

// take duplicates the socket's descriptor, outside the runtime's poller, and closes the socket.
func (s *Socket) take(socket *net.UDPConn) error {
	s.fd = -1
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var family int
		if family, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN); failed == nil {
			s.family = uint16(family)
			s.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) // Non-blocking, too.
		}
	})
	return errors.Join(err, failed, socket.Close())
}

// Close sends all written packets, ends a call of ReadBatch and closes the socket.
func (s *Socket) Close() error {
	if !s.writer.close() {
		return net.ErrClosed
	}
	err := s.reader.close()
	return errors.Join(err, s.closeDescriptor())
}

func (s *Socket) closeDescriptor() error {
	if s.fd < 0 {
		return nil
	}
	return os.NewSyscallError("close", unix.Close(s.fd))
}

// LocalAddr returns the address at which the socket listens.
func (s *Socket) LocalAddr() net.Addr { return s.local }

// SyscallConn returns the descriptor for setting options.
func (s *Socket) SyscallConn() (syscall.RawConn, error) { return handle(s.fd), nil }

// SetReadBuffer sets the size of the kernel's buffer for received packets.
func (s *Socket) SetReadBuffer(bytes int) error { return s.setOption(unix.SO_RCVBUF, bytes) }

// SetWriteBuffer sets the size of the kernel's buffer for unsent packets.
func (s *Socket) SetWriteBuffer(bytes int) error { return s.setOption(unix.SO_SNDBUF, bytes) }

func (s *Socket) setOption(option, value int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, option, value))
}

// SetDeadline is SetReadDeadline: writes do not wait for the network.
func (s *Socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetWriteDeadline has no effect.
func (s *Socket) SetWriteDeadline(time.Time) error { return nil }

// ReadFrom reads one packet.
func (s *Socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, _, _, addr, err := s.ReadMsgUDP(b, nil)
	return n, addr, err
}

// ReadMsgUDP reads one packet with its control messages.
func (s *Socket) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	one := []ipv4.Message{{Buffers: [][]byte{b}, OOB: oob}}
	if _, err := s.ReadBatch(one, 0); err != nil {
		return 0, 0, 0, nil, err
	}
	return one[0].N, one[0].NN, one[0].Flags, one[0].Addr.(*net.UDPAddr), nil
}

// WriteTo writes one packet.
func (s *Socket) WriteTo(b []byte, addr net.Addr) (int, error) {
	to, ok := addr.(*net.UDPAddr)
	if !ok {
		return 0, syscall.EINVAL
	}
	n, _, err := s.WriteMsgUDP(b, nil, to)
	return n, err
}

// deadline is the time at which reads fail; 0: never.
type deadline struct{ nanos atomic.Int64 }

func (d *deadline) set(t time.Time) {
	if t.IsZero() {
		d.nanos.Store(0)
	} else {
		d.nanos.Store(max(t.UnixNano(), 1))
	}
}

func (d *deadline) passed(now time.Time) bool {
	at := d.nanos.Load()
	return at != 0 && now.UnixNano() >= at
}
