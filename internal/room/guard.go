package room

import (
	"errors"
	"time"

	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/transport"
)

// An error of the game's code outside of systems (fault.go) affects only the call in which it
// occurs. The game's functions are called below a guard, which counts panics under the name of the
// hook and logs the first and some of the others.

// guarded sets up the guards of the room's own goroutine and of all others.
func (r *Room) guarded() {
	panicked := func(hook string) { r.metrics.Panics.Add(1, hook) }
	r.guard.Log, r.guard.Count = r.log, panicked
	r.guard.Now = func() time.Duration { return r.now.GameTime }
	r.aside.Log, r.aside.Count = r.cfg.Log, panicked
	r.aside.Now = func() time.Duration { return r.clock.Now() }
}

// Call runs a hook of the game on the room's goroutine, and turns its panic into an error: a
// client that makes a hook panic does not end the tick for others. A room that was given up calls
// no hook.
func (r *Room) Call(hook string, fn func() error) error {
	if r.life.givenUp.Load() {
		return errGivenUp
	}
	return called(&r.guard, hook, fn)
}

// errGivenUp is the error of a hook that is not called, because its room was given up.
var errGivenUp = errors.New("netloop: the room was given up, because it hung")

// CallAside is Call for a hook on any other goroutine.
func (r *Room) CallAside(hook string, fn func() error) error { return called(&r.aside, hook, fn) }

func called(g *panicguard.Guard, hook string, fn func() error) (err error) {
	defer g.Recover(&panicguard.Place{Name: hook}, func(panicked error) { err = &hookPanic{panicked} })
	return fn()
}

// hookPanic is the error of a hook that has panicked. The log has it already.
type hookPanic struct{ err error }

func (p *hookPanic) Error() string { return "netloop: " + p.err.Error() }

// reason returns the code and text of a hook's error that a client may read. An internal error is
// logged, unless it has been.
func (r *Room) reason(hook string, err error, g *panicguard.Guard, about ...any) (transport.Code, string) {
	declined, said := transport.Declined(err)
	if panicked := (*hookPanic)(nil); !said && !errors.As(err, &panicked) {
		g.Failed(&panicguard.Place{Name: hook}, err, about...)
	}
	return declined.Code, declined.Text
}
