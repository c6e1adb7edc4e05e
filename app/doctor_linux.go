package app

import (
	"net"

	"golang.org/x/sys/unix"
)

// udpBuffers requests buffers of a size, as quic-go does, and returns the sizes that the kernel
// grants.
func udpBuffers(size int) (receive, send int, err error) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = socket.Close() }() // It was only asked.
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	granted := func(fd, option, force int) int {
		// A privileged user may exceed the limit; the result is read below.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, size)
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size)
		n, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option)
		return n
	}
	err = raw.Control(func(fd uintptr) {
		receive = granted(int(fd), unix.SO_RCVBUF, unix.SO_RCVBUFFORCE)
		send = granted(int(fd), unix.SO_SNDBUF, unix.SO_SNDBUFFORCE)
	})
	return receive, send, err
}

// clockSynchronised reports whether the kernel considers the time of day synchronised.
func clockSynchronised() (bool, error) {
	state, err := unix.Adjtimex(new(unix.Timex))
	return state != unix.TIME_ERROR, err
}
