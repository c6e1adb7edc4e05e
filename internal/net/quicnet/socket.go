package quicnet

import (
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/net/ipv4"
)

// socket is the UDP socket of a dialer. It counts arrivals and, where the system reports them,
// handles refusals: the ICMP messages of a machine without a listener at the server's port. QUIC
// uses neither, and the system reports a refusal as an error of the next read or write, which would
// end every connection of the socket.
type socket struct {
	*net.UDPConn
	batch   *ipv4.PacketConn
	arrived atomic.Uint64 // packets, or batches of them
	refused func(netip.AddrPort)
}

// newSocket wraps a UDP socket. refused is called for each refusal, on a goroutine that reads or
// writes.
func newSocket(udp *net.UDPConn, refused func(netip.AddrPort)) *socket {
	s := &socket{UDPConn: udp, batch: ipv4.NewPacketConn(udp), refused: refused}
	s.hearRefusals()
	return s
}

// ReadBatch is called by QUIC where the system has batches.
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

// ReadMsgUDP is called by QUIC elsewhere.
func (s *socket) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	n, oobn, flags, addr, err = s.UDPConn.ReadMsgUDP(b, oob)
	s.arrived.Add(1)
	return n, oobn, flags, addr, err
}

// writeAttempts bounds the attempts of a write that fails by errors of earlier packets.
const writeAttempts = 4

// WriteMsgUDP is called by QUIC to write.
func (s *socket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	for range writeAttempts {
		if n, oobn, err = s.UDPConn.WriteMsgUDP(b, oob, addr); err == nil || !s.takeRefusals() {
			break
		}
	}
	return n, oobn, err
}
