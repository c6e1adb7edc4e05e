package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Place is the part of a stage in which a system runs: Head, Body or Tail.
type Place uint8

const (
	// Body is for game systems.
	Body Place = iota
	// Head is for built-ins that run first: the poll and the RPC drain.
	Head
	// Tail is for built-ins that run last: the snapshot and the flush.
	Tail
)

// String returns "body", "head" or "tail".
func (p Place) String() string {
	switch p {
	case Body:
		return "body"
	case Head:
		return "head"
	case Tail:
		return "tail"
	}
	return "invalid"
}

// MarshalText writes the name of the place.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the output of MarshalText.
func (p *Place) UnmarshalText(text []byte) error {
	for _, place := range []Place{Body, Head, Tail} {
		if place.String() == string(text) {
			*p = place
			return nil
		}
	}
	return fmt.Errorf("%q is no place", text)
}

// The usual priorities. Any int is valid; lower priorities run first.
const (
	First  = -2
	Early  = -1
	Normal = 0
	Late   = 1
	Last   = 2
)

// MaxCatchUp limits Spec.CatchUp. More calls in one tick would delay a late loop even more.
const MaxCatchUp = 1000

// Spec describes a system, or a group of systems.
type Spec[C any] struct {
	// Name is unique in the loop. It is the system's anchor for ordering, its metric label and its
	// name in dumps.
	Name string
	// Ask returns the function to run at a stage. It is called for each stage when the system takes
	// effect and when Change gives it other stages. Nil means that the system does not run there,
	// which costs no time.
	Ask func(Stage) func(C)
	// Stages are the stages for which Ask is called; an empty list means all.
	Stages []Stage
	// IsGroup makes this a group: it has no Ask and runs no function, but is ordered as a whole,
	// with its members in their own order inside.
	IsGroup bool
	// Group is the name of the group in which the system, or group, is.
	Group string
	// Place is Body for game systems.
	Place Place
	// Before and After name systems and groups that must run later, or earlier, in every stage that
	// both are in. An anchor in another group orders the groups: their members remain together. If
	// the named system is removed later, the anchor no longer applies, until the name is registered
	// again.
	Before, After []string
	// Priority orders systems within one group and place; lower priorities run first.
	Priority int
	// Periodic makes the system run once Period has passed, and in every pass if Period is 0; its
	// Delta is then the time since its last run. With CatchUp it runs once for each period that has
	// passed, up to CatchUp times in a pass, each time with Period as Delta.
	Periodic bool
	Period   time.Duration
	CatchUp  int
	// Scaled measures Period in scaled time. Gap measures it from one call to the next, without
	// keeping a phase.
	Scaled, Gap bool
	// RunIf is called in every pass of a stage, right before the system or the first member of the
	// group would run. If it returns false, the system or the whole group is skipped.
	RunIf func(C) bool
	// Context removes the system when it ends: at the next Initialization.
	Context context.Context
	// Disabled systems and groups keep their name and place, and do not run. Their timers stop.
	Disabled bool
	// Once makes the system run in FixedUpdate once per tick, before the first step and only if
	// there is one, hence before every system that runs per step. At other stages it has no effect.
	Once bool
	// Critical closes the loop with an error when the system panics. Without it the panic is
	// isolated.
	Critical bool
	// BuiltIn, if not empty, makes the system a built-in: other systems can have it as an anchor,
	// but it cannot be changed, disabled or left out of a tree, and it is never quarantined. The
	// text describes, as the rest of a sentence, the effect of its removal.
	BuiltIn string
	// OnRemove is called, at once, when the system is removed from all stages.
	OnRemove func()
}

