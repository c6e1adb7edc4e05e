package netloop

import (
	"fmt"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Tick gives access to a room or, on a client, to the client's copy of a room. Each function of a
// game that runs inside a tick gets a Tick. It is valid only while that function runs, on that
// goroutine: a later use panics.
//
// A client has a Tick for each frame. Methods that are only for the server panic on a client with a
// message that names the method. The times of a client's Tick are:
//
//	                in FixedUpdate                       in the other stages
//	FixedStep       the step that runs                   the last step done
//	Number          the server's tick that runs it       the server's tick now, estimated
//	GameTime        that tick's                          the server's now, between two ticks
//	Delta           the length of a step                 the length of the frame
//	Fraction        as in the other stages               how far the frame is beyond FixedStep
//
// The steps of a client that makes inputs ([Input]) run ahead of the server by the time that an
// input needs to arrive. In a step Number and GameTime are therefore larger than in the rest of the
// frame. A function that moves a ship by one step sees the same times on both sides. A frame runs
// all steps that are due, usually none at 240 frames per second and several at 24, each with its
// own times. To move an object evenly at every frame rate, draw it between its last two steps, by
// Fraction. Do not add Fraction to Number: FixedStep has its own rate and clock.
type Tick struct {
	now    *loop.Now
	store  state.Store
	timers *loop.Timers[*Tick]
	rand   *rand.Rand
	log    *slog.Logger
	room   *Room // nil on a client
}

// check panics unless the call of game code that got the Tick is still running.
func (t *Tick) check(what string) {
	if t.now.Stage == 0 {
		panic("netloop: " + what + ": this *Tick outlived its call. Use it only inside the function it was handed to; from elsewhere use RPC.Post or Go")
	}
}

// server returns the room, or panics on a client.
func (t *Tick) server(what string) *Room {
	t.check(what)
	if t.room == nil {
		panic("netloop: " + what + " works on the server only. A client asks the server to do it, with an RPC or a Call")
	}
	return t.room
}

// Number returns the number of the tick. The first is 1. On a client it is an estimate of the
// server's current tick: see [Tick].
func (t *Tick) Number() uint64 { t.check("Tick.Number"); return t.now.Tick }

// Stage returns the stage that is running.
func (t *Tick) Stage() Stage { t.check("Tick.Stage"); return t.now.Stage }

// Delta returns the game time that this call advances: the period of the fixed step in FixedUpdate,
// and in the other stages the period of the tick or, on a client, of the frame. For a system of
// [Every] it is the time since its last call, or its period if it catches up.
func (t *Tick) Delta() time.Duration { t.check("Tick.Delta"); return t.now.Delta }

// GameTime returns the game time at this tick: its number divided by the rate. On a client it is an
// estimate of the server's game time at this frame, which is usually between two ticks; in
// FixedUpdate it is the game time of the tick in which the server runs the step. It never
// decreases.
func (t *Tick) GameTime() time.Duration { t.check("Tick.GameTime"); return t.now.GameTime }

// FixedStep returns the number of the running fixed step, counted from the start of the room: the
// first is 1, and each number runs once. Outside of [FixedUpdate] it is the number of the last
// completed step, or 0 before the first step. In messages that run at FixedUpdate it is the first
// step of the tick. On a client, steps have the server's numbers and run when they are due, at most
// 8 in a frame; steps that a longer frame skips are counted.
func (t *Tick) FixedStep() uint64 { t.check("Tick.FixedStep"); return t.now.FixedStep }

// Time returns the wall-clock time of the tick's start.
func (t *Tick) Time() time.Time { t.check("Tick.Time"); return t.now.Wall }

// Fraction returns the position of the tick between the last fixed step and the next, from 0 to
// below 1. On a server it is 0 when both rates are equal. On a client it is the position of the
// frame, for drawing: FixedStep + Fraction advances evenly and never decreases.
func (t *Tick) Fraction() float64 { t.check("Tick.Fraction"); return t.now.Fraction }

// Rand returns the room's generator of random numbers. Its seed is from [Config] Seed, so that a
// room with the same inputs gets the same numbers.
func (t *Tick) Rand() *rand.Rand { t.check("Tick.Rand"); return t.rand }

// Log returns a logger that adds the room, the tick, the system and, while a client's message is
// being handled, the client. It never blocks the tick: if its buffer is full, lines are dropped and
// counted. Like the Tick it is valid only during this call: other goroutines use [Room.Log].
func (t *Tick) Log() *slog.Logger { t.check("Tick.Log"); return t.log }

// Room returns the room. It panics on a client.
func (t *Tick) Room() *Room { return t.server("Tick.Room") }

// Clients iterates over the clients that have joined, in the order of their ids.
// It panics on a client.
func (t *Tick) Clients() iter.Seq[*Client] {
	clients := t.server("Tick.Clients").e.Clients()
	return func(yield func(*Client) bool) {
		for _, c := range clients {
			if !yield(clientOf(c)) {
				return
			}
		}
	}
}

// Client returns the client with the id, if it is in the room. It panics on a
// client.
func (t *Tick) Client(id ClientID) (*Client, bool) {
	c, ok := t.server("Tick.Client").e.Client(uint64(id))
	return clientOf(c), ok
}

// AfterFunc calls fn once, at the start of Update of the first tick at which d of game time has
// passed. The earliest call is in the next tick, even if d is 0 or less. If fn panics, the panic is
// counted and logged, and fn is not called again.
func (t *Tick) AfterFunc(d time.Duration, fn func(*Tick)) Timer {
	t.check("Tick.AfterFunc")
	return Timer{t.timers.Add(loop.GameClock, ahead(t.now.GameTime, max(d, 1)), fn)}
}

// AfterFuncScaled is AfterFunc in scaled time: while the room is paused, the call waits. In a tick,
// the due calls of AfterFunc run before those of AfterFuncScaled. Calls of one clock run in the
// order of their times, and then of their registration.
func (t *Tick) AfterFuncScaled(d time.Duration, fn func(*Tick)) Timer {
	t.check("Tick.AfterFuncScaled")
	return Timer{t.timers.Add(loop.ScaledClock, ahead(t.now.ScaledTime, max(d, 1)), fn)}
}

// At calls fn once, at the start of Update of the first tick at which the deadline has passed, by
// the clock of the deadline. The earliest call is in the next tick. It is ordered among the calls
// of AfterFunc, or of AfterFuncScaled. When fn panics, the panic is counted and logged, and fn is
// not called again.
func (t *Tick) At(d Deadline, fn func(*Tick)) Timer {
	t.check("Tick.At")
	if d.Scaled() {
		return Timer{t.timers.Add(loop.ScaledClock, max(^d.at.At, ahead(t.now.ScaledTime, 1)), fn)}
	}
	return Timer{t.timers.Add(loop.GameClock, max(d.at.At, ahead(t.now.GameTime, 1)), fn)}
}

// Timer is a pending call of [Tick.At], [Tick.AfterFunc] or [Tick.AfterFuncScaled].
type Timer struct{ t *loop.Timer[*Tick] }

// Stop cancels the call. It reports false if the call has begun or was stopped before.
func (t Timer) Stop() bool { return t.t != nil && t.t.Stop() }

// ahead returns the time d after now, at least 0. If the sum overflows, it is the largest duration,
// 292 years.
func ahead(now, d time.Duration) time.Duration {
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return max(now+d, 0)
}

// String returns the tick's number and stage, for logs and failures.
func (t *Tick) String() string {
	return fmt.Sprintf("tick %d, %s", t.now.Tick, t.now.Stage)
}

// Stage is one of the seven stages of a tick, in the order in which they run. The zero Stage is no
// stage. String and MarshalText return its name, UnmarshalText reads the name, and Valid reports
// whether it is one of the seven.
type Stage = loop.Stage

// The stages of a tick. The package's doc describes the use of each.
const (
	Initialization Stage = loop.Initialization
	EarlyUpdate    Stage = loop.EarlyUpdate
	FixedUpdate    Stage = loop.FixedUpdate
	PreUpdate      Stage = loop.PreUpdate
	Update         Stage = loop.Update
	PreLateUpdate  Stage = loop.PreLateUpdate
	PostLateUpdate Stage = loop.PostLateUpdate
)

// AllStages returns the seven stages in the order in which a tick runs them. The option for a
// system's stages is [Stages].
func AllStages() []Stage {
	all := loop.Stages()
	return all[:]
}

// The bounds of a time scale: see [Room.SetTimeScale].
const (
	MaxTimeScale    int = loop.MaxScale    // 16: times as fast as game time
	MaxTimeScaleDen int = loop.MaxScaleDen // 1 000 000: the largest denominator
)

// SetTimeScale makes scaled time run num/den times as fast as game time, from the next tick: 0, 1
// is a pause, 1, 2 slow motion and 1, 1 the default. Within a tick all systems see the same scale.
// After several calls in a tick, the last call applies. Ticks, their numbers, fixed steps and
// GameTime are not affected, nor is any code that does not use scaled time: see [Tick.ScaledTime],
// [Tick.ScaledDelta], [Scaled], [Tick.AfterFuncScaled] and [Tick.InScaled].
//
// The scale is sent to clients, which compute the same scaled time. SetTimeScale panics unless
// num/den is from 0 to [MaxTimeScale] and den from 1 to [MaxTimeScaleDen].
func (r *Room) SetTimeScale(t *Tick, num, den int) {
	t.server("Room.SetTimeScale")
	if num < 0 || den < 0 || loop.CheckScale(uint64(num), uint64(den)) != nil {
		panic(fmt.Sprintf("netloop: Room.SetTimeScale(%d, %d): use 0 to %d, with a denominator from 1 to %d", num, den, MaxTimeScale, MaxTimeScaleDen))
	}
	r.systems.loop.Rescale(uint64(num), uint64(den))
}

// TimeScale returns the scale of the tick, in lowest terms. On a client it is the newest scale that
// it has received.
func (t *Tick) TimeScale() (num, den int) {
	t.check("Tick.TimeScale")
	return int(t.now.ScaleNum), int(t.now.ScaleDen)
}

// ScaledTime returns the scaled time at this tick: game time, stretched by the time scales that
// [Room.SetTimeScale] has set so far. It is exact: rounding errors do not accumulate at any scale.
// If the scale has always been 1/1, it is equal to GameTime.
//
// A client computes it from its GameTime and the scales that the server has sent. A lower scale
// arrives with the delay of a message, in which the client's scaled time has run too fast: it then
// steps back by the difference. ScaledDelta is never negative.
func (t *Tick) ScaledTime() time.Duration { t.check("Tick.ScaledTime"); return t.now.ScaledTime }

// ScaledDelta returns Delta in scaled time. Fractions of a nanosecond are carried over: the sum of
// all ScaledDeltas of ticks is ScaledTime, and the sum of the ScaledDeltas of fixed steps is the
// scaled sum of their Deltas. For a system of [Every] it is the scaled time since its last call.
// When a system catches up, each call has the period as its delta in the clock of the period; in
// the other clock, the first call has the whole delta.
func (t *Tick) ScaledDelta() time.Duration { t.check("Tick.ScaledDelta"); return t.now.ScaledDelta }

// Scaled makes [Every] or [MinGap] measure scaled time: see [Room.SetTimeScale]. A paused room
// makes no such call. A change of the scale keeps the phase: the remainder of a period takes longer
// or shorter accordingly. At a scale of 16 several periods may pass in a tick: one call replaces
// all of them or, with [CatchUp], each period has its own call.
func Scaled() EveryOption { return EveryOption{func(s *loop.Spec[*Tick]) { s.Scaled = true }} }

// Deadline is a point in game time or in scaled time that can be replicated, so that server and
// clients can count down to it. The zero Deadline has passed.
type Deadline struct {
	// at is the game time if it is not negative, and otherwise the bitwise complement of the scaled
	// time. So the sign selects the clock; on the wire the lowest bit does.
	at codec.Instant
}

// In returns the deadline after d of game time from this tick.
func (t *Tick) In(d time.Duration) Deadline {
	t.check("Tick.In")
	at := ahead(t.now.GameTime, d)
	t.await(loop.GameClock, at)
	return Deadline{codec.Instant{At: at}}
}

// InScaled returns the deadline after d of scaled time from this tick. The time left does not
// decrease while the room is paused.
func (t *Tick) InScaled(d time.Duration) Deadline {
	t.check("Tick.InScaled")
	at := ahead(t.now.ScaledTime, d)
	t.await(loop.ScaledClock, at)
	return Deadline{codec.Instant{At: ^at}}
}

// await makes a sleeping room wake when a deadline has passed.
func (t *Tick) await(clock loop.TimerClock, at time.Duration) {
	if t.room != nil && t.room.e != nil {
		t.room.e.Sleep.Await(clock, at)
	}
}

// Scaled reports whether the deadline is in scaled time.
func (d Deadline) Scaled() bool { return d.at.At < 0 }

// Left returns the time until the deadline, in the deadline's clock and at least 0.
func (d Deadline) Left(t *Tick) time.Duration {
	t.check("Deadline.Left")
	if d.Scaled() {
		return max(0, ^d.at.At-t.now.ScaledTime)
	}
	return max(0, d.at.At-t.now.GameTime)
}

// Passed reports whether the deadline has passed.
func (d Deadline) Passed(t *Tick) bool { return d.Left(t) == 0 }

// Moment is a point between two snapshots: the state Alpha of the way from the end of tick From to
// the end of tick To. A client draws the game at a moment, client.Client.ViewMoment, and sends the
// moment with its inputs. [Tick.ViewMoment] returns the value that the server has accepted, and
// [Object.At] the state of an object at a moment. The zero Moment means no moment.
type Moment struct {
	From, To uint64
	Alpha    float64 // from 0 to below 1
}

// ViewMoment returns the client's view for [Object.At]: the moment that the player saw when it
// aimed. In the handler of [Input] it is the view of the handled input, for the client that sent
// the input. Elsewhere it is the view of the input that ran last. For a step without an input, the
// last view advances with time. Before the client's first input there is no view.
//
// The server accepts only plausible views: the client has both snapshots, one follows the other,
// they are not older than [RoomSpec] MaxRewind permits, and the view advances with time, within an
// eighth of a second in each second. It replaces any other view by the nearest plausible view, and
// counts it: see [LinkStats]. ViewMoment panics on a client.
func (t *Tick) ViewMoment(c *Client) Moment {
	t.server("Tick.ViewMoment")
	c.mustExist("Tick.ViewMoment")
	return Moment(c.e.View())
}

// At returns the state that the object had at a moment, from its history. It interpolates between
// the two snapshots by the tags lerp= of the fields (see [Lerp]), as a client does to draw the
// object. It reports false if the object did not exist yet, no longer exists, or if the history no
// longer has the moment: it has the changes of 128 ticks, and at most 384 KiB. So an object that
// has just despawned cannot be hit, even if a client still sees it. For the zero Moment At returns
// [Object.State].
//
// The state is the same for all clients: At does not consider whether a client sees the object,
// which fields it may read, or whether the newest changes have arrived at the client. Fields that
// are not sent are zero. Do not change slices and maps in the state. At allocates memory only once
// for each change of a string, a slice or a similar value. It panics on a client: use client.View
// there.
func (o *Object[S]) At(m Moment) (s S, ok bool) {
	switch {
	case !o.o.Original():
		panic("netloop: Object.At works on the server only. A client draws what client.View returns")
	case !o.o.Alive():
		return s, false
	case m == Moment{}:
		return o.State(), true
	}
	d, ok := o.o.At(state.Moment(m))
	if !ok {
		return s, false
	}
	if d.Base != nil {
		s = *(*S)(d.Base)
	}
	d.Write(unsafe.Pointer(&s))
	return s, true
}
