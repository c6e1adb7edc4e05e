package netloop

import (
	"net/netip"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// What limits of messages do to whom: they belong to the player if admission has named it, and
// otherwise to the address, and outlive the connection.

// holder says whom what a client sends is charged to.
func (j *Join) holder() rpcqueue.Holder {
	switch {
	case j.Subject != "":
		return rpcqueue.Holder{Key: "subject " + j.Subject, Shared: true}
	case j.Addr != "":
		return rpcqueue.Holder{Key: "address " + site(j.Addr)}
	}
	return rpcqueue.Holder{}
}

// ipv6Site is how many bits of an IPv6 address one household or machine has the rest of: with
// a shorter prefix strangers share it, with a longer one somebody has many.
const ipv6Site = 56

// site is the part of a host:port that stands for one household or machine. What is no
// address stands for itself.
func site(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return addr
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	p, _ := ip.Prefix(ipv6Site) // It has more bits.
	return p.String()
}

// floodPenalty is how long a client that was thrown out with CodeFlood is not let in again: by
// then what it had dropped is forgotten, by the usual limits.
const floodPenalty = 10 * time.Second

// maxPenalties bounds those that are remembered. Beyond it the oldest is let in early.
const maxPenalties = 4096

// penalties are the holders that are not let in for a while. Any goroutine may use it.
type penalties struct {
	mu    sync.Mutex
	until map[string]time.Duration // by holder; by the server's clock
	order []penalty                // oldest first; one that was renewed stands in it twice
	early uint64                   // let in early
}

type penalty struct {
	holder string
	until  time.Duration
}

// add keeps a holder out from now on.
func (p *penalties) add(holder string, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if holder == "" || p.until[holder] == now+floodPenalty {
		return
	}
	if p.until == nil {
		p.until = map[string]time.Duration{}
	}
	for len(p.order) > 0 && (p.order[0].until <= now || len(p.order) >= maxPenalties) {
		p.dropLocked(now)
	}
	p.until[holder] = now + floodPenalty
	p.order = append(p.order, penalty{holder, now + floodPenalty})
}

// dropLocked forgets the oldest.
func (p *penalties) dropLocked(now time.Duration) {
	old := p.order[0]
	p.order = p.order[1:]
	if p.until[old.holder] != old.until {
		return // It was renewed.
	}
	delete(p.until, old.holder)
	if old.until > now {
		p.early++
	}
}

// left is for how long a holder is not let in yet.
func (p *penalties) left(holder string, now time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.until[holder]-now, 0)
}

// dropped is how many were let in early.
func (p *penalties) dropped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.early
}

// turnAway refuses a client that was thrown out for flooding a moment ago.
func (s *Server) turnAway(j *Join) error {
	left := s.room.penalties.left(j.holder().Key, s.clock.Now())
	if left == 0 {
		return nil
	}
	s.metrics.AddDrop("admission", "flood", 1)
	return &transport.Refusal{Code: CodeFlood, Text: "too many messages came from you: try again in some seconds"}
}

// penalise keeps a client that floods from coming back at once.
func (r *Room) penalise(c *Client) {
	r.penalties.add(c.join.holder().Key, r.server.clock.Now())
}

// limited takes what the queue tells of a client that exceeds its limits: once
// per rung and episode. Of all clients the log is told once per rung in ten seconds, and
// how often it was not: whoever connects again and again must not fill it.
func (r *Room) limited(from uint64, m *rpcqueue.Method, rung rpcqueue.Rung) {
	name := rpcqueue.UnknownName
	if m != nil {
		name = m.Name
	}
	dry := r.server.cfg.RPC.Dry
	if kept, ok := r.limits.News(rung, r.now.GameTime); ok {
		r.log.Warn("a client exceeds the limits of messages", "from", from, "method", name, "reached", rung.String(), "dry", dry, "unlogged_before", kept)
	}
	c, ok := r.clients.get(ClientID(from))
	if !ok || rung != rpcqueue.Kick || dry {
		return
	}
	for _, other := range r.clients.list { // A player may have several connections.
		same := c.join.Subject != "" && other.join.Subject == c.join.Subject
		if (other == c || same) && other.kicked == nil {
			other.kicked = &LeaveReason{CodeFlood, "too many messages"}
			r.penalise(other)
		}
	}
}

// maxRefusals is how many calls of one client that do not reach a handler are answered in a
// tick. Each answer costs a microsecond or two; who asks for more gets none for the others, and
// their calls time out.
const maxRefusals = 64

// mayRefuse reports whether one more call of the client may be answered without a handler.
func (c *Client) mayRefuse() bool {
	if tick := c.room.now.Tick; c.refusedIn != tick {
		c.refusedIn, c.refused = tick, 0
	}
	if c.refused++; c.refused <= maxRefusals {
		return true
	}
	c.room.unsaid++
	return false
}
