package netloop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// System is a registered system: a named piece of code that runs at one stage or
// at several. Its name is its place in the order, its label in the metrics and
// its line in the printed loop.
type System struct {
	s      *loop.System[*Tick]
	err    error
	reject func(error)      // of the room or client
	spec   loop.Spec[*Tick] // of one that a Loop is to add
}

// registry is where the systems of a room or a client are registered.
type registry struct {
	loop   *loop.Loop[*Tick]
	reject func(error) // takes what is registered wrongly
}

func (r *registry) register(spec loop.Spec[*Tick]) *System {
	s, err := r.loop.Add(spec)
	if err != nil {
		r.reject(err)
	}
	return &System{s: s, err: err, reject: r.reject, spec: spec}
}

// On registers a function to run at a stage, [Update] if it is 0: the everyday
// form. A name may be used once per room; it takes effect at the next
// Initialization.
func (r *Room) On(s Stage, name string, fn func(*Tick), o ...SystemOption) *System {
	return r.systems.On(s, name, fn, o...)
}

// On serves Room.On and a client's.
func (r *registry) On(s Stage, name string, fn func(*Tick), o ...SystemOption) *System {
	return r.register(onSpec(s, name, fn, o))
}

// Add registers a system that is asked, stage by stage, for the function that it
// runs there; nil is none, and costs nothing.
func (r *Room) Add(name string, ask func(Stage) func(*Tick), o ...SystemOption) *System {
	return r.systems.Add(name, ask, o...)
}

// Add serves Room.Add and a client's.
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

// Err returns why the system, or the last Change of it, was rejected; or nil. A
// system that is rejected while [Game] Open runs fails it. On a client, anchors and groups
// that nobody has registered by its first Step are rejected there.
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

// Change gives the system other options from the next Initialization on: those
// that are named replace what they named before, the others stay. Its timer
// goes on: with another [Every], the time that has passed counts. A change that
// is rejected changes nothing, and Err says why.
func (s *System) Change(o ...SystemOption) {
	if s.s == nil {
		return // It was rejected itself, and has said so.
	}
	s.err = s.s.Change(changed(s.s.Spec(), o))
	if s.err != nil {
		s.reject(s.err)
	}
}

// onSpec describes a function that runs at a stage.
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

// changed applies options to a description. Anchors are named in several
// options, so that those of one call together replace the former ones.
func changed(spec loop.Spec[*Tick], o []SystemOption) loop.Spec[*Tick] {
	before, after := spec.Before, spec.After
	spec.Before, spec.After = nil, nil
	for _, apply := range o {
		apply(&spec)
	}
	if spec.Before == nil {
		spec.Before = before
	}
	if spec.After == nil {
		spec.After = after
	}
	return spec
}

// Remove takes the system out of some stages, or of all when none is named. It
// acts at once, even later in the stage that is running, and its name is free
// when no stage is left. It panics with what is no stage.
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

// Pause keeps the system, or the group with all that is in it, from running, from
// the next Initialization on, until [System.Resume]. For the timers of what is
// paused the time stands still, by both clocks: after it, a call comes when what
// was left of its period has passed, its Delta does not count the pause, and
// nothing is owed. Who is in a group that is paused, or disabled, stays so
// whatever happens to itself.
//
// Messages, timers of [Tick.AfterFunc] and the ticks themselves go on. To hold the
// time of a whole room there is [Room.SetTimeScale].
func (s *System) Pause() { s.Change(Paused(true)) }

// Resume lets what was paused run again from the next Initialization on.
func (s *System) Resume() { s.Change(Paused(false)) }

// Paused is [System.Pause], or Resume, as an option.
func Paused(yes bool) SystemOption { return func(s *loop.Spec[*Tick]) { s.Paused = yes } }

// SystemOption is an option of [Room.On], [Room.Add] and [System.Change].
type SystemOption func(*loop.Spec[*Tick])

// Stages lets the system run at these stages instead of the one that it was
// registered for; a system of [Room.Add] is asked for these alone.
func Stages(s ...Stage) SystemOption {
	return func(spec *loop.Spec[*Tick]) { spec.Stages = append([]Stage(nil), s...) }
}

// Before lets the system run before others in the stages that they share. The
// built-in transport.poll, netvar.snapshot and transport.flush can be named too.
// Without a name it takes such anchors away: see [System.Change].
func Before(systems ...string) SystemOption {
	return func(s *loop.Spec[*Tick]) { s.Before = append(append([]string{}, s.Before...), systems...) }
}

