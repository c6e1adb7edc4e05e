package sealed

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// tokenSize is the number of bytes of a challenge.
	tokenSize = 8
	// keptTokens is the number of the newest challenges whose responses count.
	keptTokens = 8
)

// Channel carries the datagrams of one QUIC connection as records, beside it.
type Channel struct {
	table  *Table
	id     uint32
	active atomic.Bool
	rtt    atomic.Int64
	count  atomic.Uint64               // received records
	peer   atomic.Pointer[net.UDPAddr] // destination of records; a new pointer is a new address

	receive func(b []byte, at int, number uint32, waited time.Duration)
	changed func()
	nudge   func() // at a client's end

	opener opener // of the socket's reader

	mu      sync.Mutex
	sealer  sealer
	path    path
	control []byte // control messages for records to peer: this end's address that the peer uses
	asks    [keptTokens]ask
	asked   int // number of challenges so far
	stopped bool

	next        *net.UDPAddr // a new address of the peer before it has answered; nil: none
	nextControl []byte
	nextAsked   time.Duration // time of the last challenge to next
}

// ask is a challenge that was sent.
type ask struct {
	token [tokenSize]byte
	at    time.Duration
	to    *net.UDPAddr
}

// Open returns a channel to the peer's address, for a connection with a complete handshake. The
// client's end probes the path after Start, the server's end after the first record has arrived. A
// client's end calls nudge, which must not be nil there, to send a packet of QUIC when the client
// has a new address or the server does not answer; nudge must not wait. Open returns nil if the
// channel's keys cannot be derived.
func (t *Table) Open(state tls.ConnectionState, peer *net.UDPAddr, nudge func()) *Channel {
	return t.open(newKeyring(state.CipherSuite, state.ExportKeyingMaterial), peer, nudge)
}

func (t *Table) open(keys *keyring, peer *net.UDPAddr, nudge func()) *Channel {
	c := &Channel{table: t, nudge: nudge}
	client := nudge != nil
	own, other := fromServer, fromClient
	if client {
		own, other = other, own
	}
	first, err := keys.phase(0)
	if err != nil || c.sealer.open(keys, own, first.id) != nil || c.opener.open(keys, other) != nil {
		return nil
	}
	c.id, c.path.patient = first.id, !client
	c.peer.Store(peer)
	return c
}

// Start begins to receive. The channel calls receive for each datagram: its data is b[at:], number
// has the low 32 bits of its number, and waited is the time for which it waited in the socket.
// receive must not keep b, but may change it. The channel calls changed when Active, RTT or
// RemoteAddr has changed. The socket's reader calls both functions; a timer also calls changed.
func (c *Channel) Start(receive func(b []byte, at int, number uint32, waited time.Duration), changed func()) {
	c.receive, c.changed = receive, changed
	c.path.since = c.table.now()
	if !c.table.add(c) {
		return // Another connection has this id: QUIC carries the datagrams.
	}
	c.tick(c.table.now())
}

// Stop ends the channel. A call of receive or changed may still run.
func (c *Channel) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.setActiveLocked(false)
	c.mu.Unlock()
	c.table.remove(c)
}

// Active reports whether datagrams travel as records now.
func (c *Channel) Active() bool { return c.active.Load() }

// RTT returns the smoothed round trip of the records, 0 while it is not known.
func (c *Channel) RTT() time.Duration { return time.Duration(c.rtt.Load()) }

// Received returns the number of authentic records of the peer.
func (c *Channel) Received() uint64 { return c.count.Load() }

// RemoteAddr returns the address to which records are sent. It is the same pointer until the
// address changes.
func (c *Channel) RemoteAddr() net.Addr { return c.peer.Load() }

// Send sends a datagram as a record, and does not keep b. It does not wait: a datagram is lost if
// the socket has no room for it.
func (c *Channel) Send(number uint32, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	c.path.sent(c.table.now())
	c.sendLocked(kindDatagram, number, b, c.peer.Load(), c.control)
}

// PeerReturned tells the channel that a datagram of the peer has arrived over QUIC: the peer no
// longer gets records, so the channel returns to QUIC too. A path that became active only recently
// does not end, because the datagram may have been sent before.
func (c *Channel) PeerReturned() {
	c.mu.Lock()
	ended := !c.stopped && c.path.peerReturned(c.table.now())
	if ended {
		c.returnLocked()
	}
	c.mu.Unlock()
	if ended {
		c.changed()
	}
}

// returnLocked returns to QUIC.
func (c *Channel) returnLocked() {
	c.setActiveLocked(false)
	c.table.cfg.Stats.Returns.Add(1)
}

// setActiveLocked sets Active and counts the active channels.
func (c *Channel) setActiveLocked(active bool) {
	switch was := c.active.Swap(active); {
	case active && !was:
		c.table.cfg.Stats.Active.Add(1)
	case was && !active:
		c.table.cfg.Stats.Active.Add(-1)
	}
}

