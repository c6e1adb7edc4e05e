package loop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// MaxSystems limits the systems and groups of a loop, including those that wait for their first
// tick. A loop that reaches it probably never removes its systems; Add then returns an error.
const MaxSystems = 1 << 16

// Loop runs systems in stages. Only the goroutine that calls Step may use it; before the first Step
// it may be another goroutine.
type Loop[C any] struct {
	// Halt, if set, reports that the loop was given up: no function of the game may be called after
	// the running one has returned. The clock passed to New, which is read after each call, then
	// ends the goroutine.
	Halt func() bool

	c     C
	now   *Now
	clock func() time.Duration
	rec   Record

	names   map[string]*System[C] // all systems that are not removed or leaving
	systems []*System[C]          // in effect, by id; nil where an id is free
	free    []int32               // free ids
	pending []*System[C]          // systems that wait for the next Initialization
	changed []*System[C]          // systems with changes that wait for it
	leaving []*System[C]          // systems that Set has left out
	touched []*System[C]          // systems in effect that need a new position
	shaped  []*System[C]          // systems through which a cycle could run
	seq     uint64
	version uint64 // of the registry: counts every change of the registry
	sealed  bool   // Check has passed: an unknown anchor is an error from now on

	// State of a settle.
	settling []*System[C]    // was pending or changed, and its Ask is running
	anchored []*System[C]    // systems in effect with anchors
	named    map[string]bool // the names of their anchors
	bound    []*System[C]    // systems with positions that anchors require
	rebind   bool            // these positions may have changed

	// State checked before each tick.
	contexts []*System[C] // that a context may remove
	caught   []*System[C] // systems in quarantine

	// lists hold the order of the stages. They change only at the start of a tick, before its first
	// stage, and in Check.
	lists [numLists]list[C]

	// Time, for periods.
	timeline  Timeline // zero: time is the sum of deltas
	steps     Timeline // zero: steps belong to the running tick
	dropped   uint64   // number of dropped ticks
	skipped   uint64   // number of fixed steps in dropped ticks
	flows     [numFlows]flow[C]
	kinds     [numKinds]scaling
	scale     Scale        // scale of the running tick
	coming    Scale        // scale of the next tick
	unplanned []*System[C] // systems whose timers start with the next tick

	// The state of the running tick.
	running bool
	count   uint64        // number of ticks that ran: the clock of quarantines
	pass    uint64        // number of stages that ran: conditions are evaluated once in each
	mark    time.Duration // time of the last boundary between systems
	delta   moment        // Now.Delta and ScaledDelta of systems without a period
	walker
	err   error // reason why the loop is closed
	ended bool
}

// New returns a loop that passes c to its systems and writes now around their calls. The clock is
// used only for the Record.
func New[C any](c C, now *Now, clock func() time.Duration) *Loop[C] {
	l := &Loop[C]{c: c, now: now, clock: clock, names: make(map[string]*System[C]), named: make(map[string]bool), scale: Unscaled, coming: Unscaled}
	for kind := range l.kinds {
		l.kinds[kind].flow = Unscaled
	}
	return l
}

// Add registers a system or a group, which takes effect at the next Initialization. A name in use,
// an unknown anchor or group and a cycle are errors, and then the registry is unchanged. Until the
// first Check, a system may name anchors and groups that are registered later.
func (l *Loop[C]) Add(spec Spec[C]) (*System[C], error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	if l.ended {
		return nil, fmt.Errorf("system %q: %w", spec.Name, errEnded)
	}
	if l.names[spec.Name] != nil {
		return nil, fmt.Errorf("the name %q is in use: remove that system first or choose another name", spec.Name)
	}
	if len(l.systems)-len(l.free)+len(l.pending) >= MaxSystems {
		return nil, fmt.Errorf("system %q is one too many: a loop holds %d", spec.Name, MaxSystems)
	}
	s := l.made(spec)
	l.names[spec.Name] = s
	if err := l.fits(s); err != nil {
		delete(l.names, spec.Name)
		return nil, err
	}
	l.number(s)
	l.version++
	l.pending = append(l.pending, s)
	if s.shaped() {
		l.shaped = append(l.shaped, s)
	}
	return s, nil
}

// made returns a new system that is not registered yet.
func (l *Loop[C]) made(spec Spec[C]) *System[C] {
	return &System[C]{loop: l, spec: spec.clone(), stages: setOf(spec.Stages), pending: true, id: -1}
}

// number gives a system the next number in the order of registration.
func (l *Loop[C]) number(s *System[C]) {
	s.seq = l.seq
	l.seq++
}

// Check resolves anchors and order. The first call, at the end of registration, returns an error
// with every anchor that is not registered. Outside of a tick it also makes additions take effect,
// so that Dump shows the next tick; the error may then also be the panic of an Ask.
func (l *Loop[C]) Check() error {
	if err := l.seal(); err != nil {
		return err
	}
	if l.running {
		return l.err
	}
	l.rec.begin(&Input{})
	l.settle()
	if l.err == nil && len(l.rec.Panics) > 0 {
		return &PanicError{Panic: l.rec.Panics[0]}
	}
	return l.err
}

// seal ends the phase in which an anchor may be unknown.
func (l *Loop[C]) seal() error {
	if l.sealed {
		return nil
	}
	var errs []error
	for _, s := range l.pending {
		if !s.Removed() && !s.leaving {
			errs = append(errs, l.misplaced(s))
		}
	}
	err := errors.Join(errs...)
	l.sealed = err == nil
	return err
}

// Find returns the system or group with the name, or nil.
func (l *Loop[C]) Find(name string) *System[C] { return l.names[name] }

// Err returns the reason why the loop is closed, or nil.
func (l *Loop[C]) Err() error { return l.err }

// fits returns an error if a description conflicts with the others. The registry already contains
// it.
func (l *Loop[C]) fits(s *System[C]) error {
	if err := l.nested(s); err != nil {
		return err
	}
	if l.sealed {
		if err := l.misplaced(s); err != nil {
			return err
		}
	}
	return l.cycle(s)
}

// registered returns all systems and groups that are in effect from the next Initialization on, in
// order of registration.
func (l *Loop[C]) registered() []*System[C] {
	all := slices.DeleteFunc(slices.Concat(l.systems, l.settling, l.pending), func(s *System[C]) bool {
		return s == nil || s.Removed() || s.leaving
	})
	return inOrder(all)
}

// inOrder sorts systems by registration, and removes duplicates.
func inOrder[C any](systems []*System[C]) []*System[C] {
	slices.SortFunc(systems, func(a, b *System[C]) int { return cmp.Compare(a.seq, b.seq) })
	return slices.Compact(systems)
}

// membersOf returns the direct members of a group: members in effect, and members that wait to take
// effect.
func (l *Loop[C]) membersOf(g *System[C]) []*System[C] {
	var members []*System[C]
	for _, list := range [...][]*System[C]{g.inside, l.touched, l.settling, l.changed, l.pending} {
		for _, s := range list {
			if s.spec.Group == g.spec.Name && !s.Removed() && s.leaving == g.leaving {
				members = append(members, s)
			}
		}
	}
	return inOrder(members)
}
