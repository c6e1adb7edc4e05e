package quicnet

import (
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/net/ipv4"
)

// socket is the UDP socket of a dialer. It counts what arrives, and where the system tells of them
// it hears refusals: the ICMP messages of a machine on which nothing listens at the server's port.
// QUIC knows neither, and the system reports a refusal as an error of the next read or write, which
// would end every connection of the socket.
type socket struct {
	*net.UDPConn
	batch   *ipv4.PacketConn
	arrived atomic.Uint64 // packets, or batches of them
	refused func(netip.AddrPort)
}

// newSocket takes a socket over. refused is called for each refusal, on a goroutine that reads or
// writes.
func newSocket(udp *net.UDPConn, refused func(netip.AddrPort)) *socket {
	s := &socket{UDPConn: udp, batch: ipv4.NewPacketConn(udp), refused: refused}
	s.hearRefusals()
	return s
}

// ReadBatch is how QUIC reads where the system has batches.
func (s *socket) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	for {
		n, err := s.batch.ReadBatch(ms, flags)
		if err != nil && s.takeRefusals() {
			continue
		}
		s.arrived.Add(1)
		return n, err
	}
}

// ReadMsgUDP is how it reads elsewhere.
func (s *socket) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	n, oobn, flags, addr, err = s.UDPConn.ReadMsgUDP(b, oob)
	s.arrived.Add(1)
	return n, oobn, flags, addr, err
}

// writeAttempts bounds how often a write fails by errors of packets before it: each has one.
const writeAttempts = 4

// WriteMsgUDP is how QUIC writes.
func (s *socket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	for range writeAttempts {
		if n, oobn, err = s.UDPConn.WriteMsgUDP(b, oob, addr); err == nil || !s.takeRefusals() {
			break
		}
	}
	return n, oobn, err
}
