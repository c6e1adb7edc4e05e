package loop

import (
	"fmt"
	"runtime/debug"
)

// A panic of a system ends the call. A system that panics repeatedly is quarantined: it would cost
// time in every tick without effect.
const (
	// A system is quarantined after quarantineAfter panics in a row at one stage. Two panics may
	// have one cause that lasts longer than a tick; after three the next call probably fails too.
	quarantineAfter = 3
	// firstQuarantine is the length of the first quarantine in ticks, about a second, and
	// maxQuarantine the length of the longest, about a minute. Each quarantine is twice as long as
	// the previous one. A system that recovers is not stopped for long, and a system that does not
	// costs little.
	firstQuarantine = 64
	maxQuarantine   = 4096
	// An episode ends after calmTicks ticks without a panic, outside of quarantines. The next panic
	// is then reported again, and its quarantine is short again.
	calmTicks = 600
)

// fault is the history of a system's panics.
type fault struct {
	row     [NumStages]uint8 // panics in a row
	last    uint64           // Loop.count of the last panic, or of the last release
	episode bool             // a panic has occurred
	backoff uint64           // ticks of the last quarantine; 0: none in this episode
	until   uint64           // Loop.count at which the quarantine ends
	panics  uint64           // number of panics since the system was registered
}

// isolate is deferred by walk: it recovers a panic of the system that the walker has reached, so
// that only this call is lost. If there was no panic, the system has called Goexit, which closes
// the loop.
func (l *Loop[C]) isolate(list *list[C], done *bool) {
	if *done {
		return
	}
	v := recover()
	e := list.last(&l.walker)
	stage := l.now.Stage
	l.show(l.delta)
	if v == nil {
		l.exited(e.sys.spec.Name, stage)
		return
	}
	l.charge(e, l.row(list, e))
	l.panicked(e.sys, stage, v)
}

// guarded is deferred around calls of game code that are not a system's function: RunIf and
// OnRemove. It handles a panic like one of the system, and Goexit closes the loop.
func (l *Loop[C]) guarded(s *System[C], stage Stage, finished *bool) {
	if *finished {
		return
	}
	if v := recover(); v != nil {
		l.panicked(s, stage, v)
		return
	}
	l.exited(s.spec.Name, stage)
}

// exited closes the loop: a call neither returned nor panicked, so it has ended its goroutine, and
// with it this Step. The remaining stack is unwinding.
func (l *Loop[C]) exited(name string, stage Stage) {
	if l.err == nil {
		l.err = &ExitError{System: name, Stage: stage}
	}
	l.running = false
	l.now.Stage, l.now.System = 0, ""
}

// ExitError is the error of a loop after a system called runtime.Goexit, as a testing.T's FailNow
// does. Step did not return then: its goroutine has ended.
type ExitError struct {
	System string
	Stage  Stage
}

// Error names the system and the stage.
func (e *ExitError) Error() string {
	return fmt.Sprintf("system %q ended its goroutine in %v: runtime.Goexit must not be called in a system", e.System, e.Stage)
}

// panicked records a panic: with its stack if it begins an episode, or the system is critical or a
// built-in. It closes the loop if the system is critical, and may lead to a quarantine otherwise.
func (l *Loop[C]) panicked(s *System[C], stage Stage, v any) {
	f := &s.fault
	if f.episode && l.count-f.last > calmTicks {
		f.episode, f.backoff = false, 0
		f.row = [NumStages]uint8{}
	}
	p := Panic{System: s.spec.Name, Stage: stage, Value: v}
	p.First = !f.episode || s.spec.BuiltIn != "" || s.spec.Critical
	if p.First {
		p.Stack = debug.Stack()
	}
	f.episode, f.last = true, l.count
	f.panics++
	if s.spec.Critical {
		if l.err == nil {
			l.err = &PanicError{Panic: p}
		}
	} else if stage != 0 && s.spec.BuiltIn == "" && !s.Removed() {
		s.flags |= failing
		f.row[stage.index()]++
		if f.row[stage.index()] >= quarantineAfter && !s.flags.has(quarantined) {
			p.Quarantine = l.quarantine(s)
		}
	}
	l.rec.panicked(p)
}

// quarantine stops a system for a number of ticks, and returns this number.
func (l *Loop[C]) quarantine(s *System[C]) uint64 {
	f := &s.fault
	f.backoff = min(max(firstQuarantine, 2*f.backoff), maxQuarantine)
	f.until = l.count + f.backoff + 1
	s.flags |= quarantined
	l.caught = append(l.caught, s)
	return f.backoff
}

// release lets systems run again after their quarantine. The count of panics restarts from 0, so
// that a first panic, perhaps still for the old reason, does not quarantine them again.
func (l *Loop[C]) release() {
	if len(l.caught) == 0 {
		return
	}
	kept := l.caught[:0]
	for _, s := range l.caught {
		switch {
		case s.Removed():
		case l.count < s.fault.until:
			kept = append(kept, s)
		default:
			s.flags &^= quarantined | failing
			s.fault.row = [NumStages]uint8{}
			s.fault.last = l.count
			l.rec.Released = append(l.rec.Released, s.spec.Name)
		}
	}
	clear(l.caught[len(kept):])
	l.caught = kept
}

// Quarantined returns the number of systems and groups that do not run because they panicked
// repeatedly.
func (l *Loop[C]) Quarantined() int {
	n := 0
	for _, s := range l.caught {
		if !s.Removed() {
			n++
		}
	}
	return n
}

// succeeded ends a series of panics.
func (s *System[C]) succeeded(stage Stage) {
	s.fault.row[stage.index()] = 0
	if s.fault.row == [NumStages]uint8{} {
		s.flags &^= failing
	}
}
