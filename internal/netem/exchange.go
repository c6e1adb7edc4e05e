package netem

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"time"
)

// The limits of an Exchange. Datagrams above a limit are dropped and counted as Overflow.
const (
	// maxFlowBytes bounds the bytes that wait in one direction of one flow, to two seconds at 4
	// Mbit/s: so the flood of one client cannot use the part of maxBytes that other clients need.
	maxFlowBytes = 1 << 20
	// maxBytes bounds the bytes that wait in one direction of all flows.
	maxBytes = 32 << 20
	// headers is the size of the IPv4 and UDP headers, which count for each datagram at a
	// bottleneck.
	headers = 28
)

// Config configures an Exchange or a Conn.
type Config struct {
	Spec   Spec
	Seed   uint64 // of every decision
	Client bool   // the model is at the client's end
	Stats  *Stats // nil: not counted
}

// Exchange is the model of a network at one end of it. In is called with the datagrams that the
// socket receives, and Out with the datagrams that the program sends. One goroutine uses an
// Exchange, and passes the time as an argument.
type Exchange struct {
	cfg     Config
	flows   flows
	in, out directionQueue
	rebound bool // the client must open another socket
}

// directionQueue holds the datagrams that wait in one direction.
type directionQueue struct {
	Schedule[Packet]
	d     Direction
	bytes int
}

// Packet is a datagram that arrives.
type Packet struct {
	Addr netip.AddrPort // the other end, as the receiver of the packet addresses it
	Data []byte         // read-only: a second copy may be under way
	flow *flow
}

// NewExchange makes a network without datagrams under way.
func NewExchange(cfg Config) *Exchange {
	if cfg.Stats == nil {
		cfg.Stats = new(Stats)
	}
	x := &Exchange{cfg: cfg, flows: newFlows()}
	x.in.d, x.out.d = Up, Down
	if cfg.Client {
		x.in.d, x.out.d = Down, Up
	}
	return x
}

// Set changes the network from now on. Datagrams under way keep their arrival times.
func (x *Exchange) Set(s Spec) {
	x.cfg.Spec = s
	for f := range x.flows.all() {
		for d := range f.paths {
			f.paths[d].Link = s.Ways[d].Link
		}
	}
}

// In is called with a datagram that the socket has received, and queues the copies that will reach
// the program.
func (x *Exchange) In(now time.Duration, from netip.AddrPort, b []byte) {
	f := x.flows.of(from, now)
	if f == nil {
		if x.cfg.Client { // A router also drops datagrams that no host behind it requested.
			x.cfg.Stats.add(x.in.d, Unbound)
			return
		}
		f = x.open(from, now)
	}
	x.rebindDue(f, now)
	x.pass(&x.in, f, f.shown, now, b)
}

// Out is called with a datagram that the program sends, and queues the copies that will reach the
// other end. The address to is the one that the program uses for the other end: after a rebind it
// differs from the address that the socket uses.
func (x *Exchange) Out(now time.Duration, to netip.AddrPort, b []byte) {
	f := x.flows.shownAs(to, now)
	if f == nil && x.cfg.Client {
		f = x.open(to, now)
	}
	if f != nil {
		x.rebindDue(f, now)
	}
	if f == nil || f.shown != to { // The client with this address has another one now.
		x.cfg.Stats.add(x.out.d, Unbound)
		return
	}
	x.pass(&x.out, f, f.peer, now, b)
}

// open begins a flow. Its random numbers depend on the seed and on the number of flows before it.
func (x *Exchange) open(peer netip.AddrPort, now time.Duration) *flow {
	n := x.flows.opened * 2 * directions
	f := x.flows.open(peer, now)
	for d := range x.cfg.Spec.Ways {
		f.paths[d] = NewPath(x.cfg.Spec.Ways[d].Link, x.cfg.Seed, n+uint64(d))
		f.damage[d] = rand.New(rand.NewPCG(x.cfg.Seed, n+directions+uint64(d)))
	}
	return f
}

// Rebind changes the addresses of all clients now.
func (x *Exchange) Rebind(now time.Duration) {
	for f := range x.flows.all() {
		x.rebind(f, now)
	}
}

// rebindDue changes a client's address if Spec.Rebind has passed since the last change.
func (x *Exchange) rebindDue(f *flow, now time.Duration) {
	if every := x.cfg.Spec.Rebind; every > 0 && now-f.bound >= every {
		x.rebind(f, now)
	}
}

// rebind changes a client's address. At the client's end it only requests the change: there the
// address is that of the socket, which the model does not control.
func (x *Exchange) rebind(f *flow, now time.Duration) {
	f.bound = now
	x.cfg.Stats.Rebinds.Add(1)
	if x.cfg.Client {
		x.rebound = true
	} else {
		x.flows.rebind(f)
	}
}

// Rebound reports whether this client must open another socket, and clears the request.
func (x *Exchange) Rebound() bool {
	r := x.rebound
	x.rebound = false
	return r
}

// pass decides whether, when and how often a datagram of a flow arrives, and queues the copies that
// will arrive at addr.
func (x *Exchange) pass(l *directionQueue, f *flow, addr netip.AddrPort, now time.Duration, b []byte) {
	w, st := &x.cfg.Spec.Ways[l.d], x.cfg.Stats
	damaged, where := f.damage[l.d].Float64(), f.damage[l.d].Uint64()
	if w.Hole.has(now - f.began) {
		st.add(l.d, Blackout)
		return
	}
	t := f.paths[l.d].Send(now, len(b)+headers)
	switch {
	case t.Tail:
		st.add(l.d, Queue)
		return
	case t.Copies == 0:
		st.add(l.d, Lost)
		return
	case f.waiting[l.d]+len(b)*t.Copies > maxFlowBytes || l.bytes+len(b)*t.Copies > maxBytes:
		st.add(l.d, Overflow)
		return
	}
	st.add(l.d, Passed)
	if t.Copies > 1 {
		st.add(l.d, Duplicated)
	}
	if t.Late {
		st.add(l.d, Reordered)
	}
	data := bytes.Clone(b)
	if damaged < w.Corrupt && len(data) > 0 {
		bit := where % uint64(8*len(data))
		data[bit/8] ^= 1 << (bit % 8)
		st.add(l.d, Corrupted)
	}
	for _, at := range t.At[:t.Copies] {
		f.waiting[l.d] += len(data)
		l.bytes += len(data)
		l.Push(at, Packet{addr, data, f})
	}
}

// take returns the next datagram that has arrived.
func (l *directionQueue) take(now time.Duration) (p Packet, ok bool) {
	if p, _, ok = l.Pop(now); ok {
		p.flow.waiting[l.d] -= len(p.Data)
		l.bytes -= len(p.Data)
	}
	return p, ok
}

// Receive returns the next datagram that has crossed the network, for the program to receive.
func (x *Exchange) Receive(now time.Duration) (Packet, bool) { return x.in.take(now) }

// Send returns the next datagram that has crossed the network, and that the socket is to send.
func (x *Exchange) Send(now time.Duration) (Packet, bool) { return x.out.take(now) }
