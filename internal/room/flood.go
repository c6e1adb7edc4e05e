package room

import (
	"context"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// Penalties for clients that exceed the limits of messages. They apply to the player if admission
// has named it, otherwise to the address, and outlive the connection.

// A client that was closed with transport.CodeFlood has a penalty when it joins again: a player
// with a name from admission is refused until its dropped messages are forgotten, by the usual
// limits. An address may be that of many players, so joins from it are admitted, but slowly: each
// waits, one after another, so that a flooder is admitted about once a second. Others from there
// are refused only while some sixty are waiting.
const (
	floodPenalty = 10 * time.Second
	floodWait    = time.Second           // minimum for each join from such an address
	floodSpacing = 50 * time.Millisecond // between two such joins
	maxFloodWait = 4 * time.Second       // joins that would have to wait longer are refused
	// limit of stored penalties; beyond it the oldest ends early
	maxPenalties = 4096
)

// penalties stores the penalties of holders. Any goroutine may use it.
type penalties struct {
	mu       sync.Mutex
	byHolder map[string]penaltyTimes // entries by holder
	order    []penalty               // oldest first; a renewed penalty is in it twice
	early    uint64                  // penalties that ended early
}

// penaltyTimes holds the times of a holder's penalty, by the server's clock.
type penaltyTimes struct {
	until time.Duration // when the penalty ends
	next  time.Duration // when the next waiting join may be admitted
}

type penalty struct {
	holder string
	until  time.Duration
}

// add starts or renews a holder's penalty.
func (p *penalties) add(holder string, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.byHolder[holder]
	if holder == "" || d.until == now+floodPenalty {
		return
	}
	if p.byHolder == nil {
		p.byHolder = map[string]penaltyTimes{}
	}
	for len(p.order) > 0 && (p.order[0].until <= now || len(p.order) >= maxPenalties) {
		p.dropLocked(now)
	}
	d.until = now + floodPenalty
	p.byHolder[holder] = d
	p.order = append(p.order, penalty{holder, d.until})
}

// dropLocked removes the oldest penalty.
func (p *penalties) dropLocked(now time.Duration) {
	old := p.order[0]
	p.order = p.order[1:]
	if p.byHolder[old.holder].until != old.until {
		return // The penalty was renewed.
	}
	delete(p.byHolder, old.holder)
	if old.until > now {
		p.early++
	}
}

// turn returns how long a join has to wait; ok is false if it is refused.
func (p *penalties) turn(h rpcqueue.Holder, now time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.byHolder[h.Key]
	if d.until <= now {
		return 0, true
	}
	at := max(now+floodWait, d.next)
	if h.Shared || at > now+maxFloodWait {
		return 0, false
	}
	d.next = at + floodSpacing
	p.byHolder[h.Key] = d
	return at - now, true
}

// dropped returns how many penalties ended early.
func (p *penalties) dropped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.early
}

// errFlood refuses a client that was closed for flooding recently.
var errFlood = &transport.Refusal{Code: transport.CodeFlood, Text: "too many messages came from you: try again in some seconds"}

// applyPenalty applies a client's penalty. While it waits, the client has no seat yet, and no
// longer counts among the unadmitted connections: there are few of those per address, and a
// flooder's neighbours would have none left.
func (r *Room) applyPenalty(ctx context.Context, j *Join) error {
	wait, ok := r.penalties.turn(j.Holder(), r.clock.Now())
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
		return errFlood // The client has given up, or its admission had taken most of the time.
	}
	return nil
}

// penalise starts a penalty for a client that floods.
func (r *Room) penalise(c *Client) {
	r.penalties.add(c.join.Holder().Key, r.clock.Now())
}

// limited handles a client that exceeds its limits; the queue calls it once per rung and episode.
// The log has one line per rung in ten seconds for all clients, with the number of suppressed
// lines, so that repeated connections cannot fill it.
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
