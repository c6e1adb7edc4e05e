package loop

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// MaxSystems bounds the systems of a loop, those that wait for their first tick
// included. A loop that reaches it registers without ever removing; Add then
// returns an error.
const MaxSystems = 1 << 16

// Loop runs systems in stages. One goroutine owns it, the one that calls Step;
// before the first Step it may be another.
type Loop[C any] struct {
	c     C
	now   *Now
	clock func() time.Duration
	rec   Record

	names   map[string]*System[C] // everybody not removed, pending or not
	systems []*System[C]          // in effect, in order of registration
	pending []*System[C]          // wait for the next Initialization
	shaped  []*System[C]          // pending or not: those that a cycle could run through
	seq     uint64
	sealed  bool // Check has passed: an unknown anchor is an error from now on
	stale   bool // something was removed since the lists were made

	// lists are what the stages walk; once is the part of FixedUpdate that runs
	// before its first step. They are replaced, never changed.
	lists [NumStages][]entry[C]
	once  []entry[C]

	// The state of the tick that runs.
	running bool
	mark    time.Duration // the last system boundary
	at      int           // the next entry of the list that runs
	err     error         // the loop is closed
}

// entry is a system in the list of a stage.
type entry[C any] struct {
	fn   func(C)
	sys  *System[C]
	name string
	row  int // in Record.Systems
}

// New returns a loop that hands c to its systems and writes now around their
// calls. The clock fills the Record and nothing else.
func New[C any](c C, now *Now, clock func() time.Duration) *Loop[C] {
	return &Loop[C]{c: c, now: now, clock: clock, names: make(map[string]*System[C])}
}

// Add registers a system, which takes effect at the next Initialization. A name
// in use, an unknown anchor and a cycle are errors, and then nothing changes.
// Until the first Check, anchors may be registered after those who name them.
func (l *Loop[C]) Add(spec Spec[C]) (*System[C], error) {
	switch {
	case spec.Name == "":
		return nil, errors.New("loop: a system needs a name")
	case spec.Ask == nil:
		return nil, fmt.Errorf("loop: system %q has no Ask function", spec.Name)
	case spec.Place > Tail:
		return nil, fmt.Errorf("loop: system %q: place %d is none", spec.Name, spec.Place)
	case l.names[spec.Name] != nil:
		return nil, fmt.Errorf("loop: the name %q is in use: remove that system first or choose another name", spec.Name)
	case len(l.systems)+len(l.pending) >= MaxSystems:
		return nil, fmt.Errorf("loop: system %q is one too many: a loop holds %d", spec.Name, MaxSystems)
	}
	spec.Before, spec.After = slices.Clone(spec.Before), slices.Clone(spec.After)
	if l.sealed {
		if err := l.unknownAnchors(&spec); err != nil {
			return nil, err
		}
	}
	s := &System[C]{loop: l, spec: spec, seq: l.seq}
	if err := l.cycle(s); err != nil {
		return nil, err
	}
	l.seq++
	l.names[spec.Name] = s
	l.pending = append(l.pending, s)
	if s.shaped() {
		l.shaped = append(l.shaped, s)
	}
	return s, nil
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
		if !s.Removed() {
			errs = append(errs, l.unknownAnchors(&s.spec))
		}
	}
	err := errors.Join(errs...)
	l.sealed = err == nil
	return err
}

// Step runs one tick: synchronous and without a wait. The Record belongs to the
// loop and is valid until the next Step. The error is that of a Critical
// system, after which the loop is closed and returns it forever; or, before the
// first tick, it names the unknown anchors.
func (l *Loop[C]) Step(in Input) (*Record, error) {
	if l.running {
		panic("loop: Step called from within a system: the tick that runs must return first")
	}
	if err := l.seal(); err != nil {
		return &l.rec, err
	}
	if l.err != nil {
		return &l.rec, l.err
	}
	l.running = true
	l.rec.begin(&in)
	start := l.clock()
	l.mark = start
	l.begin(&in)
	for _, stage := range Stages() {
		from := l.mark
		if stage == Initialization && l.settle() {
			l.mark = l.clock()
		}
		if stage == FixedUpdate {
			l.fixed(&in)
		} else {
			l.stage(stage, l.lists[stage.index()])
		}
		l.rec.Stages[stage.index()] = l.mark - from
		if l.err != nil {
			break
		}
	}
	l.rec.Duration = l.mark - start
	l.running = false
	return &l.rec, l.err
}

// begin writes what all calls of the tick may know.
func (l *Loop[C]) begin(in *Input) {
	*l.now = Now{
		Tick:      in.Tick,
		GameTime:  in.GameTime,
		Delta:     in.Delta,
		Wall:      in.Wall,
		FixedStep: max(in.FirstFixedStep, 1) - 1,
		Fraction:  in.Fraction,
	}
}

// fixed runs FixedUpdate: what runs once, then step by step the others.
func (l *Loop[C]) fixed(in *Input) {
	if in.FixedSteps <= 0 {
		return
	}
	l.now.Delta = in.FixedDelta
	l.now.FixedStep = in.FirstFixedStep
	l.stage(FixedUpdate, l.once)
	each := l.lists[FixedUpdate.index()]
	for i := 0; i < in.FixedSteps && len(each) > 0 && l.err == nil; i++ {
		l.now.FixedStep = in.FirstFixedStep + uint64(i)
		l.stage(FixedUpdate, each)
	}
	l.now.Delta = in.Delta
	l.now.FixedStep = in.FirstFixedStep + uint64(in.FixedSteps) - 1
}

// stage walks a list to its end; a panic costs the one system only.
func (l *Loop[C]) stage(stage Stage, list []entry[C]) {
	if len(list) == 0 {
		return
	}
	l.now.Stage = stage
	l.at = 0
	for done := false; !done && l.err == nil; {
		done = l.walk(stage.bit(), list)
	}
	l.now.Stage, l.now.System = 0, ""
}

// walk calls the systems of the list from l.at on and reports whether it came
// to the end. A panic ends it early, with l.at behind the one that panicked, so
// that one deferred call serves the whole list.
func (l *Loop[C]) walk(stage stageSet, list []entry[C]) (done bool) {
	defer l.isolate(list)
	for l.at < len(list) {
		e := &list[l.at]
		l.at++
		if e.sys.gone&stage != 0 {
			continue
		}
		l.now.System = e.name
		e.fn(l.c)
		l.charge(e.row)
	}
	return true
}

// charge books the time since the last boundary: one clock read is the end of
// this system and the start of the next.
func (l *Loop[C]) charge(row int) {
	now := l.clock()
	cost := &l.rec.Systems[row]
	cost.Cost += now - l.mark
	cost.Runs++
	l.mark = now
}

// isolate is deferred: it catches the panic of the system before l.at.
func (l *Loop[C]) isolate(list []entry[C]) {
	v := recover()
	if v == nil {
		return
	}
	e := &list[l.at-1]
	l.charge(e.row)
	l.panicked(e.sys, Panic{System: e.name, Stage: l.now.Stage, Value: v, Stack: debug.Stack()})
}

// panicked notes a panic, and closes the loop if the system is critical.
func (l *Loop[C]) panicked(s *System[C], p Panic) {
	l.rec.panicked(p)
	if s.spec.Critical && l.err == nil {
		l.err = &PanicError{Panic: p}
	}
}
