package quicnet

import (
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/net/ipv4"
)

// socket is a UDP socket of package net, of a dialer or a listener. It passes sealed records to
// their table, counts arrivals and, if the system reports them, handles refusals: ICMP messages of
// a machine without a listener at the server's port. QUIC does not use refusals, and the system
// reports them as an error of the next read or write, which would end every connection of the
// socket.
type socket struct {
	*net.UDPConn
	batch   *ipv4.PacketConn
	take    taker         // nil: all packets are for QUIC
	arrived atomic.Uint64 // number of packets, or of batches
	refused func(netip.AddrPort)
}

// newSocket wraps a UDP socket. refused is called for each refusal, on a goroutine that reads or
// writes; nil: the socket of a listener, which does not ask the system for refusals.
func newSocket(udp *net.UDPConn, take taker, refused func(netip.AddrPort)) *socket {
	s := &socket{UDPConn: udp, batch: ipv4.NewPacketConn(udp), take: take, refused: refused}
	if refused != nil {
		s.hearRefusals()
	}
	return s
}

// QUIC calls ReadBatch on systems with batches.
func (s *socket) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	for {
		n, err := s.batch.ReadBatch(ms, flags)
		if s.earlier(err) {
			continue
		}
		s.arrived.Add(1)
		if n = s.filter(ms[:max(n, 0)]); n > 0 || err != nil {
			return n, err
		}
	}
}

// filter passes the records among packets to take, moves the other packets to the front, and
// returns their number.
func (s *socket) filter(ms []ipv4.Message) (kept int) {
	for i := range ms {
		m, to := &ms[i], &ms[kept] //nolint:gosec // kept is at most i.
		from, ok := m.Addr.(*net.UDPAddr)
		if ok && s.take != nil && s.take(m.Buffers[0][:m.N], from.AddrPort(), nil, 0) {
			continue
		}
		if kept < i { // QUIC owns the buffers by their index.
			to.N, to.NN, to.Flags, to.Addr = copy(to.Buffers[0], m.Buffers[0][:m.N]), copy(to.OOB, m.OOB[:m.NN]), m.Flags, m.Addr
		}
		kept++
	}
	return kept
}

// QUIC calls ReadFrom on systems without control messages.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, _, _, addr, err := s.ReadMsgUDP(b, nil)
	return n, addr, err
}

// QUIC calls ReadMsgUDP on all other systems.
func (s *socket) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	for {
		n, oobn, flags, addr, err = s.UDPConn.ReadMsgUDP(b, oob)
		s.arrived.Add(1)
		if err != nil || s.take == nil || !s.take(b[:n], addr.AddrPort(), nil, 0) {
			return n, oobn, flags, addr, err
		}
	}
}

// writeAttempts bounds the attempts of a write that fails because of errors of earlier packets.
const writeAttempts = 16

// WriteMsgUDP is called to write a packet of QUIC or a record.
func (s *socket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	for range writeAttempts {
		if n, oobn, err = s.UDPConn.WriteMsgUDP(b, oob, addr); !s.earlier(err) {
			break
		}
	}
	return n, oobn, err
}
