package loop

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
	// stage that both are in.
	Before, After []string
	// Priority orders systems of one place; lower runs first.
	Priority int
	// Once makes the system run in FixedUpdate once per tick, before the first
	// step and only if there is one. Elsewhere it changes nothing.
	Once bool
	// Critical closes the loop with an error when the system panics, instead of
	// isolating the panic.
	Critical bool
	// OnRemove is told, at once, that the system was removed altogether.
	OnRemove func()
}

// System is the handle of a registered system. The owner of the loop uses it.
type System[C any] struct {
	loop *Loop[C]
	spec Spec[C]
	gone stageSet
}

// Name is the name that the system was registered with.
func (s *System[C]) Name() string { return s.spec.Name }

// Removed reports whether the system was removed from all stages.
func (s *System[C]) Removed() bool { return s.gone == allStages }

// Remove takes the system out of the given stages, or of all if none is given.
func (s *System[C]) Remove(from ...Stage) { panic("loop: not yet") }
