package netloop

import "github.com/netloop/netloop/internal/loop"

// System is a registered system: a named piece of code that runs at one stage or
// at several. Its name is its place in the order, its label in the metrics and
// its line in the printed loop.
type System struct {
	s   *loop.System[*Tick]
	err error
}

// Name returns the name that the system was registered with.
func (s *System) Name() string {
	if s.s == nil {
		return ""
	}
	return s.s.Name()
}

// Err returns why the system was rejected, or nil. A system that is rejected
// while [Game] Open runs fails it.
func (s *System) Err() error { return s.err }

// Remove takes the system out of some stages, or of all when none is named. It
// acts at once, even later in the stage that is running, and its name is free
// when no stage is left.
func (s *System) Remove(from ...Stage) {
	if s.s != nil {
		s.s.Remove(from...)
	}
}

// SystemOption is an option of [Room.On] and [Room.Add].
type SystemOption func(*loop.Spec[*Tick])

// Before lets the system run before another one in the stages that they share.
// The built-in transport.poll, netvar.snapshot and transport.flush can be named
// too.
func Before(system string) SystemOption {
	return func(s *loop.Spec[*Tick]) { s.Before = append(s.Before, system) }
}

// After lets the system run after another one in the stages that they share.
func After(system string) SystemOption {
	return func(s *loop.Spec[*Tick]) { s.After = append(s.After, system) }
}

// Priorities within a stage. Any other int will do; smaller ones run earlier,
// and equal ones in the order of registration.
const (
	First  = -2
	Early  = -1
	Normal = 0
	Late   = 1
	Last   = 2
)

// Priority sets the system's place in its stage: before all of a greater number.
// Explicit anchors, [Before] and [After], count more.
func Priority(p int) SystemOption { return func(s *loop.Spec[*Tick]) { s.Priority = p } }

// Critical closes the room with an error when the system panics, instead of
// isolating and counting the panic.
func Critical() SystemOption { return func(s *loop.Spec[*Tick]) { s.Critical = true } }

// OnRemove is called when the system has been removed, by whomever.
func OnRemove(fn func()) SystemOption { return func(s *loop.Spec[*Tick]) { s.OnRemove = fn } }
