package netloop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// System is a registered system: a named piece of code that runs at one stage or at several. Its
// name identifies it in Before and After, in the metrics and in the printed loop.
type System struct {
	s      *loop.System[*Tick]
	err    error
	reject func(error)      // reject of the room or client
	spec   loop.Spec[*Tick] // spec of a system that a Loop will add
}

// registry registers the systems of a room or a client.
type registry struct {
	loop   *loop.Loop[*Tick]
	reject func(error) // receives the errors of rejected registrations
}

func (r *registry) register(spec loop.Spec[*Tick]) *System {
	s, err := r.loop.Add(spec)
	if err != nil {
		r.reject(err)
	}
	return &System{s: s, err: err, reject: r.reject, spec: spec}
}

// On registers a function as a system that runs at a stage, or at [Update] if s is 0. A name may be
// used once per room. The system runs from the next Initialization. On suffices for most systems.
func (r *Room) On(s Stage, name string, fn func(*Tick), o ...SystemOption) *System {
	return r.systems.On(s, name, fn, o...)
}

// On implements Room.On and a client's.
func (r *registry) On(s Stage, name string, fn func(*Tick), o ...SystemOption) *System {
	return r.register(onSpec(s, name, fn, o))
}

// Add registers a system with several functions: ask returns the function to run at a stage, or
// nil. A stage without a function costs nothing at run time.
func (r *Room) Add(name string, ask func(Stage) func(*Tick), o ...SystemOption) *System {
	return r.systems.Add(name, ask, o...)
}

// Add implements Room.Add and a client's.
func (r *registry) Add(name string, ask func(Stage) func(*Tick), o ...SystemOption) *System {
	return r.register(changed(loop.Spec[*Tick]{Name: name, Ask: ask}, o))
}

// Name returns the name of the system.
func (s *System) Name() string {
	if s.s == nil {
		return s.spec.Name
	}
	return s.s.Name()
}

// Err returns the reason why the system, or its last Change, was rejected, or nil. [Game] Open
// fails if a system was rejected while it ran. On a client, the first Step rejects anchors and
// groups that are not registered by then.
func (s *System) Err() error {
	err := s.err
	if s.s != nil {
		err = cmp.Or(err, s.s.Err())
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("netloop: %w", err)
}

// Change changes options of the system from the next Initialization. Each given option replaces its
// former value; other options are kept. The timer of the system continues: with another [Every],
// the elapsed time counts. A rejected change has no effect, and Err returns the reason.
func (s *System) Change(o ...SystemOption) {
	if s.s == nil {
		return // The registration was rejected and reported.
	}
	s.err = s.s.Change(changed(s.s.Spec(), o))
	if s.err != nil {
		s.reject(s.err)
	}
}

// onSpec returns the spec of a system that runs a function at one stage, [Update] if s is 0.
func onSpec(s Stage, name string, fn func(*Tick), o []SystemOption) loop.Spec[*Tick] {
	if s == 0 {
		s = Update
	}
	spec := loop.Spec[*Tick]{Name: name, Stages: []Stage{s}}
	if fn != nil {
		spec.Ask = func(Stage) func(*Tick) { return fn }
	}
	return changed(spec, o)
}

// changed returns a system's spec with the options applied. Anchors may be given in several
// options; the Before anchors of one call together replace the former Before anchors, and its After
// anchors the former After anchors.
func changed(spec loop.Spec[*Tick], o []SystemOption) loop.Spec[*Tick] {
	before, after := spec.Before, spec.After
	spec.Before, spec.After = nil, nil
	for _, one := range o {
		one.apply(&spec)
	}
	if spec.Before == nil {
		spec.Before = before
	}
	if spec.After == nil {
		spec.After = after
	}
	return spec
}

// Remove removes the system from the given stages, or from all stages if none is given. It takes
// effect at once, even within the running stage. The name is free when no stage remains. Remove
// panics if a value is not a stage.
func (s *System) Remove(from ...Stage) {
	for _, stage := range from {
		if !stage.Valid() {
			panic(fmt.Sprintf("netloop: System.Remove(%d) of %q: use the seven stages, Initialization to PostLateUpdate", stage, s.Name()))
		}
	}
	if s.s != nil {
		s.s.Remove(from...)
	}
}

// Disable stops the calls of the system, or of the group with all its members, from the next
// Initialization until [System.Enable]. The timers of a disabled system stop, by both clocks: after
// Enable, the next call is due after the remainder of the period, its Delta excludes the time in
// which the system was disabled, and missed calls are not caught up. A member of a disabled group
// does not run, even if its own options permit it.
//
// Messages, timers of [Tick.AfterFunc] and the ticks themselves continue. To stop the time of a
// whole room use [Room.SetTimeScale].
func (s *System) Disable() { s.Change(Disabled(true)) }

// Enable lets a disabled system or group run again from the next Initialization on.
func (s *System) Enable() { s.Change(Disabled(false)) }

// SystemOption is an option of [Room.On], [Room.Add] and [System.Change].
type SystemOption struct{ apply func(*loop.Spec[*Tick]) }

// Stages makes the system run at these stages, in place of the stage of its registration. For a
// system of [Room.Add], its function is called only for these stages.
func Stages(s ...Stage) SystemOption {
	return SystemOption{func(spec *loop.Spec[*Tick]) { spec.Stages = append([]Stage(nil), s...) }}
}

// Before makes the system run before other systems in the stages that they share. It may name the
// built-in systems transport.poll, netvar.snapshot and transport.flush too. Without a name it
// removes the system's Before anchors: see [System.Change].
func Before(systems ...string) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.Before = append(append([]string{}, s.Before...), systems...) }}
}

