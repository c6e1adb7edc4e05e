package room

import (
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/watchdog"
)

// core is the state that all parts of a room read. It belongs to the room's goroutine, except for
// the fields that New sets and that never change, and those with a lock or an atomic.
type core struct {
	cfg      Config
	spec     Spec
	game     Game
	schema   *schema.Schema
	clock    loop.Clock
	metrics  *metrics.Metrics
	tally    *metrics.Account // this room's metrics
	watchdog *watchdog.Watchdog
	world    *netvar.World
	loop     Loop
	now      *loop.Now

	Sleep   Sleep
	in      loop.Input // input of the running tick
	source  source     // of the tick's outside facts
	sent    *outgoing  // digests the sent data while recorded or replayed
	clients clients
	from    *Client          // the client of the handled message, join or leave
	log     *slog.Logger     // names the running tick, system and client
	guard   panicguard.Guard // guards the game's functions on this goroutine
	aside   panicguard.Guard // guards the game's functions on other goroutines
	givenUp atomic.Bool      // set by Supervisor.GiveUp
}

// open creates the world and the logs.
func (c *core) open(s source) {
	c.source = s
	c.log = slog.New(&tickHandler{Handler: c.cfg.Log.Handler(), core: c})
	c.guarded()
	c.loop.Follow(c.Timeline())
	c.world = netvar.NewWorld(c.schema.Classes())
	c.world.SetRate(c.spec.Rate.Num, c.spec.Rate.Den)
	c.world.OnClamp(func(class, field string) {
		c.log.Warn("a value does not fit its field and is cut or clamped; this is said once", "class", class, "field", field)
	})
}

// Spec returns the room's description.
func (c *core) Spec() Spec { return c.spec }

// Schema returns the schema that the room's game has declared.
func (c *core) Schema() *schema.Schema { return c.schema }

// World returns the room's objects.
func (c *core) World() *netvar.World { return c.world }

// Guard returns the guard of the game's functions on the room's goroutine.
func (c *core) Guard() *panicguard.Guard { return &c.guard }

// Log returns the log of the running tick.
func (c *core) Log() *slog.Logger { return c.log }

// Metrics returns the room's metrics.
func (c *core) Metrics() *metrics.Metrics { return c.metrics }

// Watchdog returns the watchdog, which detects ticks that hang. Any goroutine may call it.
func (c *core) Watchdog() *watchdog.Watchdog { return c.watchdog }

// Timeline returns the room's rates.
func (c *core) Timeline() loop.Timeline {
	return loop.Timeline{Rate: c.spec.Rate, Fixed: c.spec.Fixed}
}

// GivenUp reports whether the room was given up, because it hung. Any goroutine may call it.
func (c *core) GivenUp() bool { return c.givenUp.Load() }

// exitIfGivenUp ends the goroutine of a room that was given up. The room calls it only with no
// function of the game on the stack.
func (c *core) exitIfGivenUp() {
	if c.givenUp.Load() {
		runtime.Goexit()
	}
}

// LoopClock is the clock of the room's loop. The loop reads it after each system, and a room that
// was given up ends there.
func (c *core) LoopClock() time.Duration {
	c.exitIfGivenUp()
	return c.clock.Now()
}

// forget resets from: no message, join or leave of a client is handled any more.
func (c *core) forget() { c.from = nil }

// Disown keeps or despawns an object of an absent owner. An owner that has left must not keep any
// object: an object assigned to it too late would never be removed.
func (c *core) Disown(o *netvar.Object) {
	if c.game.Keeps(o) {
		c.world.SetOwner(o, 0)
		return
	}
	c.world.Despawn(o)
}

// disownAll keeps or despawns the objects of a client that leaves.
func (c *core) disownAll(owner *Client) {
	for o := range c.world.Owned(owner.id) {
		c.Disown(o)
	}
}

// Inspect calls fn between two ticks, as if it ran in one.
func (c *core) Inspect(fn func()) error {
	c.now.Stage, c.now.System = loop.Update, "room.inspect"
	defer func() { c.now.Stage, c.now.System = 0, "" }()
	return c.Call("room.inspect", func() error { fn(); return nil })
}
