package memnet

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/transport"
)

const (
	// IdleTimeout is the time after which an end that receives no packets drops the connection, as
	// in the configuration of the QUIC transport.
	IdleTimeout = 10 * time.Second
	// CloseLinger bounds the time that a closing end waits until its reliable data, including the
	// close frame, has arrived. After that the packet that closes the link has the code.
	CloseLinger = time.Second
	// closeSize is the payload of the packet that closes the link.
	closeSize = 64
)

// Conn is one client's connection, with controls for faults of its link.
type Conn struct {
	net            *Network
	remote         string
	client, server end

	tap     Tap
	dropped bool

	left     int    // bytes of the stream until the client vanishes, if vanished is set
	vanished func() // see DropAfter
}

// Counts are the packets of one direction, by outcome.
type Counts struct {
	Sent      uint64 // passed to the link, including retransmissions
	Lost      uint64 // at random, by Link.Loss
	Tail      uint64 // dropped by a full router queue
	Hole      uint64 // dropped by a cut, or not read by a stalled client
	Delivered uint64 // delivered, including copies
}

// end is one end of a connection.
type end struct {
	conn   *Conn
	peer   *end
	link   *transport.Link // nil until the handshake is complete
	out    netem.Path      // the direction away from this end
	counts Counts          // packets of out
	clock  Clock
	srtt   time.Duration
	woken  atomic.Bool // the session has data to send since the last pump of Take, or has ended

	stream streamOut // towards the peer
	in     streamIn
	begun  []byte // handshake: the unread bytes of the stream
	read   func() // handshake: reads begun

	reception *transport.Reception // the server's half of the handshake

	deaf    bool   // no packet reaches this end
	deafSeq uint64 // counts changes of deaf, so that an old timeout has no effect
	stalled bool   // accepts no packet that reaches it
	forge   Forge  // changes the data that this end sends; nil: no changes
	closing bool   // CloseLinger has begun
	gone    bool
	silent  bool // ended without telling the peer
}

// SetLink changes both directions from now on. Packets in flight keep their arrival times.
func (c *Conn) SetLink(l Link) { c.client.out.Link, c.server.out.Link = l, l }

// Cut drops all packets of both directions, including packets in flight, until Heal. After
// IdleTimeout both ends drop the connection.
func (c *Conn) Cut() {
	c.CutDown()
	c.CutUp()
}

// CutDown drops all packets to the client.
func (c *Conn) CutDown() { c.client.deafen() }

// CutUp drops all packets to the server.
func (c *Conn) CutUp() { c.server.deafen() }

// Heal ends every cut.
func (c *Conn) Heal() {
	if !c.dropped {
		c.client.hear()
		c.server.hear()
	}
}

// Drop makes the client vanish without telling the server: a cut that never heals.
func (c *Conn) Drop() {
	c.dropped = true
	c.Cut()
}

// DropAfter drops the client once it has sent n more bytes of its stream, including the bytes of
// the handshake, and calls then: the server receives exactly these bytes.
func (c *Conn) DropAfter(n int, then func()) { c.left, c.vanished = n, then }

// Rebind changes the client's address, as a router may. Handler.Admit gets the new address from now
// on.
func (c *Conn) Rebind(addr string) { c.remote = addr }

// Break breaks the connection: the client detects it at once, the server only after IdleTimeout.
func (c *Conn) Break() {
	c.Drop()
	c.client.end(transport.Closed{Code: transport.CodeLost, Text: "connection is broken"})
}

// Stall makes the client stop reading, or start again. While it is stalled, the network accepts no
// data from the server for it, so that the server's slot remains full, and packets in flight are
// not read. The connection remains open, as with QUIC, and data that the client flushes is still
// sent.
func (c *Conn) Stall(stall bool) {
	c.client.stalled = stall
	c.server.pump()
}

// SetClock gives the client a clock that differs from the network's; its session gets times of that
// clock. Call it directly after Dial; the client's owner must use the same clock.
func (c *Conn) SetClock(k Clock) { c.client.clock = k }

// Counts returns the packets to the server and to the client, by outcome.
func (c *Conn) Counts() (up, down Counts) { return c.client.counts, c.server.counts }

// Tap gets the data that the server sends: each datagram, and the bytes of the stream in order,
// once, even if they are lost. It must not keep the bytes.
type Tap func(b []byte, datagram bool)

// SetTap sets the Tap for data that the server sends from now on.
func (c *Conn) SetTap(t Tap) { c.tap = t }

// Forge returns the changed bytes of a datagram or of a segment of the stream: the data of a
// hostile program. It may change b.
type Forge func(b []byte, datagram bool) []byte

// SetForge changes the data that the client sends, and that the server sends, from now on. Nil
// changes nothing.
func (c *Conn) SetForge(up, down Forge) { c.client.forge, c.server.forge = up, down }

// Remote returns the client's address at the server.
func (c *Conn) Remote() string { return c.remote }

// Open reports whether either end is still connected.
func (c *Conn) Open() bool { return !c.client.gone || !c.server.gone }

// now is the time of this end's clock.
func (e *end) now() time.Duration { return e.clock.At(e.conn.net.Now()) }

