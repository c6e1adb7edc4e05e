package room

import (
	"slices"
	"sync/atomic"

	"github.com/netloop/netloop/internal/transport"
)

// A room continues on another server in these steps, all on the room's goroutine, between two
// ticks:
//
//	Between ──▶ after the running tick, or the next one: the function of Between
//	              an error: the next tick follows
//	            Depart: each client with a move is sent it, and leaves
//	            the room ends

// Transfer is the move of a room to another server.
type Transfer struct {
	*core
	room  *Room
	asked atomic.Pointer[func() *transport.Closed]
	busy  atomic.Bool // from Between until its function has returned
}

// Between makes fn run once on the room's goroutine, after the running tick or the next one. No
// tick runs meanwhile. The room ends if fn returns a reason. Between reports false, without an
// effect, while an earlier function waits or runs. Any goroutine may call it.
func (p *Transfer) Between(fn func() *transport.Closed) bool {
	if !p.busy.CompareAndSwap(false, true) {
		return false
	}
	p.asked.Store(&fn)
	p.Sleep.rouse()
	return true
}

// run runs the function of Between, after a tick.
func (p *Transfer) run() {
	fn := p.asked.Swap(nil)
	if fn == nil {
		return
	}
	defer p.busy.Store(false)
	if why := (*fn)(); why != nil {
		p.room.Shutdown.closing = why
	}
}

// Depart lets clients leave for the server on which the room continues. moves has the moves by the
// ids of the clients. It is called by the function of Between.
func (p *Transfer) Depart(moves map[uint64]transport.MovedTo, text string) error {
	return p.Inspect(func() {
		for _, c := range slices.Clone(p.clients.list) {
			m, ok := moves[c.id]
			if !ok || c.kicked != nil {
				continue
			}
			connected := c.dropped == nil
			p.room.connections.leave(c, &transport.Closed{Code: transport.CodeMoved})
			switch {
			case !connected:
			case c.canTravel && c.session.Travel(m): // The client continues to the other server.
				c.session.Close(transport.CodeClosing, text)
			default:
				c.session.Close(transport.CodeMoved, m.Ticket)
			}
		}
	})
}