// After lets the system run after others in the stages that they share. Without
// a name it takes such anchors away: see [System.Change].
func After(systems ...string) SystemOption {
	return func(s *loop.Spec[*Tick]) { s.After = append(append([]string{}, s.After...), systems...) }
}

// Disabled keeps the system or group from running, or lets it run again: it keeps
// its name, its place and its timer. Its time goes on: who was disabled for long
// is due at once. [System.Pause] lets it stand still.
func Disabled(yes bool) SystemOption { return func(s *loop.Spec[*Tick]) { s.Disabled = yes } }

// InSystemGroup puts the system into a group: see [Room.Group]. The group may be registered
// later while [Game] Open runs, and on a client before its first Step.
func InSystemGroup(group string) SystemOption { return func(s *loop.Spec[*Tick]) { s.Group = group } }

// Every lets the system run only when a time has passed since it last did: once,
// with that time as [Tick.Delta]. The first call is at the first tick. Runs keep
// their phase: a call that had to wait for its tick, or whose turn RunIf refused,
// does not put off those after it. So there are as many as periods have passed,
// whatever the tick rate, and two of them may be closer than d by up to a tick;
// [MinGap] keeps the distance instead. After a stall one call stands for all that
// were due. Every(0) is every tick, with a Delta that counts dropped ticks too. A
// time below 0 is an error.
//
// Time is game time: that of the ticks that ran, and of those that the room
// dropped because it was late. In [FixedUpdate] it is that of the fixed steps, of
// which each may be the one at which a system is due.
//
// With [CatchUp] the system runs as often as periods have passed instead.
func Every(d time.Duration, o ...EveryOption) SystemOption {
	return func(s *loop.Spec[*Tick]) {
		s.Periodic, s.Period, s.CatchUp, s.Scaled, s.Gap = true, d, 0, false, false
		for _, apply := range o {
			apply(s)
		}
	}
}

// MinGap lets the system run again only when a time has passed since its last
// call: at the first tick at least d later, or later still while its [RunIf] says
// no. No phase is kept and nothing is caught up: for an effect that must not come
// too often. Its Delta is the time since the last call. It replaces an [Every] of
// the same system; [CatchUp] with it is an error.
func MinGap(d time.Duration, o ...EveryOption) SystemOption {
	return func(s *loop.Spec[*Tick]) {
		Every(d, o...)(s)
		s.Gap = true
	}
}

// EveryOption is an option of [Every] and [MinGap].
type EveryOption func(*loop.Spec[*Tick])

// DefaultCatchUp is what CatchUp(0) means.
const DefaultCatchUp = 5

// CatchUp lets a system of [Every] run up to n times in a tick, from 1 to 1 000,
// each time with its period as [Tick.Delta], if so many periods have passed:
// after a stall, or because the period is shorter than a tick. The first call
// is due after one period. Periods beyond n are given up and counted, in
// netloop_system_missed_total. 0 is [DefaultCatchUp].
func CatchUp(n int) EveryOption {
	if n == 0 {
		n = DefaultCatchUp
	}
	return func(s *loop.Spec[*Tick]) { s.CatchUp = n }
}

// RunIf lets the system run only while a condition holds. It is asked right
// before each call, also whether a system of [Every] runs that is due; when it
// says no, that turn is skipped. Nil is no condition. A condition that panics is
// a no, and counts as a panic of the system.
func RunIf(condition func(*Tick) bool) SystemOption {
	return func(s *loop.Spec[*Tick]) { s.RunIf = condition }
}

// WithContext removes the system at the beginning of the first tick that finds
// the context ended. Ticks look at it, at Initialization: no call of the system
// is cut short, and a context that ends within a tick acts in the next. A
// recording cannot know why it ended: from there on it is not replayable.
func WithContext(ctx context.Context) SystemOption {
	return func(s *loop.Spec[*Tick]) { s.Context = ctx }
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

// Critical closes the room with an error when the system panics. Other systems
// lose the call that panicked, and after three panics in a row they do not run
// for a while: 64 ticks, and twice as long every time that they go on so, up to
// 4 096. A panic undoes nothing of what the call had done until then.
func Critical() SystemOption { return func(s *loop.Spec[*Tick]) { s.Critical = true } }

// OnRemove is called, once, when the system has been removed, by whomever. Those
// that are left when the room ends are removed then, in the order of registration:
// after the last tick, when all clients have left, and before OnClose; on a client
// by its Close. A panic there costs the others nothing. A replay does not end a
// room so.
func OnRemove(fn func()) SystemOption { return func(s *loop.Spec[*Tick]) { s.OnRemove = fn } }