// After makes the system run after other systems in the stages that they share. Without a name it
// removes the system's After anchors: see [System.Change].
func After(systems ...string) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.After = append(append([]string{}, s.After...), systems...) }}
}

// Disabled is [System.Disable] as an option if yes is true, and otherwise [System.Enable].
func Disabled(yes bool) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.Disabled = yes }}
}

// InSystemGroup adds the system to a group: see [Room.Group]. The group may be registered later
// while [Game] Open runs, and on a client before its first Step.
func InSystemGroup(group string) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.Group = group }}
}

// Every makes the system run once in each period d, with the time since its last call as
// [Tick.Delta]. The first call is at the first tick. Calls keep their phase: a call that had to
// wait for its tick, or that RunIf skipped, does not delay later calls. The number of calls
// therefore equals the number of periods at any tick rate, and the time between two calls may be up
// to a tick shorter than d; [MinGap] keeps the distance instead. After a stall, one call replaces
// all calls that were due. Every(0) is every tick, with a Delta that includes dropped ticks. A time
// below 0 is an error.
//
// Periods are in game time, which includes the ticks that the room dropped because it was late. In
// [FixedUpdate] they are in the time of the fixed steps, and a system may be due at any step.
//
// With [CatchUp] the system runs once for each period that has passed instead.
func Every(d time.Duration, o ...EveryOption) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) {
		s.Periodic, s.Period, s.CatchUp, s.Scaled, s.Gap = true, d, 0, false, false
		for _, one := range o {
			one.apply(s)
		}
	}}
}

// MinGap makes the system run only if at least d has passed since its last call: at the first such
// tick, or later while its [RunIf] returns false. Use it for an effect that must not happen too
// often: calls keep no phase, and are not caught up. Delta is the time since the last call. MinGap
// replaces an [Every] of the same system; [CatchUp] with it is an error.
func MinGap(d time.Duration, o ...EveryOption) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) {
		Every(d, o...).apply(s)
		s.Gap = true
	}}
}

// EveryOption is an option of [Every] and [MinGap].
type EveryOption struct{ apply func(*loop.Spec[*Tick]) }

// DefaultCatchUp is the limit that CatchUp(0) sets.
const DefaultCatchUp = 5

// CatchUp makes a system of [Every] run once for each period that has passed, up to n times in a
// tick, from 1 to 1 000. Several periods pass after a stall, or if the period is shorter than a
// tick. [Tick.Delta] is the period. The first call is due after one period. Further periods are
// dropped, and counted in netloop_system_missed_total. 0 selects [DefaultCatchUp].
func CatchUp(n int) EveryOption {
	if n == 0 {
		n = DefaultCatchUp
	}
	return EveryOption{func(s *loop.Spec[*Tick]) { s.CatchUp = n }}
}

// RunIf makes the system run only while a condition is true. The condition is called right before
// each call that is due; if it returns false, the call is skipped. Nil removes the condition. If
// the condition panics, it counts as false, and the system counts a panic.
func RunIf(condition func(*Tick) bool) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.RunIf = condition }}
}

// WithContext removes the system at Initialization of the first tick after the end of the context.
// It does not interrupt a call of the system. A recording does not contain the end of the context,
// so it cannot be replayed from that tick on.
func WithContext(ctx context.Context) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.Context = ctx }}
}

// Priorities within a stage. Any other int is valid too. Systems with smaller priorities run
// earlier; systems with equal priorities run in the order of registration.
const (
	PriorityFirst  = -2
	PriorityEarly  = -1
	PriorityNormal = 0
	PriorityLate   = 1
	PriorityLast   = 2
)

// Priority sets the system's position in its stage: before all systems with a larger number.
// Explicit anchors, [Before] and [After], take precedence.
func Priority(p int) SystemOption { return SystemOption{func(s *loop.Spec[*Tick]) { s.Priority = p }} }

// Critical closes the room with an error when the system panics. Without it, a panic only ends the
// call. After three panics in a row the system is disabled for 64 ticks, and for twice as long each
// time that it panics again, up to 4 096 ticks. The effects of a call before its panic are not
// undone.
func Critical() SystemOption { return SystemOption{func(s *loop.Spec[*Tick]) { s.Critical = true }} }

// OnRemove registers a function that is called, once, when the system has been removed for any
// reason. At the end of a room its systems are removed in the order of registration: after the last
// tick, when all clients have left, and before OnClose. On a client, Close removes them. A panic in
// the function does not affect the other systems. At the end of a replay the functions are not
// called.
func OnRemove(fn func()) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.OnRemove = fn }}
}
