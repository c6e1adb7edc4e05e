package memnet

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// overhead is the size of the IP, UDP and QUIC headers of a packet. It counts against the
// bandwidth, because a link counts whole packets.
const overhead = 60

// Link is the model of a client's network. Both directions have the same parameters.
type Link = netem.Link

// Network is a server, its clients and the network between them. It belongs to one goroutine, and
// so do the sessions made on it. Only Now may be called from any goroutine, for example from work
// of a game on another goroutine.
type Network struct {
	// Stats counts events before there is a session; nil: not counted.
	Stats *transport.Stats

	seed    uint64
	now     atomic.Int64 // nanoseconds
	events  netem.Schedule[event]
	handler transport.Handler
	dialled uint64
	conns   []*Conn // with at least one end alive, in the order of dialling
}

// New returns a network. All its randomness is derived from seed.
func New(seed uint64) *Network { return &Network{Stats: new(transport.Stats), seed: seed} }

// Now is the virtual time.
func (n *Network) Now() time.Duration { return time.Duration(n.now.Load()) }

// Serve sets the handler that admits clients. Until then, and with nil, dials get no answer.
func (n *Network) Serve(h transport.Handler) { n.handler = h }

// Dial starts a connection. Its handshake happens in virtual time; done is called once,
// inside Advance, with the session and the server's welcome, or with an error: a *transport.Refusal
// when the server declined, a *transport.Closed otherwise. cfg needs an Inbox. Dial sets Client
// and, if they are zero, ID from the welcome, and Clock.
func (n *Network) Dial(l Link, g transport.Greeting, cfg transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error)) *Conn {
	n.dialled++
	c := &Conn{net: n, remote: fmt.Sprintf("memory:%d", n.dialled)}
	c.client.conn, c.client.peer, c.client.out = c, &c.server, netem.NewPath(l, n.seed, 2*n.dialled)
	c.server.conn, c.server.peer, c.server.out = c, &c.client, netem.NewPath(l, n.seed, 2*n.dialled+1)
	n.conns = append(n.conns, c)
	c.dial(g, cfg, done)
	return c
}

// Advance takes the data that sessions have flushed, and then runs the network until a time, which
// becomes Now. A time in the past has only the effects of Take.
func (n *Network) Advance(to time.Duration) {
	n.Take()
	for {
		e, at, ok := n.events.Pop(to)
		if !ok {
			break
		}
		n.now.Store(int64(at))
		if e.to != nil {
			e.to.receive(at, &e)
		} else {
			e.call()
		}
	}
	n.now.Store(int64(max(n.Now(), to)))
}

// Take passes the data that sessions flushed to their links, at Now. The sessions' slots for unsent
// snapshots are free afterwards, unless a client stalls.
func (n *Network) Take() {
	alive := n.conns[:0]
	for _, c := range n.conns {
		c.server.take()
		c.client.take()
		if !c.server.gone || !c.client.gone {
			alive = append(alive, c)
		}
	}
	clear(n.conns[len(alive):])
	n.conns = alive
}

// after calls f after d.
func (n *Network) after(d time.Duration, f func()) { n.events.Push(n.Now()+d, event{call: f}) }

// event is the arrival of a datagram, or a call, at a time.
type event struct {
	to   *end // of a datagram: its receiver
	data []byte
	sent time.Duration
	call func() // of any other event
}
