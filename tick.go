package netloop

import (
	"fmt"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
)

// Tick is the capability to touch a room, or on a client its mirror of one. It
// is handed to every function of a game that runs inside a tick, and it is alive
// only while that function runs, on that goroutine: used later it panics.
//
// A client has one for each frame. What only a server can do panics there and says so, and its
// times are these:
//
//	                in FixedUpdate                       in the other stages
//	FixedStep       the step that runs                   the last step done
//	Number          the server's tick that runs it       the server's tick now, estimated
//	GameTime        that tick's                          the server's now, between two ticks
//	Delta           the length of a step                 the length of the frame
//	Fraction        as in the other stages               how far the frame is beyond FixedStep
//
// The steps of a client that makes inputs ([Input]) run ahead of the server's present, by as much
// as an input needs to be there in time; so their Number and GameTime lie ahead of those of the
// frame. A function that moves a ship by one step sees the same on both sides. A frame runs as many
// steps as have come due, mostly none at 240 frames per second and several at 24, each with its own
// times. What is drawn between the last two steps by Fraction moves evenly at every frame rate;
// Number is the wrong thing to add it to, because FixedStep has a rate and a clock of its own.
type Tick struct {
	now    *loop.Now
	store  netvar.Store
	timers *loop.Timers[*Tick]
	rand   *rand.Rand
	log    *slog.Logger
	room   *Room // nil on a client
}

// check panics unless the tick's call is still running.
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

// Number returns the number of the tick. The first is 1. On a client it is that of the server's
// tick, estimated: see [Tick].
func (t *Tick) Number() uint64 { t.check("Tick.Number"); return t.now.Tick }

// Stage returns the stage that is running.
func (t *Tick) Stage() Stage { t.check("Tick.Stage"); return t.now.Stage }

// Delta returns the game time that this call accounts for: of the fixed step in
// FixedUpdate, of the tick in the other stages, where it is that of the frame on a client; and
// for a system of [Every] the time since it last ran, or its period if it catches up.
func (t *Tick) Delta() time.Duration { t.check("Tick.Delta"); return t.now.Delta }

// GameTime returns the game time at this tick: its number divided by the rate. On a client it is
// the server's at this frame, estimated, and so mostly between two ticks; in FixedUpdate it is that
// of the tick which runs the step on the server. It never goes back.
func (t *Tick) GameTime() time.Duration { t.check("Tick.GameTime"); return t.now.GameTime }

// FixedStep returns the number of the fixed step that runs, counted from the
// start of the room: the first is 1, and each runs once, however many there are
// in a tick. Outside of [FixedUpdate] it is that of the last step done, 0 before
// the first; messages that run at FixedUpdate see the first step of the tick. On
// a client steps have the server's numbers, and run when their time has come, at most 8 in a frame:
// those that a longer frame leaves out are counted.
func (t *Tick) FixedStep() uint64 { t.check("Tick.FixedStep"); return t.now.FixedStep }

// Time returns the wall clock as it was when the tick began.
func (t *Tick) Time() time.Time { t.check("Tick.Time"); return t.now.Wall }

// Fraction returns how far the tick is between the last fixed step and the next,
// from 0 to below 1. On a server it is 0 when both rates are equal. On a client it is that of the
// frame, by which to draw: FixedStep + Fraction goes on evenly, and never back.
func (t *Tick) Fraction() float64 { t.check("Tick.Fraction"); return t.now.Fraction }

// Rand returns the room's random numbers. They are seeded by [Config] Seed, so
// that a room with the same inputs draws the same numbers.
func (t *Tick) Rand() *rand.Rand { t.check("Tick.Rand"); return t.rand }

// Log returns a logger that adds room, tick, system and, while a client's
// message is being handled, the client. It never blocks the tick: what the sink
// cannot take is dropped and counted. Like the Tick it belongs to this call: for
// other goroutines there is [Room.Log].
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

// View returns what a client saw when it made the input that is handled now, for [Object.At]: the
// moment at which the player aimed. In the handler of [Input] that is exact, for the client from
// which the input is. Elsewhere it is that of the input which ran last. For a step whose input is
// missed, time has gone on for the client as for everybody. Without any input there is none.
//
// What a client says of its view counts as far as it can be true: it has both snapshots, one
// follows the other, they are not older than [RoomSpec] MaxRewind allows, and the view moves with
// time, but for an eighth of a second in each. What is beyond becomes the nearest view that can be,
// and is counted, see [LinkStats]. It panics on a client.
func (t *Tick) View(c *Client) View {
	t.server("Tick.View")
	c.need("Tick.View")
	return View(c.e.View())
}

// AfterFunc calls fn once, at the start of Update of the first tick at which d of
// game time has passed, and at the earliest in the next tick, which is what 0 and
// less mean. When fn panics, it is counted and logged, and not called again.
func (t *Tick) AfterFunc(d time.Duration, fn func(*Tick)) Timer {
	t.check("Tick.AfterFunc")
	return Timer{t.timers.Add(loop.GameClock, ahead(t.now.GameTime, max(d, 1)), fn)}
}

// AfterFuncScaled is After in scaled time: what it puts off waits for as long as the
// room is paused. Of the calls that are due in one tick those of After come
// first; those of one clock come in the order of their times, and then of
// registration.
func (t *Tick) AfterFuncScaled(d time.Duration, fn func(*Tick)) Timer {
	t.check("Tick.AfterFuncScaled")
	return Timer{t.timers.Add(loop.ScaledClock, ahead(t.now.ScaledTime, max(d, 1)), fn)}
}

// At calls fn once, at the start of Update of the first tick at which the deadline has passed, by
// the clock of the deadline, and at the earliest in the next tick. It comes among the calls of
// AfterFunc, or of AfterFuncScaled. When fn panics, it is counted and logged, and not called again.
func (t *Tick) At(d Deadline, fn func(*Tick)) Timer {
	t.check("Tick.At")
	if d.Scaled() {
		return Timer{t.timers.Add(loop.ScaledClock, max(^d.at.At, ahead(t.now.ScaledTime, 1)), fn)}
	}
	return Timer{t.timers.Add(loop.GameClock, max(d.at.At, ahead(t.now.GameTime, 1)), fn)}
}

// Timer is a call that [Tick.At], [Tick.AfterFunc] or [Tick.AfterFuncScaled] has put off.
type Timer struct{ t *loop.Timer[*Tick] }

// Stop keeps the call from happening. It reports whether it was in time.
func (t Timer) Stop() bool { return t.t != nil && t.t.Stop() }

// ahead is the time that lies d after now, at least 0. It saturates, after 292
// years.
func ahead(now, d time.Duration) time.Duration {
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return max(now+d, 0)
}

// String says where in the loop the tick is, for logs and failures.
func (t *Tick) String() string {
	return fmt.Sprintf("tick %d, %s", t.now.Tick, t.now.Stage)
}

// Stage is one of the seven stages of a tick, in the order in which they run.
// The zero Stage means that none was named.
type Stage = loop.Stage

// The stages of a tick. What belongs in each is said in the package's doc.
const (
	Initialization = loop.Initialization
	EarlyUpdate    = loop.EarlyUpdate
	FixedUpdate    = loop.FixedUpdate
	PreUpdate      = loop.PreUpdate
	Update         = loop.Update
	PreLateUpdate  = loop.PreLateUpdate
	PostLateUpdate = loop.PostLateUpdate
)

// AllStages returns the seven stages in the order in which a tick runs them. The
// option of a system is [Stages].
func AllStages() []Stage {
	all := loop.Stages()
	return all[:]
}
