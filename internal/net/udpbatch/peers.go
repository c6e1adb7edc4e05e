package udpbatch

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Peers are the addresses whose packets' times of arrival somebody asks for. Only they are
// remembered, so that who forges addresses fills no memory. A nil *Peers knows nobody, and the zero
// value nobody yet.
type Peers struct {
	mu     sync.RWMutex
	byAddr map[key]*Peer
}

// Peer is what has arrived from one address lately. A nil *Peer knows nothing.
type Peer struct {
	addr *net.UDPAddr
	key  key
	used int // by how many, under the mutex of Peers

	mu    sync.Mutex
	marks [peerMarks]mark // the newest is the one before next
	next  int
}

// mark is the arrival of one packet.
type mark struct {
	at   time.Time
	size int
}

const (
	// peerMarks is how many packets of a peer are remembered: as many as come in one round.
	peerMarks = 4
	// markAge is how old an arrival may be: several rounds. What is older belongs to a packet
	// of before, and its time would be wrong.
	markAge = 20 * time.Millisecond
	// sealed is what QUIC adds to a datagram at least: the first byte, a connection id of four,
	// a packet number, a frame's type and length, and the seal.
	sealed = 1 + 4 + 1 + 1 + 1 + 16
)

// Follow begins to remember what comes from an address. Each call needs one of Leave.
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
		p = &Peer{addr: a, key: k}
		ps.byAddr[k] = p
	}
	p.used++
	return p
}

// Leave ends what Follow began.
func (ps *Peers) Leave(p *Peer) {
	if p == nil {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.used--; p.used == 0 {
		delete(ps.byAddr, p.key)
	}
}

// Waited returns how long before now a packet arrived that held a datagram of so many bytes,
// which has just been read. It goes by the newest packet from there that is large enough: never
// by one from before the datagram's own, so the datagram has waited as long or longer.
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

// note remembers that a packet arrived.
func (p *Peer) note(at time.Time, size int) {
	p.mu.Lock()
	p.marks[p.next] = mark{at: at, size: size}
	p.next = (p.next + 1) % peerMarks
	p.mu.Unlock()
}

// key is how an address is looked up: IPv4 is the same on a socket for both.
type key netip.AddrPort

func keyOf(a netip.AddrPort) key {
	return key(netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()))
}
