package udpbatch

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of the kernel.
type mmsghdr struct {
	unix.Msghdr
	n uint32 // bytes moved by the kernel
}

// sendmmsg passes messages to the kernel and returns the number accepted. If there is an error, it
// is for the first message, and no message was accepted.
//
// The call does not block, so it does not notify the runtime, which would switch threads whenever
// the network is slow.
func sendmmsg(fd int, messages []mmsghdr) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[0])), uintptr(len(messages)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// recvmmsg receives messages from the kernel and returns their number. It does not block either.
func recvmmsg(fd int, messages []mmsghdr) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[0])), uintptr(len(messages)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// sockaddr is an IPv4 or IPv6 address as the kernel stores it.
type sockaddr [unix.SizeofSockaddrInet6]byte

// set stores an address for a socket of a family, and returns its length.
func (s *sockaddr) set(family uint16, a *net.UDPAddr) uint32 {
	*s = sockaddr{}
	binary.NativeEndian.PutUint16(s[0:], family)
	binary.BigEndian.PutUint16(s[2:], uint16(a.Port))
	if family == unix.AF_INET {
		copy(s[4:8], a.IP.To4())
		return unix.SizeofSockaddrInet4
	}
	if ip := a.IP.To4(); ip != nil {
		s[18], s[19] = 0xff, 0xff
		copy(s[20:24], ip)
	} else {
		copy(s[8:24], a.IP)
	}
	if a.Zone != "" {
		binary.NativeEndian.PutUint32(s[24:], zoneIndex(a.Zone))
	}
	return unix.SizeofSockaddrInet6
}

// addr returns the address that set or the kernel has stored.
func (s *sockaddr) addr() *net.UDPAddr { return net.UDPAddrFromAddrPort(s.addrPort()) }

// zoneIndex returns the index of a zone's interface, by its number or its name.
func zoneIndex(zone string) uint32 {
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return 0
	}
	return uint32(i.Index)
}

// appendSegment appends the control message with the size of a message's packets.
func appendSegment(control []byte, size int) []byte {
	at := len(control)
	control = append(control, make([]byte, unix.CmsgSpace(2))...)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[at]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[at+unix.CmsgLen(0):], uint16(size))
	return control
}

// arrival returns facts of a packet from its control messages: the time at which the kernel
// received it, in nanoseconds of the real-time clock, or 0 if unknown, and the control message of
// the local address to which it was sent, or nil if unknown.
func arrival(control []byte) (at int64, local []byte) {
	for len(control) > 0 {
		h, body, remainder, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return at, local
		}
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && len(body) >= int(unsafe.Sizeof(unix.Timespec{})):
			stamp := *(*unix.Timespec)(unsafe.Pointer(&body[0]))
			at = stamp.Nano()
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO, h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO:
			local = control[:len(control)-len(remainder)]
		}
		control = remainder
	}
	return at, local
}

// handle is the socket's descriptor for setting options, as syscall.RawConn.
type handle int

func (h handle) Control(f func(fd uintptr)) error { f(uintptr(h)); return nil }
func (handle) Read(func(uintptr) bool) error      { return syscall.ENOTSUP }
func (handle) Write(func(uintptr) bool) error     { return syscall.ENOTSUP }

// key returns the address as the key of Peers.
func (s *sockaddr) key() key { return keyOf(s.addrPort()) }

// addrPort returns the address that set or the kernel has stored.
func (s *sockaddr) addrPort() netip.AddrPort {
	port := binary.BigEndian.Uint16(s[2:])
	if binary.NativeEndian.Uint16(s[0:]) == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s[4:8])), port)
	}
	ip := netip.AddrFrom16([16]byte(s[8:24]))
	if index := binary.NativeEndian.Uint32(s[24:]); index != 0 {
		ip = ip.WithZone(strconv.Itoa(int(index)))
	}
	return netip.AddrPortFrom(ip, port)
}
