package quicnet

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
)

// refusedAfter is the time without packets after a refusal after which a connection counts as lost.
// A refusal alone is not enough, because it can be forged; a live connection receives packets
// within this time.
const refusedAfter = 250 * time.Millisecond

// refusals end the connections of a dialer to a vanished server: the server's machine refuses their
// packets, so the loss is detected long before the idle timeout. Any goroutine may use them.
type refusals struct {
	mu    sync.Mutex
	conns map[*quic.Conn]*watched
}

// watched is a connection to a server.
type watched struct {
	received func() uint64 // number of packets
	examined bool          // a refusal is being examined
}

// add starts watching a connection.
func (r *refusals) add(conn *quic.Conn, received func() uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns == nil {
		r.conns = map[*quic.Conn]*watched{}
	}
	r.conns[conn] = &watched{received: received}
}

// remove stops watching a connection.
func (r *refusals) remove(conn *quic.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
}

// refused handles a refusal of packets to an address: after refusedAfter it examines the
// connections to that address.
func (r *refusals) refused(addr netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn, w := range r.conns {
		to, ok := conn.RemoteAddr().(*net.UDPAddr)
		if !ok || w.examined || to.Port != int(addr.Port()) || !to.IP.Equal(addr.Addr().AsSlice()) {
			continue
		}
		w.examined = true
		received := w.received()
		time.AfterFunc(refusedAfter, func() { r.examine(conn, received) })
	}
}

// examine closes a connection that has received no packets since a refusal.
func (r *refusals) examine(conn *quic.Conn, received uint64) {
	r.mu.Lock()
	w := r.conns[conn]
	if w != nil {
		w.examined = false
	}
	r.mu.Unlock()
	if w != nil && w.received() == received {
		closeConn(conn, transport.CodeLost, "connection refused: no process listens on the server's port")
	}
}
