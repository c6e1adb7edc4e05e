package memnet

import (
	"bytes"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/transport"
)

const (
	// IdleTimeout is after how long an end that can hear nothing gives the connection
	// up, as in the configuration of the QUIC driver.
	IdleTimeout = 10 * time.Second
	// CloseLinger bounds how long a closing end waits for its reliable data, the close
	// frame included, to arrive. Then the link's own close carries the code.
	CloseLinger = time.Second
	// closeSize is the payload of the packet that closes the link.
	closeSize = 64
)

// Conn is one client's connection, and the switch board of its link.
type Conn struct {
	net            *Network
	remote         string
	client, server end

	tap     Tap
	dropped bool
}

// Counts is what became of the packets of one direction.
type Counts struct {
	Sent      uint64 // handed to the link, retransmissions included
	Lost      uint64 // by the luck of Link.Loss
	Tail      uint64 // by a full router queue
	Hole      uint64 // by a cut, or unread by a stalled client
	Delivered uint64 // copies included
}

// end is one end of a connection.
type end struct {
	conn   *Conn
	peer   *end
	link   *transport.Link // nil until the handshake is over
	out    netem.Path      // the direction away from this end
	counts Counts          // of out
	clock  Clock
	srtt   time.Duration

	stream streamOut // towards the peer
	in     streamIn
	begun  []byte // handshake: the stream so far
	read   func() // handshake: takes begun

	reception *transport.Reception // the server's half of the handshake

	deaf    bool   // nothing reaches this end
	deafSeq uint64 // counts changes of deaf, so that an old timeout finds out
	stalled bool   // takes nothing of what reaches it
	closing bool   // the linger has begun
	gone    bool
	silent  bool // gone without a word to the peer
}

// SetLink changes both directions from now on. What is under way arrives as it would have.
func (c *Conn) SetLink(l Link) { c.client.out.Link, c.server.out.Link = l, l }

// Cut makes a black hole of both directions: nothing sent or arriving from now on gets
// through, until Heal. After IdleTimeout both ends give up.
func (c *Conn) Cut() {
	c.CutDown()
	c.CutUp()
}

// CutDown makes a black hole of the direction to the client.
func (c *Conn) CutDown() { c.client.deafen() }

// CutUp makes a black hole of the direction to the server.
func (c *Conn) CutUp() { c.server.deafen() }

// Heal ends every cut.
func (c *Conn) Heal() {
	if !c.dropped {
		c.client.hear()
		c.server.hear()
	}
}

// Drop makes the client vanish without a word: a cut that never heals.
func (c *Conn) Drop() {
	c.dropped = true
	c.Cut()
}

// Break breaks the connection without a word: the client notices at once, the server has to find
// out.
func (c *Conn) Break() {
	c.Drop()
	c.client.end(transport.Closed{Code: transport.CodeLost, Text: "the connection broke"})
}

// Stall makes the client stop reading, or start again: meanwhile nothing is taken of what
// the server sends to it, so that the server's slot stays taken, and what is under way is
// not read. The connection stays up, as QUIC's stack keeps it up, and what the client
// itself flushes still leaves.
func (c *Conn) Stall(stall bool) {
	c.client.stalled = stall
	c.server.pump()
}

// SetClock gives the client a clock that differs from the network's: what its session is told as
// time is by that clock. Call it right after Dial; the client's owner then has to use it too.
func (c *Conn) SetClock(k Clock) { c.client.clock = k }

// Counts returns what became of the packets to the server and to the client.
func (c *Conn) Counts() (up, down Counts) { return c.client.counts, c.server.counts }

// Tap is told what the server sends: each datagram, and the bytes of the stream in their order,
// once, whatever becomes of them on the way. It must not keep them.
type Tap func(b []byte, datagram bool)

// SetTap taps what the server sends from now on.
func (c *Conn) SetTap(t Tap) { c.tap = t }

// Remote is the address by which the server knows the client.
func (c *Conn) Remote() string { return c.remote }