// check returns an error if the description by itself is invalid.
func (s *Spec[C]) check() error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("system %q: %s", s.Name, fmt.Sprintf(format, a...))
	}
	switch {
	case s.Name == "":
		return errors.New("a system needs a name")
	case s.IsGroup && s.Ask != nil:
		return fail("a group runs nothing itself: add systems to it")
	case s.IsGroup && s.Periodic:
		return fail("a group has no period: give its members one, or use RunIf")
	case !s.IsGroup && s.Ask == nil:
		return fail("there is no function to run")
	case s.Place > Tail:
		return fail("place %d is none", s.Place)
	case s.Period < 0:
		return fail("a period of %v is negative", s.Period)
	case s.CatchUp != 0 && s.Period == 0:
		return fail("catching up needs a period above 0")
	case s.CatchUp != 0 && s.Gap:
		return fail("a least gap between calls leaves nothing to catch up")
	case s.CatchUp < 0 || s.CatchUp > MaxCatchUp:
		return fail("catching up %d calls a tick: use 1 to %d", s.CatchUp, MaxCatchUp)
	case s.Once && s.Periodic:
		return fail("what runs once a tick has no period")
	}
	for _, stage := range s.Stages {
		if !stage.Valid() {
			return fail("there is no stage %d", stage)
		}
	}
	return nil
}

// clone copies the slices that the caller could change later.
func (s *Spec[C]) clone() Spec[C] {
	c := *s
	c.Stages = slices.Clone(s.Stages)
	c.Before, c.After = slices.Clone(s.Before), slices.Clone(s.After)
	return c
}

// System is the handle of a registered system or group. Only the owner of the
// loop may use it.
type System[C any] struct {
	loop *Loop[C]
	// spec is the last requested description. When it takes effect, the parts that a tick reads are
	// copied into the fields below and into the lists.
	spec   Spec[C]
	stages stageSet // spec.Stages
	seq    uint64   // order of registration
	// pending: the system has not taken effect yet. changed: its newest description has not.
	// leaving: a tree passed to Set does not contain it. removed: it is no longer registered.
	pending, changed, leaving, removed bool
	err                                error // from Reject

	gone       stageSet // stages at which it does not run, even if it is listed
	flags      flags
	fns        [NumStages]func(C) // the answers of Ask
	asked      stageSet           // stages for which Ask was called
	off        bool               // the system, or a group around it, is disabled
	cond       condition[C]
	timers     [numKinds]timer
	disabledAt *[numKinds]moment // the times at which it was disabled
	timing     timing
	fault      fault
	costs      [NumStages]*Histogram

	// The sort keys of the lists, and its positions in them.
	id            int32      // its index in Loop.systems; -1: it is not in effect
	group         *System[C] // the group around it
	nth           int        // its index in group.inside
	own           key
	before, after []string
	bound         *[numLists]position // positions that anchors require; nil without anchors
	rebound       *[numLists]position // the next bound, while it is computed
	member        listSet             // its lists
	listed        listSet             // the lists that contain it; empty while it is off
	timed         bool                // its entries are in the timed part of the lists

	// A group's data about its members.
	inside []*System[C]
	counts [numLists]int32 // including those of groups inside it

	// Whether the loop's lists touched, anchored and contexts contain the system.
	touched, anchors, watched bool
}

// flags are checked before each call of the system. Usually none is set, so the check is one
// comparison.
type flags uint8

const (
	leftStage   flags = 1 << iota // gone contains a stage
	failing                       // its last call at some stage panicked
	quarantined                   // the system is stopped for a number of ticks
)

// has reports whether f is among the flags.
func (x flags) has(f flags) bool { return x&f != 0 }

// Name returns the name of the system.
func (s *System[C]) Name() string { return s.spec.Name }

// Spec returns the last requested description. The caller owns the copy.
func (s *System[C]) Spec() Spec[C] { return s.spec.clone() }

// Removed reports whether the system was removed from all stages.
func (s *System[C]) Removed() bool { return s.removed }

// Remove removes the system from the given stages, or from all if none is given. It takes effect at
// once, even later in the running stage. When no stage remains, the name is free and OnRemove has
// been called. A second removal has no effect. A group is removed with all its members.
func (s *System[C]) Remove(from ...Stage) {
	if s.Removed() {
		return
	}
	for _, stage := range from {
		if !stage.Valid() {
			panic(fmt.Sprintf("loop: Remove of system %q from stage %d: there is no such stage", s.spec.Name, stage))
		}
	}
	l := s.loop
	l.version++
	if s.spec.IsGroup {
		members := l.membersOf(s)
		if len(from) == 0 {
			s.forget()
		}
		for _, m := range members {
			m.Remove(from...)
		}
		return
	}
	l.touch(s)
	s.gone |= setOf(from)
	s.flags |= leftStage
	s.stages &^= setOf(from)
	s.asked &^= setOf(from)
	if s.stages == 0 || !s.pending && !s.changed && !s.anywhere() {
		s.forget()
		return
	}
	s.spec.Stages = s.stages.list()
}

