package room

import (
	"context"
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

// site is the part of a host:port that stands for one household or machine. What is no
// address stands for itself.
func site(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return addr
	}
	return transport.Site(at.Addr()).String()
}

// Who was thrown out with transport.CodeFlood meets a penalty when it comes again: a player whom
// admission has named is refused until what was dropped of it is forgotten, by the usual limits. An
// address may be that of many players, so those who come from there are let in, but slowly: each
// waits, one after another, so that a flooder gets in about once a second. Others from there are
// refused only while some sixty wait already.
const (
	floodPenalty = 10 * time.Second
	floodWait    = time.Second           // of each who joins from such an address, at least
	floodSpacing = 50 * time.Millisecond // between two of them
	maxFloodWait = 4 * time.Second       // who would have to wait for longer is refused
	maxPenalties = 4096                  // that are remembered; beyond it the oldest ends early
)

// penalties are the holders that have one. Any goroutine may use it.
type penalties struct {
	mu    sync.Mutex
	doors map[string]door // by holder
	order []penalty       // oldest first; one that was renewed stands in it twice
	early uint64          // that ended early
}

// door is where a holder comes in, by the server's clock.
type door struct {
	until time.Duration // when the penalty ends
	next  time.Duration // when the next may come in who waits
}

type penalty struct {
	holder string
	until  time.Duration
}

// add begins or renews a holder's penalty.
func (p *penalties) add(holder string, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.doors[holder]
	if holder == "" || d.until == now+floodPenalty {
		return
	}
	if p.doors == nil {
		p.doors = map[string]door{}
	}
	for len(p.order) > 0 && (p.order[0].until <= now || len(p.order) >= maxPenalties) {
		p.dropLocked(now)
	}
	d.until = now + floodPenalty
	p.doors[holder] = d
	p.order = append(p.order, penalty{holder, d.until})
}

// dropLocked forgets the oldest.
func (p *penalties) dropLocked(now time.Duration) {
	old := p.order[0]
	p.order = p.order[1:]
	if p.doors[old.holder].until != old.until {
		return // It was renewed.
	}
	delete(p.doors, old.holder)
	if old.until > now {
		p.early++
	}
}

// turn is how long somebody has to wait before it may come in, and false if it may not.
func (p *penalties) turn(h rpcqueue.Holder, now time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.doors[h.Key]
	if d.until <= now {
		return 0, true
	}
	at := max(now+floodWait, d.next)
	if h.Shared || at > now+maxFloodWait {
		return 0, false
	}
	d.next = at + floodSpacing
	p.doors[h.Key] = d
	return at - now, true
}

// dropped is how many ended early.
func (p *penalties) dropped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.early
}

// errFlood refuses whoever was thrown out for flooding a moment ago.
var errFlood = &transport.Refusal{Code: transport.CodeFlood, Text: "too many messages came from you: try again in some seconds"}

// letIn lets a client's penalty act. Who waits has no seat yet, and no place of a stranger any
// more: there are few of those for one address, and a flooder's neighbours would have none left.
func (r *Room) letIn(ctx context.Context, j *Join) error {
	wait, ok := r.penalties.turn(j.holder(), r.clock.Now())
	if !ok {
		r.metrics.Drops.Add(1, "admission", "flood")
		return errFlood
	}
	if wait == 0 {
		return nil
	}
	transport.Approved(ctx)
	turn, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	<-turn.Done()
	if ctx.Err() != nil {
		return errFlood // It has given up, or its admission had taken most of the time.
	}
	return nil
}

// penalise keeps a client that floods from coming back as if nothing had been.
func (r *Room) penalise(c *Client) {
	r.penalties.add(c.join.holder().Key, r.clock.Now())
}

// limited takes what the queue tells of a client that exceeds its limits: once
// per rung and episode. Of all clients the log is told once per rung in ten seconds, and
// how often it was not: whoever connects again and again must not fill it.
func (r *Room) limited(from uint64, m *rpcqueue.Method, rung rpcqueue.Rung) {
	name := rpcqueue.UnknownName
	if m != nil {
		name = m.Name
	}
	dry := r.cfg.Limits.Dry
	if kept, ok := r.limits.News(rung, r.now.GameTime); ok {
		r.log.Warn("a client exceeds the limits of messages", "from", from, "method", name, "reached", rung.String(), "dry", dry, "unlogged_before", kept)
	}
	c, ok := r.clients.get(from)
	if !ok || rung != rpcqueue.Kick || dry {
		return
	}
	for _, other := range r.clients.list { // A player may have several connections.
		same := c.join.Subject != "" && other.join.Subject == c.join.Subject
		if (other == c || same) && other.kicked == nil {
			other.kicked = &transport.Closed{Code: transport.CodeFlood, Text: "too many messages"}
			r.penalise(other)
		}
	}
}
