package room

import (
	"context"
	"errors"
	"time"

	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/transport"
)

// An error of the game's code outside of systems (fault.go) affects only the call in which it
// occurs. The game's functions are called below a guard, which counts panics under the name of the
// hook and logs the first and some of the others.

// guarded sets up the guards of the room's own goroutine and of all others.
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
	defer g.Recover(&panicguard.Place{Name: hook}, func(panicked error) { err = &hookPanic{panicked} })
	return fn()
}

// Watched makes the watchdog report a closing hook that does not return, and that may take longer
// than a tick by allowed. The returned function marks the return of the hook; it ends the
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

// hookPanic is the error of a hook that has panicked. The log has it already.
type hookPanic struct{ err error }

func (p *hookPanic) Error() string { return "netloop: " + p.err.Error() }

// reason returns the code and text of a hook's error that a client may read. An internal error is
// logged, unless it has been.
func (c *core) reason(hook string, err error, g *panicguard.Guard, about ...any) (transport.Code, string) {
	declined, said := transport.Declined(err)
	if panicked := (*hookPanic)(nil); !said && !errors.As(err, &panicked) {
		g.Failed(&panicguard.Place{Name: hook}, err, about...)
	}
	return declined.Code, declined.Text
}

// Refusal turns an error of an admission hook into the refusal that the client reads.
func (c *core) Refusal(hook string, err error, remote string) error {
	code, text := c.reason(hook, err, &c.aside, "client", remote)
	if errors.Is(err, context.DeadlineExceeded) {
		code, text = transport.CodeTimeout, "admission took too long"
	}
	return &transport.Refusal{Code: code, Text: text}
}