// forget ends the registration.
func (s *System[C]) forget() {
	s.removed = true
	s.gone = allStages
	s.flags |= leftStage
	l := s.loop
	l.touch(s)
	if l.names[s.spec.Name] == s {
		delete(l.names, s.spec.Name)
	}
	if s.spec.OnRemove != nil && !l.halted() {
		s.spec.OnRemove()
	}
}

// End removes all remaining systems, in order of registration: every OnRemove that has not been
// called yet is called, and a panic of one OnRemove does not affect the others. The Record lists
// the panics. Afterwards Add and Step return an error. A second End has no effect.
func (l *Loop[C]) End() *Record {
	l.ended = true
	if !l.running {
		l.rec.begin(&Input{Tick: l.rec.Tick})
	}
	for _, s := range inOrder(slices.Concat(l.registered(), l.leaving)) {
		if !s.Removed() {
			l.guard(s, s.forget)
		}
	}
	return &l.rec
}

var errEnded = errors.New("the loop has ended")

// in reports whether the system runs in the stage.
func (s *System[C]) in(stage Stage) bool {
	return s.fns[stage.index()] != nil && !s.gone.has(stage)
}

// anywhere reports whether the system runs in any stage.
func (s *System[C]) anywhere() bool {
	for _, stage := range Stages() {
		if s.in(stage) {
			return true
		}
	}
	return false
}

// SetDisabled disables or enables the system or group with a name, from the next Initialization on.
// It returns an error for an unknown name.
func (l *Loop[C]) SetDisabled(name string, yes bool) error {
	s := l.names[name]
	if s == nil {
		return fmt.Errorf("there is no system %q", name)
	}
	spec := s.Spec()
	spec.Disabled = yes
	return s.Change(spec)
}

// Change gives the system another description from the next Initialization on. Its name, its kind
// (system or group) and its Ask remain. It keeps its timer: the elapsed time counts for the new
// period. If stages are added, Ask is called again for all stages. After an error the system is
// unchanged.
func (s *System[C]) Change(spec Spec[C]) error {
	l, old := s.loop, s.spec
	switch {
	case s.Removed() || s.leaving:
		return fmt.Errorf("system %q was removed and cannot be changed", old.Name)
	case old.BuiltIn != "":
		return old.keep("changed")
	}
	next := *s
	next.describe(spec.clone())
	if err := next.spec.check(); err != nil {
		return err
	}
	s.spec = next.spec
	err := l.fits(s)
	if err == nil && spec.Group != old.Group && l.sealed {
		err = l.checkAll() // Other systems may be inside it.
	}
	if err != nil {
		s.spec = old
		return err
	}
	s.stages = next.stages
	l.version++
	if s.shaped() && !slices.Contains(l.shaped, s) {
		l.shaped = append(l.shaped, s)
	}
	l.wait(s)
	return nil
}

// describe gives the system another description, except for name, kind and Ask.
func (s *System[C]) describe(spec Spec[C]) {
	spec.Name, spec.IsGroup, spec.Ask = s.spec.Name, s.spec.IsGroup, s.spec.Ask
	s.spec = spec
	s.stages = setOf(spec.Stages)
}

// wait makes a change take effect at the next Initialization.
func (l *Loop[C]) wait(s *System[C]) {
	if !s.pending && !s.changed {
		s.changed = true
		l.changed = append(l.changed, s)
	}
}

// keep returns an error if the system is a built-in, for an attempt to change or remove it.
func (s *Spec[C]) keep(verb string) error {
	return fmt.Errorf("system %q is built in and cannot be %s: without it %s. Anchor systems before or after it instead",
		s.Name, verb, s.BuiltIn)
}
