package room

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/watchdog"
)

// core is the state that all parts of a room read. It belongs to the room's goroutine, except for
// the fields that never change after New, and the fields with a lock or an atomic.
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
	sent    *outgoing  // digests the sent data in a recorded or replayed room
	clients clients
	from    *Client          // client whose message, join or leave is being handled
	log     *slog.Logger     // adds the running tick, system and client
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
		c.log.Warn("a value does not fit its field and is cut or clamped; logged once for each field", "class", class, "field", field)
	})
}

// Spec returns the room's description.
func (c *core) Spec() Spec { return c.spec }

// Schema returns the schema of the room's game.
func (c *core) Schema() *schema.Schema { return c.schema }

// World returns the room's objects.
func (c *core) World() *netvar.World { return c.world }

// Guard returns the guard of the game's functions on the room's goroutine.
func (c *core) Guard() *panicguard.Guard { return &c.guard }

// Log returns the room's log, which adds the running tick, system and client to each record.
func (c *core) Log() *slog.Logger { return c.log }

// Metrics returns the room's metrics.
func (c *core) Metrics() *metrics.Metrics { return c.metrics }

// Account returns the room's share in the metrics.
func (c *core) Account() *metrics.Account { return c.tally }

// Watchdog returns the watchdog, which detects ticks that hang. Any goroutine may call it.
func (c *core) Watchdog() *watchdog.Watchdog { return c.watchdog }

// Timeline returns the room's rates.
func (c *core) Timeline() loop.Timeline {
	return loop.Timeline{Rate: c.spec.Rate, Fixed: c.spec.Fixed}
}

// GivenUp reports whether the room was given up, because it hung. Any goroutine may call it.
func (c *core) GivenUp() bool { return c.givenUp.Load() }

// exitIfGivenUp ends the goroutine of a room that was given up. The room calls it only while no
// function of the game is on the stack.
func (c *core) exitIfGivenUp() {
	if c.givenUp.Load() {
		runtime.Goexit()
	}
}

// LoopClock is the clock of the room's loop. The loop reads it after each system, and the goroutine
// of a room that was given up ends there.
func (c *core) LoopClock() time.Duration {
	c.exitIfGivenUp()
	return c.clock.Now()
}

// forget resets from, after a message, join or leave was handled.
func (c *core) forget() { c.from = nil }

// Disown removes the owner of an object, or despawns the object; the game decides which. It is for
// an owner that has already left: no later leave would remove the object.
func (c *core) Disown(o *state.Object) {
	if c.game.Keeps(o) {
		c.world.SetOwner(o, 0)
		return
	}
	c.world.Despawn(o)
}

// disownAll disowns all objects of a client that leaves: each is kept or despawned.
func (c *core) disownAll(owner *Client) {
	for o := range c.world.Owned(owner.id) {
		c.Disown(o)
	}
}

// Inspect calls fn between two ticks, as the system room.inspect in the stage Update of the last
// tick. A panic of fn is returned as an error.
func (c *core) Inspect(fn func()) error {
	c.now.Stage, c.now.System = loop.Update, "room.inspect"
	defer func() { c.now.Stage, c.now.System = 0, "" }()
	return c.Call("room.inspect", func() error { fn(); return nil })
}

// An error of the game's code outside of systems (fault.go) affects only the call in which it
// occurs. The game's functions are called below a guard, which counts panics under the name of the
// hook and logs the first and some of the others.

// guarded sets up the guard for the room's goroutine and the guard for all other goroutines.
func (c *core) guarded() {
	panicked := func(hook string) { c.metrics.Panics.Add(1, hook) }
	c.guard.Log, c.guard.Count = c.log, panicked
	c.guard.Now = func() time.Duration { return c.now.GameTime }
	c.aside.Log, c.aside.Count = c.cfg.Log, panicked
	c.aside.Now = func() time.Duration { return c.clock.Now() }
}

// Call runs a hook of the game on the room's goroutine, and turns its panic into an error: a
// client that makes a hook panic does not end the tick for others. A room that was given up calls
// no hook.
func (c *core) Call(hook string, fn func() error) error {
	if c.givenUp.Load() {
		return errGivenUp
	}
	return called(&c.guard, hook, fn)
}

// errGivenUp is the error of a hook that is not called, because its room was given up.
var errGivenUp = errors.New("netloop: the room was given up, because it hung")

// CallAside is Call for a hook on any other goroutine.
func (c *core) CallAside(hook string, fn func() error) error { return called(&c.aside, hook, fn) }

func called(g *panicguard.Guard, hook string, fn func() error) (err error) {
	defer g.Recover(&panicguard.Func{Name: hook}, func(panicked error) { err = &hookPanic{panicked} })
	return fn()
}

// Watched makes the watchdog report a hook at the end of the room that does not return within the
// watchdog's limit plus allowed. The function ended records that the hook has returned; it ends the
// goroutine of a room that was given up meanwhile.
func (c *core) Watched(hook string, allowed time.Duration) (ended func()) {
	c.watchdog.BeginHook(hook, allowed, c.clock.Now())
	return func() {
		if h := c.watchdog.End(); h != nil {
			c.log.Warn("a hook that hung has returned", "hook", hook)
		}
		c.exitIfGivenUp()
	}
}

// hookPanic is the error of a hook that has panicked. It was already logged.
type hookPanic struct{ err error }

func (p *hookPanic) Error() string { return "netloop: " + p.err.Error() }

// reason returns the code and the text of a hook's error that are sent to a client. It logs an
// internal error, except a *hookPanic, which was logged before.
func (c *core) reason(hook string, err error, g *panicguard.Guard, about ...any) (transport.Code, string) {
	declined, said := transport.Declined(err)
	if panicked := (*hookPanic)(nil); !said && !errors.As(err, &panicked) {
		g.Failed(&panicguard.Func{Name: hook}, err, about...)
	}
	return declined.Code, declined.Text
}

// Refusal turns an error of an admission hook into the refusal that the client reads. ctx is that
// of the connection: a client that has left meanwhile is no failure of the hook.
func (c *core) Refusal(ctx context.Context, hook string, err error, remote string) error {
	if errors.Is(ctx.Err(), context.Canceled) && errors.Is(err, context.Canceled) {
		return &transport.Refusal{Code: transport.CodeLost, Text: "client has left"}
	}
	code, text := c.reason(hook, err, &c.aside, "client", remote)
	if errors.Is(err, context.DeadlineExceeded) {
		code, text = transport.CodeTimeout, "admission took too long"
	}
	return &transport.Refusal{Code: code, Text: text}
}
