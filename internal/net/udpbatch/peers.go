package udpbatch

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Peers holds the times of arrival for followed addresses. Other addresses are not stored, so
// forged addresses fill no memory. A nil *Peers and the zero value hold no address.
type Peers struct {
	mu     sync.RWMutex
	byAddr map[key]*Peer
}

// Peer holds the recent arrivals from one address. A nil *Peer holds none.
type Peer struct {
	addr *net.UDPAddr
	key  key
	of   *Peers
	used int // number of followers, under the mutex of Peers

	mu    sync.Mutex
	marks [peerMarks]mark // newest at next-1
	next  int
}

// mark is the arrival of one packet.
type mark struct {
	at   time.Time
	size int
}

const (
	// peerMarks is the number of stored arrivals of a peer: as many as may arrive in one round.
	peerMarks = 4
	// markAge is the greatest age of an arrival: several rounds. An older arrival belongs to an
	// earlier packet, and its time would be wrong.
	markAge = 20 * time.Millisecond
	// sealed is the smallest number of bytes that QUIC adds to a datagram: the first byte, a
	// connection id of four bytes, a packet number, a frame's type and length, and the seal.
	sealed = 1 + 4 + 1 + 1 + 1 + 16
)

// Follow starts to store arrivals from an address, until Leave has been called as often as Follow.
// It returns nil for an address that is not a UDP address.
func (ps *Peers) Follow(addr net.Addr) *Peer {
	a, ok := addr.(*net.UDPAddr)
	if ps == nil || !ok {
		return nil
	}
	k := keyOf(a.AddrPort())
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byAddr[k]
	if p == nil {
		if ps.byAddr == nil {
			ps.byAddr = make(map[key]*Peer)
		}
		p = &Peer{addr: a, key: k, of: ps}
		ps.byAddr[k] = p
	}
	p.used++
	return p
}

// Leave ends one call of Follow.
func (p *Peer) Leave() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.used--; p.used == 0 {
		delete(p.of.byAddr, p.key)
	}
}

// Waited returns the time from the arrival of a packet with a datagram of size bytes, which has
// just been read, until now, or 0 if it is unknown. It uses the newest large enough packet from
// that address, which is never older than the datagram's own packet, so the true wait is at least
// as long.
func (p *Peer) Waited(size int, now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := 1; i <= peerMarks; i++ {
		m := &p.marks[(p.next+peerMarks-i)%peerMarks]
		if m.size >= size+sealed {
			if d := now.Sub(m.at); d <= markAge {
				return max(d, 0)
			}
			break
		}
	}
	return 0
}

// note stores the arrival of a packet.
func (p *Peer) note(at time.Time, size int) {
	p.mu.Lock()
	p.marks[p.next] = mark{at: at, size: size}
	p.next = (p.next + 1) % peerMarks
	p.mu.Unlock()
}

// key identifies an address. An IPv4 address has the same key in its IPv6 form (::ffff:a.b.c.d),
// which a socket for both families reports.
type key netip.AddrPort

func keyOf(a netip.AddrPort) key {
	return key(netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()))
}