// start begins the session of this end.
func (e *end) start(cfg transport.SessionConfig) *transport.Session {
	if cfg.Clock == nil {
		cfg.Clock = e.now
	}
	var s *transport.Session
	s, e.link = transport.NewSession(cfg)
	e.link.SetRTT(e.rtt())
	wake := func() { e.woken.Store(true) }
	e.link.OnWake(wake, wake)
	return s
}

// take pumps if the session has asked for it.
func (e *end) take() {
	if e.woken.Load() {
		e.woken.Store(false)
		e.pump()
	}
}

// pump sends the session's pending data, and closes the link of a closing session.
func (e *end) pump() {
	if e.gone || e.link == nil {
		return
	}
	if !e.peer.stalled {
		_ = e.link.SendDatagrams(e.now, e.sendDatagram) // sendDatagram never fails.
		e.takeStream()
	}
	e.close()
}

// sendDatagram sends a datagram. It never fails.
func (e *end) sendDatagram(b []byte) error {
	n := e.conn.net
	e.tapped(b, true)
	b = e.forged(b, true)
	t := e.send(len(b))
	for _, at := range t.At[:t.Copies] {
		// The receiver owns its bytes, so each copy is cloned.
		n.events.Push(at, event{to: e.peer, data: bytes.Clone(b), sent: n.Now()})
	}
	return nil
}

// tapped passes data of the server's end to the tap.
// forged returns the bytes that the end sends instead of b.
func (e *end) forged(b []byte, datagram bool) []byte {
	if e.forge == nil {
		return b
	}
	return e.forge(bytes.Clone(b), datagram)
}

func (e *end) tapped(b []byte, datagram bool) {
	if c := e.conn; c.tap != nil && e == &c.server {
		c.tap(b, datagram)
	}
}

// send sends a packet and counts its outcome.
func (e *end) send(size int) netem.Transit {
	e.counts.Sent++
	if e.peer.deaf {
		e.counts.Hole++
		return netem.Transit{}
	}
	t := e.out.Send(e.conn.net.Now(), size+overhead)
	switch {
	case t.Tail:
		e.counts.Tail++
	case t.Copies == 0:
		e.counts.Lost++
	}
	return t
}

// receive accepts a datagram.
func (e *end) receive(at time.Duration, d *event) {
	if e.gone || e.link == nil {
		return // The datagram overtook the handshake, or is too late.
	}
	if e.deaf || e.stalled {
		e.peer.counts.Hole++
		return
	}
	e.peer.counts.Delivered++
	e.peer.measure(at - d.sent)
	e.link.ReceiveDatagram(e.now(), d.data)
	e.pump() // The answer to a time request must not wait for a flush.
}

// measure updates the round trip from a packet of this end that took transit to arrive. It assumes
// that the acknowledgement has the current delay of the other direction.
func (e *end) measure(transit time.Duration) {
	back := &e.peer.out
	sample := transit + back.Link.Delay + back.Backlog(e.conn.net.Now())
	if e.srtt == 0 {
		e.srtt = sample
	}
	e.srtt += (sample - e.srtt) / 8 // RFC 6298, as in QUIC.
	if e.link != nil {
		e.link.SetRTT(e.srtt)
	}
}

// rtt returns the round trip that this end has measured, or before the first sample the round trip
// of the link.
func (e *end) rtt() time.Duration {
	if e.srtt > 0 {
		return e.srtt
	}
	return e.out.Link.Delay + e.peer.out.Link.Delay
}

// deafen drops all packets to this end from now on. Unless hear is called within IdleTimeout, the
// end then drops the connection.
func (e *end) deafen() {
	if e.deaf || e.gone {
		return
	}
	e.deaf = true
	e.deafSeq++
	seq := e.deafSeq
	e.conn.net.after(IdleTimeout, func() {
		if e.deafSeq == seq && !e.gone {
			e.end(transport.Closed{Code: transport.CodeLost, Text: "no packet from the peer for " + IdleTimeout.String()})
			e.silent = true
			e.peer.deafen()
		}
	})
}

// hear undoes deafen, unless the peer has ended without telling this end.
func (e *end) hear() {
	if e.peer.silent {
		return
	}
	e.deaf = false
	e.deafSeq++
}

// close closes the link of a closing session when the reliable data has arrived, or after
// CloseLinger. Without a closing session it has no effect.
func (e *end) close() {
	if _, ending := e.link.Cause(); !ending {
		return
	}
	if !e.closing {
		e.closing = true
		e.conn.net.after(CloseLinger, e.closeLink)
	}
	if _, ready := e.link.CloseRequested(); ready && e.stream.idle() {
		e.closeLink()
	}
}

// closeLink closes the link from this end, with the code for the peer.
func (e *end) closeLink() {
	if e.gone {
		return
	}
	c, _ := e.link.Cause()
	e.quit(c)
}

// quit ends this end and informs the peer, like QUIC's CONNECTION_CLOSE.
func (e *end) quit(c transport.Closed) {
	if e.end(c); e.silent {
		return
	}
	e.sendReliable(closeSize, func() bool {
		c.Remote = true
		e.peer.end(c)
		return true
	})
}

// end ends this end's session, once.
func (e *end) end(c transport.Closed) {
	if e.gone {
		return
	}
	e.gone = true
	if e.link != nil {
		e.link.End(c)
	}
}
