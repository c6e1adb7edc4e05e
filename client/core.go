package client

import (
	"log/slog"
	"sync"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/schema"
)

// core has the data that all parts of a client share: the loop with its running frame, the
// replicated state, and the counters. Only Step's goroutine uses it, except posted.
type core struct {
	schema  *schema.Schema
	clock   loop.Clock
	log     *slog.Logger
	replica *replica.Replica
	loop    *loop.Loop[*netloop.Tick]
	now     loop.Now
	tick    bridge.Tick
	guard   panicguard.Guard // guards the game's functions other than systems
	stats   Stats

	mu     sync.Mutex
	posted []func(*netloop.Tick) // for the next poll; under mu
}

// current returns the tick for callbacks.
func (c *core) current() *netloop.Tick { return c.tick.Tick.(*netloop.Tick) }

// call calls a function of the game. It recovers a panic, so that the frame continues with the next
// arrival.
func (c *core) call(name string, fn func()) {
	defer c.guard.Recover(&panicguard.Func{Name: name}, nil)
	fn()
}

// post runs fn at the poll of the next frame. Only Step's goroutine may call it. It has no limit,
// because each new watcher and each failed call adds only one function.
func (c *core) post(fn func(*netloop.Tick)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posted = append(c.posted, fn)
}

// tryPost is post for other goroutines. It reports false if too many functions wait for a Step.
func (c *core) tryPost(fn func(*netloop.Tick)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.posted) >= maxCalls {
		return false
	}
	c.posted = append(c.posted, fn)
	return true
}

func (c *core) runPosted(t *netloop.Tick) {
	c.mu.Lock()
	posted := c.posted
	c.posted = nil
	c.mu.Unlock()
	for _, fn := range posted {
		c.call("later", func() { fn(t) })
	}
}

// inspect calls fn with a valid Tick, between two frames or in a callback of a frame.
func (c *core) inspect(fn func(*netloop.Tick)) {
	stage, system := c.now.Stage, c.now.System // Zero, except in a callback of the running frame.
	c.now.Stage, c.now.System = netloop.Update, "client.inspect"
	defer func() { c.now.Stage, c.now.System = stage, system }()
	fn(c.current())
}

func (c *core) reject(err error) { c.log.Error("registration rejected", "error", err) }

// report logs the panics and quarantines of systems.
func (c *core) report(rec *loop.Record) {
	for i := range rec.Panics {
		if p := &rec.Panics[i]; p.First {
			c.log.Error("a system panicked", "system", p.System, "panic", p.Value, "stack", string(p.Stack))
		} else if p.Quarantine > 0 {
			c.log.Error("a system is quarantined: it panicked again and again", "system", p.System, "panic", p.Value, "frames", p.Quarantine)
		}
	}
}