// sendLocked seals and sends one record.
func (c *Channel) sendLocked(kind byte, number uint32, data []byte, to *net.UDPAddr, control []byte) {
	b, err := c.sealer.seal(kind, number, data)
	if err == nil {
		err = c.table.cfg.Write(b, control, to)
	}
	if err != nil {
		c.table.cfg.Stats.Unsent.Add(1)
		return
	}
	c.table.cfg.Stats.Sent.Add(1)
}

// askLocked sends a challenge to an address.
func (c *Channel) askLocked(now time.Duration, kind byte, to *net.UDPAddr, control []byte) {
	a := &c.asks[c.asked%keptTokens]
	c.asked++
	_, _ = rand.Read(a.token[:]) // It never fails.
	a.at, a.to = now, to
	c.sendLocked(kind, 0, a.token[:], to, control)
}

// tick sends the challenges that are due.
func (c *Channel) tick(now time.Duration) {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return
	}
	due, ended := c.path.tick(now)
	if due {
		if c.path.silent(now) {
			c.wakeQUIC() // The server may have restarted, and only QUIC detects that.
		}
		c.askLocked(now, kindChallenge, c.peer.Load(), c.control)
	}
	if ended {
		c.returnLocked()
	}
	c.mu.Unlock()
	if ended {
		c.changed()
	}
}

// wakeQUIC makes a client send a packet of QUIC.
func (c *Channel) wakeQUIC() {
	if c.nudge != nil {
		c.nudge()
	}
}

// take handles an arrived record, on the socket's reader.
func (c *Channel) take(b []byte, from netip.AddrPort, control []byte, waited time.Duration) error {
	r, err := c.opener.unseal(b)
	if err != nil {
		return err
	}
	c.count.Add(1)
	now := c.table.now()
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.path.arrived(now, r.kind == kindDatagram)
	c.followLocked(now, r, from, control)
	switch r.kind {
	case kindChallenge, kindMoved:
		c.respondLocked(r.packet[headerSize:], from, control)
	case kindResponse:
		c.answeredLocked(now, r.packet[headerSize:])
	}
	if c.path.hinted(now) {
		c.askLocked(now, kindChallenge, c.peer.Load(), c.control)
	}
	c.mu.Unlock()
	switch r.kind {
	case kindDatagram:
		c.receive(r.packet, headerSize, r.number, waited)
	case kindResponse:
		c.changed()
	case kindMoved:
		c.wakeQUIC()
	}
	return nil
}

// respondLocked returns the bytes of a challenge to its sender.
func (c *Channel) respondLocked(token []byte, from netip.AddrPort, control []byte) {
	if len(token) != tokenSize {
		return
	}
	c.sendLocked(kindResponse, 0, token, net.UDPAddrFromAddrPort(from), control)
}

// answeredLocked handles a response.
func (c *Channel) answeredLocked(now time.Duration, token []byte) {
	for i := range c.asks {
		a := &c.asks[i]
		if a.to == nil || !bytes.Equal(a.token[:], token) {
			continue
		}
		if a.to == c.next {
			c.peer.Store(c.next)
			c.control, c.nextControl, c.next = c.nextControl, c.control, nil
			c.table.cfg.Stats.Moves.Add(1)
		}
		a.to = nil
		if c.path.answer(now, a.at) {
			c.setActiveLocked(true)
			c.table.cfg.Stats.Begins.Add(1)
		}
		c.rtt.Store(int64(c.path.rtt))
		return
	}
}

// followLocked challenges a new address of the peer, from which the newest record has arrived.
// Records are still sent to the former address until the peer answers from the new one. Only
// records from the new address cause challenges to it, so a peer that forges its address can
// hardly amplify.
func (c *Channel) followLocked(now time.Duration, r record, from netip.AddrPort, control []byte) {
	switch {
	case !r.newest:
		return
	case same(c.peer.Load(), from):
		c.control, c.next = append(c.control[:0], control...), nil
		return
	case !c.path.patient: // A server does not change its address.
		return
	case !same(c.next, from):
		c.next = net.UDPAddrFromAddrPort(from)
		c.nextControl = append(c.nextControl[:0], control...)
	case now-c.nextAsked < max(askPeriod, c.path.rtt/2):
		return
	}
	c.nextAsked = now
	c.askLocked(now, kindMoved, c.next, c.nextControl)
}

// same reports whether a, which may be nil, is the same address as b.
func same(a *net.UDPAddr, b netip.AddrPort) bool {
	if a == nil || a.Port != int(b.Port()) {
		return false
	}
	ip, ok := netip.AddrFromSlice(a.IP)
	return ok && ip.Unmap() == b.Addr().Unmap().WithZone("")
}
