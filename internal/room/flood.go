package room

import (
	"sync"
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// A penalty refuses or delays the joins of a client that has exceeded the limits of messages. It
// applies to the player if admission has identified one, otherwise to the address, and outlives the
// connection.

// A client that was closed with transport.CodeFlood has a penalty for floodPenalty. A player that
// admission has identified is refused for that time. An address may have many players, so joins
// from it are admitted slowly: each join waits at least floodWait, and they are admitted
// floodSpacing apart, so that a flooder is admitted about once a second. A join is refused only
// while some sixty other joins from its address are waiting.
const (
	floodPenalty = 10 * time.Second
	floodWait    = time.Second           // minimum wait of a join from an address with a penalty
	floodSpacing = 50 * time.Millisecond // between two such joins
	maxFloodWait = 4 * time.Second       // joins that would have to wait longer are refused
	// limit of stored penalties; beyond it the oldest penalty ends early
	maxPenalties = 4096
)

// penalties stores the penalties by holder: a player or an address. Any goroutine may use it.
type penalties struct {
	mu       sync.Mutex
	byHolder map[string]penaltyTimes // penalties by holder
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

// turn returns the time that a join has to wait; ok is false if the join is refused.
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

// dropped returns the number of penalties that ended early.
func (p *penalties) dropped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.early
}

// errFlood refuses a client that was closed for flooding recently.
var errFlood = &transport.Refusal{Code: transport.CodeFlood, Text: "too many messages came from you: try again in some seconds"}
