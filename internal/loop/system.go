package loop

import "fmt"

// Place is the band of a stage's order in which a system stands.
type Place uint8

const (
	// Body is where game systems stand.
	Body Place = iota
	// Head is for built-ins that run first: the poll, the RPC drain.
	Head
	// Tail is for built-ins that run last: the snapshot, the flush.
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

// The usual priorities. Any int is one; lower runs first.
const (
	First  = -2
	Early  = -1
	Normal = 0
	Late   = 1
	Last   = 2
)

// Spec describes a system to add.
type Spec[C any] struct {
	// Name is unique in the loop: ordering anchor, metric label, dump line.
	Name string
	// Ask is asked stage by stage, when the system takes effect, for what it
	// runs there. Nil means that it is not there, which costs nothing.
	Ask func(Stage) func(C)
	// Place is Body for game systems.
	Place Place
	// Before and After name systems that must run later, or earlier, in every
	// stage that both are in. An anchor that is removed later stops binding, and
	// binds again when its name is registered again.
	Before, After []string
	// Priority orders systems of one place; lower runs first.
	Priority int
	// Once makes the system run in FixedUpdate once per tick, before the first
	// step and only if there is one, hence before every system that runs per
	// step. Elsewhere it changes nothing.
	Once bool
	// Critical closes the loop with an error when the system panics, instead of
	// isolating the panic.
	Critical bool
	// OnRemove is told, at once, that the system was removed altogether.
	OnRemove func()
}

// System is the handle of a registered system. Only the owner of the loop may
// use it.
type System[C any] struct {
	loop *Loop[C]
	spec Spec[C]
	seq  uint64 // order of registration
	gone stageSet
	// asked says that the system has taken effect; fns are its answers.
	asked bool
	fns   [NumStages]func(C)
}

// Name is the name that the system was registered with.
func (s *System[C]) Name() string { return s.spec.Name }

// Removed reports whether the system was removed from all stages.
func (s *System[C]) Removed() bool { return s.gone == allStages }

// Remove takes the system out of the given stages, or of all if none is given.
// It acts at once, even later in the stage that is running. When nothing is
// left, the name is free and OnRemove has been called. Removing twice does
// nothing.
func (s *System[C]) Remove(from ...Stage) {
	if s.Removed() {
		return
	}
	if len(from) == 0 {
		s.gone = allStages
	}
	for _, stage := range from {
		if !stage.Valid() {
			panic(fmt.Sprintf("loop: Remove of system %q from stage %d: there is no such stage", s.spec.Name, stage))
		}
		s.gone |= stage.bit()
	}
	s.loop.stale = true
	if s.gone == allStages || s.asked && !s.anywhere() {
		s.gone = allStages
		delete(s.loop.names, s.spec.Name)
		if s.spec.OnRemove != nil {
			s.spec.OnRemove()
		}
	}
}

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
