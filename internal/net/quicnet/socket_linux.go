package quicnet

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// hearRefusals makes the kernel report errors of sent packets. A socket for IPv6 also sends packets
// of IPv4.
func (s *socket) hearRefusals() {
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // On failure the client detects the loss by the timeout.
		_ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_RECVERR, 1)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_RECVERR, 1)
	})
}

// icmpErrors are the errors of a call that report the loss of an earlier packet: those of ICMP
// messages.
var icmpErrors = []error{
	unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EHOSTDOWN, unix.ENONET, unix.ENOPROTOOPT, unix.EOPNOTSUPP,
	unix.EPROTO, unix.EACCES, unix.EMSGSIZE,
}

// earlier reports whether a call has failed because of an earlier packet: then the call is
// repeated. It reads the errors that the kernel holds. Another goroutine may have read that of this
// call.
func (s *socket) earlier(err error) bool {
	if err == nil || s.refused == nil {
		return false
	}
	return s.takeRefusals() || slices.ContainsFunc(icmpErrors, func(e error) bool { return errors.Is(err, e) })
}

// takeRefusals reads the errors that the kernel holds, and calls refused for each refusal. It
// reports whether there was an error.
func (s *socket) takeRefusals() (some bool) {
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		var packet [1]byte
		var oob [512]byte
		for {
			_, n, _, to, err := unix.Recvmsg(int(fd), packet[:], oob[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			some = true
			if refuses(oob[:n]) {
				s.refused(addrPortOf(to))
			}
		}
	})
	return some
}

// refuses reports whether the control messages of an error report a refused packet (ECONNREFUSED):
// no process listens at its address.
func refuses(control []byte) bool {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return false
	}
	for _, m := range messages {
		of := m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_RECVERR ||
			m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		// The data begins with struct sock_extended_err, which begins with the error.
		if of && len(m.Data) >= 4 && binary.NativeEndian.Uint32(m.Data) == uint32(unix.ECONNREFUSED) {
			return true
		}
	}
	return false
}

// addrPortOf returns the address to which a packet was sent; or the zero address, which no server
// has, if the kernel does not report it.
func addrPortOf(to unix.Sockaddr) netip.AddrPort {
	switch to := to.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(to.Addr), uint16(to.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(to.Addr).Unmap(), uint16(to.Port))
	}
	return netip.AddrPort{}
}
