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
	reject func(error)      // of the room or client
	spec   loop.Spec[*Tick] // of a system that a Loop will add
}

// registry registers the systems of a room or a client.
type registry struct {
	loop   *loop.Loop[*Tick]
	reject func(error) // takes the errors of rejected registrations
}

func (r *registry) register(spec loop.Spec[*Tick]) *System {
	s, err := r.loop.Add(spec)
	if err != nil {
		r.reject(err)
	}
	return &System{s: s, err: err, reject: r.reject, spec: spec}
}

// On registers a function to run at a stage, [Update] if it is 0: the everyday form. A name may be
// used once per room. The system runs from the next Initialization on.
func (r *Room) On(s Stage, name string, fn func(*Tick), o ...SystemOption) *System {
	return r.systems.On(s, name, fn, o...)
}

// On implements Room.On and a client's.
func (r *registry) On(s Stage, name string, fn func(*Tick), o ...SystemOption) *System {
	return r.register(onSpec(s, name, fn, o))
}

// Add registers a system by a function that returns, for each stage, the function to run there; nil
// is none, and costs nothing at run time.
func (r *Room) Add(name string, ask func(Stage) func(*Tick), o ...SystemOption) *System {
	return r.systems.Add(name, ask, o...)
}

// Add implements Room.Add and a client's.
func (r *registry) Add(name string, ask func(Stage) func(*Tick), o ...SystemOption) *System {
	return r.register(changed(loop.Spec[*Tick]{Name: name, Ask: ask}, o))
}

// Name returns the name that the system was registered with.
func (s *System) Name() string {
	if s.s == nil {
		return s.spec.Name
	}
	return s.s.Name()
}

// Err returns why the system, or the last Change of it, was rejected; or nil. A system that is
// rejected while [Game] Open runs fails it. On a client, anchors and groups that are still not
// registered at its first Step are rejected there.
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

// Change gives the system other options from the next Initialization on: each option replaces its
// former value, the others are kept. Its timer keeps running: with another [Every], the elapsed
// time counts. A rejected change has no effect, and Err returns its reason.
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
// options; the Before anchors of one call together replace the former ones, and so do its After
// anchors.
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

// Remove removes the system from the given stages, or from all when none is given. It acts at once,
// even later in the stage that is running, and the name is free when no stage remains. It panics if
// a value is not a stage.
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

// Disable keeps the system, or the group with all its members, from running, from the next
// Initialization on, until [System.Enable]. The timers of a disabled system stop, by both clocks:
// after Enable, a call follows when the remainder of its period has passed, its Delta excludes the
// time in which it was disabled, and no missed call is caught up. A member of a disabled group does
// not run, even if its own options permit it.
//
// Messages, timers of [Tick.AfterFunc] and the ticks themselves continue. To stop the time of a
// whole room there is [Room.SetTimeScale].
func (s *System) Disable() { s.Change(Disabled(true)) }

// Enable lets a disabled system or group run again from the next Initialization on.
func (s *System) Enable() { s.Change(Disabled(false)) }

// SystemOption is an option of [Room.On], [Room.Add] and [System.Change].
type SystemOption struct{ apply func(*loop.Spec[*Tick]) }

// Stages lets the system run at these stages instead of the one that it was registered for; for a
// system of [Room.Add], the function is called for these alone.
func Stages(s ...Stage) SystemOption {
	return SystemOption{func(spec *loop.Spec[*Tick]) { spec.Stages = append([]Stage(nil), s...) }}
}

// Before lets the system run before others in the stages that they share. The built-in
// transport.poll, netvar.snapshot and transport.flush can be named too. Without a name it removes
// such anchors: see [System.Change].
func Before(systems ...string) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.Before = append(append([]string{}, s.Before...), systems...) }}
}

// After lets the system run after others in the stages that they share. Without a name it removes
// such anchors: see [System.Change].
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

// Every lets the system run once each time that a period has passed, with the time since its last
// call as [Tick.Delta]. The first call is at the first tick. Calls keep their phase: a call that
// had to wait for its tick, or that RunIf skipped, does not delay the next ones. The number of
// calls therefore equals the number of periods at any tick rate, and two calls may be closer than d
// by up to a tick; [MinGap] keeps the distance instead. After a stall one call replaces all that
// were due. Every(0) is every tick, with a Delta that counts dropped ticks too. A time below 0 is
// an error.
//
// Time is game time: that of the ticks that ran, and of those that the room dropped because it was
// late. In [FixedUpdate] it is the time of the fixed steps, and a system may be due at any of them.
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

// MinGap lets the system run again only when a time has passed since its last call: at the first
// tick at least d later, or later still while its [RunIf] returns false. It keeps no phase and
// catches up no calls, for an effect that must not happen too often. Its Delta is the time since
// the last call. It replaces an [Every] of the same system; [CatchUp] with it is an error.
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

// CatchUp lets a system of [Every] run up to n times in a tick, from 1 to 1 000, each time with its
// period as [Tick.Delta], if so many periods have passed: after a stall, or because the period is
// shorter than a tick. The first call is due after one period. Periods beyond n are dropped and
// counted, in netloop_system_missed_total. 0 is [DefaultCatchUp].
func CatchUp(n int) EveryOption {
	if n == 0 {
		n = DefaultCatchUp
	}
	return EveryOption{func(s *loop.Spec[*Tick]) { s.CatchUp = n }}
}

// RunIf lets the system run only while a condition holds. The condition is called right before each
// call, for a system of [Every] when it is due; if it returns false, that call is skipped. Nil is
// no condition. A condition that panics counts as false, and as a panic of the system.
func RunIf(condition func(*Tick) bool) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.RunIf = condition }}
}

// WithContext removes the system at the beginning of the first tick that finds the context ended.
// The context is checked at Initialization: no call of the system is cut short, and a context that
// ends within a tick acts in the next. A recording does not contain the reason for the end, so it
// cannot be replayed from that tick on.
func WithContext(ctx context.Context) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.Context = ctx }}
}

// Priorities within a stage. Any other int is valid too; systems with smaller ones run earlier, and
// with equal ones in the order of registration.
const (
	PriorityFirst  = -2
	PriorityEarly  = -1
	PriorityNormal = 0
	PriorityLate   = 1
	PriorityLast   = 2
)

// Priority sets the system's position in its stage: before all systems of a greater number.
// Explicit anchors, [Before] and [After], take precedence.
func Priority(p int) SystemOption { return SystemOption{func(s *loop.Spec[*Tick]) { s.Priority = p }} }

// Critical closes the room with an error when the system panics. Any other system loses the call
// that panicked, and after three panics in a row it is disabled for 64 ticks, and twice as long
// each time that it panics again, up to 4 096. The effects of a call before its panic are not
// undone.
func Critical() SystemOption { return SystemOption{func(s *loop.Spec[*Tick]) { s.Critical = true }} }

// OnRemove registers a function that is called, once, when the system has been removed for any
// reason. The systems of a room that ends are removed in the order of registration: after the last
// tick, when all clients have left, and before OnClose; on a client by its Close. A panic in the
// function does not affect the other systems. At the end of a replay the functions are not called.
func OnRemove(fn func()) SystemOption {
	return SystemOption{func(s *loop.Spec[*Tick]) { s.OnRemove = fn }}
}
