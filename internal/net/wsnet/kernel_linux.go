package wsnet

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernel asks the kernel about a TCP socket. One goroutine may ask for what is unsent, and others
// for the round trip; the zero value knows nothing.
type kernel struct{ socket syscall.RawConn }

// newKernel returns what can be asked about a connection, with whatever around it.
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

// unsent is how many bytes were written that have not been sent once.
func (k kernel) unsent() (n int) {
	k.ask(func(fd int) { n, _ = unix.IoctlGetInt(fd, unix.SIOCOUTQNSD) })
	return n
}

// rtt is the smoothed round trip of TCP, 0 if it is not known.
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
		_ = k.socket.Control(func(fd uintptr) { what(int(fd)) }) // A closed one knows nothing.
	}
}
