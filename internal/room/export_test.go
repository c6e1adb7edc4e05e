package room

import (
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// What the tests of this package see of it. They stand outside, because they play whole games
// of package netloop.

const (
	FirstTick     = firstTick
	FloodPenalty  = floodPenalty
	FloodSpacing  = floodSpacing
	FloodWait     = floodWait
	MaxAsync      = maxAsync
	MaxDigests    = maxDigests
	MaxFloodWait  = maxFloodWait
	MaxPenalties  = maxPenalties
	MaxPosts      = maxPosts
	MaxRefusals   = maxRefusals
	MaxUnsentAcks = maxUnsentAcks
	StallNames    = stallNames
)

type (
	Result    = result
	Penalties = penalties
)

func OutcomeCode(o rpcqueue.Outcome) transport.Code { return outcomeCode(o) }

func (r *Room) DrainWith(p *loop.Pacer) error { return r.drain(p) }
func (r *Room) Inbox() *transport.Inbox       { return r.inbox }
func (r *Room) Penalties() *Penalties         { return &r.penalties }
func (r *Room) Queue() *rpcqueue.Queue[*Room] { return r.rpcs }
func (r *Room) Report()                       { r.metrics.Report(measured{r}) }
func (r *Room) WaitForWork()                  { r.async.wait.Wait() }
func (r *Room) SetDry()                       { r.cfg.Limits.Dry = true }
func (r *Room) SetMaxClients(n int)           { r.spec.MaxClients = n }
func (c *Client) Kicked() *transport.Closed   { return c.kicked }
func (c *Client) Unsent() uint64              { return c.unsent }

func (p *penalties) Add(holder string, now time.Duration) { p.add(holder, now) }
func (p *penalties) Turn(h rpcqueue.Holder, now time.Duration) (time.Duration, bool) {
	return p.turn(h, now)
}
func (p *penalties) Dropped() uint64          { return p.dropped() }
func (p *penalties) Held() (doors, order int) { return len(p.doors), len(p.order) }

// PollAndDrain runs of a tick what takes messages from the inbox to their handlers.
func (r *Room) PollAndDrain(tick uint64, gameTime time.Duration, s loop.Stage) {
	r.rpcs.Begin(tick, gameTime)
	r.now.Tick, r.now.Stage = tick, loop.EarlyUpdate
	r.poll()
	r.now.Stage = s
	r.rpcs.Drain(s, r)
	r.now.Stage = 0
}