// Open reports whether either end still holds the connection.
func (c *Conn) Open() bool { return !c.client.gone || !c.server.gone }

// now is the time by this end's clock.
func (e *end) now() time.Duration { return e.clock.At(e.conn.net.Now()) }

// start begins the session of this end.
func (e *end) start(cfg transport.SessionConfig) *transport.Session {
	if cfg.Clock == nil {
		cfg.Clock = e.now
	}
	var s *transport.Session
	s, e.link = transport.NewSession(cfg)
	e.link.SetRTT(e.rtt())
	return s
}

// pump takes what the session has to send, and sees to its closing.
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

// sendDatagram sends a datagram. This link takes everything.
func (e *end) sendDatagram(b []byte) error {
	n := e.conn.net
	e.tapped(b, true)
	t := e.send(len(b))
	for _, at := range t.At[:t.Copies] {
		// Each copy is one: the receiver owns what it gets.
		n.events.Push(at, event{to: e.peer, data: bytes.Clone(b), sent: n.Now()})
	}
	return nil
}

// tapped tells the tap what this end sends, if it is the server's.
func (e *end) tapped(b []byte, datagram bool) {
	if c := e.conn; c.tap != nil && e == &c.server {
		c.tap(b, datagram)
	}
}

// send sends a packet and counts what becomes of it.
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

// receive takes a datagram.
func (e *end) receive(at time.Duration, d *event) {
	if e.gone || e.link == nil {
		return // It overtook the handshake, or comes too late.
	}
	if e.deaf || e.stalled {
		e.peer.counts.Hole++
		return
	}
	e.peer.counts.Delivered++
	e.peer.measure(at - d.sent)
	e.link.ReceiveDatagram(e.now(), d.data)
	e.pump() // The answer to a time request does not wait for a flush.
}

// measure takes a round trip of a packet that this end sent and that took so long to
// arrive; its acknowledgement waits for the way back as it is now.
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

// rtt is the round trip as this end knows it.
func (e *end) rtt() time.Duration {
	if e.srtt > 0 {
		return e.srtt
	}
	return e.out.Link.Delay + e.peer.out.Link.Delay
}

// deafen makes sure that nothing reaches this end, which then gives up in a while.
func (e *end) deafen() {
	if e.deaf || e.gone {
		return
	}
	e.deaf = true
	e.deafSeq++
	seq := e.deafSeq
	e.conn.net.after(IdleTimeout, func() {
		if e.deafSeq == seq && !e.gone {
			e.end(transport.Closed{Code: transport.CodeLost, Text: "no sign of the peer for " + IdleTimeout.String()})
			e.silent = true
			e.peer.deafen()
		}
	})
}

// hear ends deafness, unless there is nothing to hear any more.
func (e *end) hear() {
	if e.peer.silent {
		return
	}
	e.deaf = false
	e.deafSeq++
}

// close carries on what the session's Close or Shutdown began: once its reliable data has
// arrived, or has had its time, the link is closed.
func (e *end) close() {
	if _, ending := e.link.Cause(); !ending {
		return
	}
	if !e.closing {
		e.closing = true
		e.conn.net.after(CloseLinger, e.hangUp)
	}
	if _, ready := e.link.CloseRequested(); ready && e.stream.idle() {
		e.hangUp()
	}
}

// hangUp closes the link from this end, with the code for the peer.
func (e *end) hangUp() {
	if e.gone {
		return
	}
	c, _ := e.link.Cause()
	e.quit(c)
}

// quit ends this end and tells the peer, as QUIC's CONNECTION_CLOSE does.
func (e *end) quit(c transport.Closed) {
	e.end(c)
	e.sure(closeSize, func() bool {
		c.Remote = true
		e.peer.end(c)
		return true
	})
}

// end is the end of this end.
func (e *end) end(c transport.Closed) {
	if e.gone {
		return
	}
	e.gone = true
	if e.link != nil {
		e.link.End(c)
	}
}
