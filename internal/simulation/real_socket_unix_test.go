//go:build unix

package simulation

import (
	"net"
	"syscall"
)

// dialer dials with a receive buffer of 2 KiB, or with the usual one.
func dialer(small bool) *net.Dialer {
	d := new(net.Dialer)
	if small {
		d.Control = func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048) })
		}
	}
	return d
}
