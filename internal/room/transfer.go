package room

import (
	"slices"
	"sync/atomic"

	"github.com/netloop/netloop/internal/transport"
)

// A room continues on another server in these steps, all on the room's goroutine, between two
// ticks:
//
//	Between ──▶ after the first tick for which nothing has to wait: the function of Between
//	              an error: the next tick follows
//	            Depart: each client with a move is sent it, and leaves
//	            the room ends

// Transfer is the move of a room to another server.
type Transfer struct {
	*core
	room  *Room
	asked atomic.Pointer[between]
	busy  atomic.Bool // from Between until its function has returned
}

// between is a function that runs between two ticks.
type between struct {
	waits func() bool // or nil
	run   func() *transport.Closed
}

// Between makes fn run once on the room's goroutine, after the running tick or the next one, or
// after the first tick for which waits, unless it is nil, reports false. No tick runs meanwhile.
// The room ends if fn returns a reason. Between reports false, without an effect, while an earlier
// function waits or runs. Any goroutine may call it.
func (p *Transfer) Between(waits func() bool, fn func() *transport.Closed) bool {
	if !p.busy.CompareAndSwap(false, true) {
		return false
	}
	p.asked.Store(&between{waits, fn})
	p.Sleep.rouse()
	return true
}

// run runs the function of Between, after a tick.
func (p *Transfer) run() {
	fn := p.asked.Load()
	if fn == nil || fn.waits != nil && fn.waits() {
		return
	}
	p.asked.Store(nil)
	defer p.busy.Store(false)
	if why := fn.run(); why != nil {
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
