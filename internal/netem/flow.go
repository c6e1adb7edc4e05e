package netem

import (
	"container/list"
	"iter"
	"math/rand/v2"
	"net/netip"
	"time"
)

const (
	// maxFlows bounds the addresses at the other end that have a flow of their own, at about 1 KiB
	// each. It is larger than the capacity of a room. Above it the flow that was silent for longest
	// is dropped: the next datagram of this flow opens a new one, with new random numbers and
	// without the earlier rebinds.
	maxFlows = 16_384
	// flowIdle is the time for which a flow without datagrams is kept. It is longer than the idle
	// timeout of a connection.
	flowIdle = time.Minute
	// firstPort is the first port that is assigned to clients.
	firstPort = 1024
)

// flow is the path between this end and one address at the other end.
type flow struct {
	peer    netip.AddrPort // the other end, as the socket addresses it
	shown   netip.AddrPort // as the program addresses it
	began   time.Duration
	bound   time.Duration // time of the flow's start or of its last rebind
	used    time.Duration // time of the last datagram
	paths   [directions]Path
	damage  [directions]*rand.Rand
	waiting [directions]int // bytes
	recent  *list.Element
}

// flows holds the flows of an Exchange. It finds a flow by flow.peer, the socket's address for the
// other end, or by flow.shown, the program's address for it.
type flows struct {
	byPeer  map[netip.AddrPort]*flow
	byShown map[netip.AddrPort]*flow
	recent  *list.List // elements are *flow, the last used first
	opened  uint64
	port    uint16 // the port that was assigned last
}

func newFlows() flows {
	return flows{byPeer: map[netip.AddrPort]*flow{}, byShown: map[netip.AddrPort]*flow{}, recent: list.New(), port: firstPort}
}

// all iterates over the flows, the last used first.
func (fs *flows) all() iter.Seq[*flow] {
	return func(yield func(*flow) bool) {
		for e := fs.recent.Front(); e != nil && yield(e.Value.(*flow)); e = e.Next() {
		}
	}
}

// of returns the flow of an address at the other end, or nil.
func (fs *flows) of(peer netip.AddrPort, now time.Duration) *flow {
	fs.forget(now)
	return fs.use(fs.byPeer[peer], now)
}

// shownAs returns the flow whose address for the program is shown, or nil.
func (fs *flows) shownAs(shown netip.AddrPort, now time.Duration) *flow {
	fs.forget(now)
	return fs.use(fs.byShown[shown], now)
}

func (fs *flows) use(f *flow, now time.Duration) *flow {
	if f != nil {
		f.used = now
		fs.recent.MoveToFront(f.recent)
	}
	return f
}

// open begins a flow. The program gets the peer's own address, or another port of the same host if
// that address is assigned to another flow.
func (fs *flows) open(peer netip.AddrPort, now time.Duration) *flow {
	for fs.recent.Len() >= maxFlows {
		fs.drop(fs.recent.Back().Value.(*flow))
	}
	fs.opened++
	f := &flow{peer: peer, shown: peer, began: now, bound: now, used: now}
	if fs.byShown[peer] != nil {
		f.shown = fs.free(peer)
	}
	f.recent = fs.recent.PushFront(f)
	fs.byPeer[peer], fs.byShown[f.shown] = f, f
	return f
}

// forget drops the flows that have been idle for flowIdle.
func (fs *flows) forget(now time.Duration) {
	for e := fs.recent.Back(); e != nil && now-e.Value.(*flow).used > flowIdle; e = fs.recent.Back() {
		fs.drop(e.Value.(*flow))
	}
}

func (fs *flows) drop(f *flow) {
	fs.recent.Remove(f.recent)
	delete(fs.byPeer, f.peer)
	delete(fs.byShown, f.shown)
}

// rebind assigns a flow another port of the same host.
func (fs *flows) rebind(f *flow) {
	delete(fs.byShown, f.shown)
	f.shown = fs.free(f.peer)
	fs.byShown[f.shown] = f
}

// free returns an unused port of a peer's host. One exists: maxFlows is far below the number of
// ports.
func (fs *flows) free(peer netip.AddrPort) netip.AddrPort {
	for {
		if fs.port++; fs.port < firstPort {
			fs.port = firstPort
		}
		addr := netip.AddrPortFrom(peer.Addr(), fs.port)
		if fs.byPeer[addr] == nil && fs.byShown[addr] == nil {
			return addr
		}
	}
}
