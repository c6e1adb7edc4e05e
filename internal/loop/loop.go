package loop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// MaxSystems bounds the systems and groups of a loop, those that wait for their
// first tick included. A loop that reaches it registers without ever removing;
// Add then returns an error.
const MaxSystems = 1 << 16

// Loop runs systems in stages. One goroutine owns it, the one that calls Step;
// before the first Step it may be another.
type Loop[C any] struct {
	// Halt reports that no other function is called, though one has returned; nil never does. The
	// clock ends the goroutine of such a loop at the end of the system.
	Halt func() bool

	c     C
	now   *Now
	clock func() time.Duration
	rec   Record

	names   map[string]*System[C] // everybody not removed or leaving
	systems []*System[C]          // in effect, by id; nil where an id is free
	free    []int32               // ids
	pending []*System[C]          // wait for the next Initialization
	changed []*System[C]          // and those whose changes do
	leaving []*System[C]          // and those that Set has left out
	touched []*System[C]          // and those in effect that it places anew
	shaped  []*System[C]          // those that a cycle could run through
	seq     uint64
	version uint64 // of the registry: counts every change of it
	sealed  bool   // Check has passed: an unknown anchor is an error from now on

	// What a settle knows.
	settling []*System[C]    // was pending or changed, and is being asked
	anchored []*System[C]    // in effect, and names others
	named    map[string]bool // by them
	bound    []*System[C]    // has standings of its own
	rebind   bool            // they may be others now

	// What a tick looks at before it begins.
	contexts []*System[C] // those that a context may remove
	caught   []*System[C] // in quarantine

	// lists are what the stages walk. They change only before the first of them.
	lists [numLists]list[C]

	// Time, for periods.
	timeline  Timeline // zero: time is the sum of deltas
	steps     Timeline // zero: a step is of the tick that runs
	dropped   uint64   // ticks
	skipped   uint64   // fixed steps of dropped ticks
	flows     [numFlows]flow[C]
	kinds     [numKinds]scaling
	scale     Scale        // of the tick that runs
	coming    Scale        // of the one after it
	unplanned []*System[C] // their timers start with the next tick

	// The state of the tick that runs.
	running bool
	count   uint64        // ticks run: the clock of quarantines
	pass    uint64        // stages run: conditions are asked once in each
	mark    time.Duration // the last system boundary
	delta   moment        // Now.Delta and ScaledDelta of systems without a period
	walker
	err   error // the loop is closed
	ended bool
}

// New returns a loop that hands c to its systems and writes now around their
// calls. The clock fills the Record and nothing else.
func New[C any](c C, now *Now, clock func() time.Duration) *Loop[C] {
	l := &Loop[C]{c: c, now: now, clock: clock, names: make(map[string]*System[C]), named: make(map[string]bool), scale: Unscaled, coming: Unscaled}
	for kind := range l.kinds {
		l.kinds[kind].flow = Unscaled
	}
	return l
}

// Add registers a system or a group, which takes effect at the next
// Initialization. A name in use, an unknown anchor or group and a cycle are
// errors, and then nothing changes. Until the first Check, anchors and groups
// may be registered after those who name them.
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

// made is a new system that nobody knows yet.
func (l *Loop[C]) made(spec Spec[C]) *System[C] {
	return &System[C]{loop: l, spec: spec.clone(), stages: setOf(spec.Stages), pending: true, id: -1}
}

// number gives a system the next place in the order of registration.
func (l *Loop[C]) number(s *System[C]) {
	s.seq = l.seq
	l.seq++
}

// Check resolves anchors and order. The first time, which is at the end of
// registration, it names every anchor that nobody has registered. Outside of a
// tick it also lets what was added take effect, so that Dump shows the tick to
// come; the error is then also that of an Ask that panicked.
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

// seal ends the time in which an anchor may be unknown.
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

// Err is why the loop is closed, or nil.
func (l *Loop[C]) Err() error { return l.err }

// fits returns what is wrong with a description among the others. The registry
// already holds it.
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

// registered are all systems and groups that will be there from the next
// Initialization on, in order of registration.
func (l *Loop[C]) registered() []*System[C] {
	all := slices.DeleteFunc(slices.Concat(l.systems, l.settling, l.pending), func(s *System[C]) bool {
		return s == nil || s.Removed() || s.leaving
	})
	return inOrder(all)
}

// inOrder sorts systems by registration, and leaves out who is there twice.
func inOrder[C any](systems []*System[C]) []*System[C] {
	slices.SortFunc(systems, func(a, b *System[C]) int { return cmp.Compare(a.seq, b.seq) })
	return slices.Compact(systems)
}

// membersOf are the systems and groups that a group holds directly: those that are
// in effect, and those for which it is about to.
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
