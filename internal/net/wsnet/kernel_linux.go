package wsnet

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernel queries the kernel about a TCP socket. Any goroutine may use it; the zero value returns
// zeros.
type kernel struct{ socket syscall.RawConn }

// newKernel returns the kernel of a connection, or the zero value if it has no socket.
func newKernel(c net.Conn) kernel {
	s, ok := c.(syscall.Conn)
	if !ok {
		return kernel{}
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return kernel{}
	}
	return kernel{raw}
}

// unsent returns the number of written bytes that TCP has not sent, not even once.
func (k kernel) unsent() (n int) {
	k.ask(func(fd int) { n, _ = unix.IoctlGetInt(fd, unix.SIOCOUTQNSD) })
	return n
}

// rtt returns the smoothed round trip of TCP, 0 if unknown.
func (k kernel) rtt() (d time.Duration) {
	k.ask(func(fd int) {
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			d = time.Duration(info.Rtt) * time.Microsecond
		}
	})
	return d
}

func (k kernel) ask(what func(fd int)) {
	if k.socket != nil {
		_ = k.socket.Control(func(fd uintptr) { what(int(fd)) }) // A closed one leaves zeros.
	}
}
