package netloop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// Game is implemented by the game author.
type Game interface {
	// Schema returns the declarations that server and clients share.
	Schema() *Schema
	// Open registers a room's systems, handlers and hooks. It is called once per room, before the
	// room's first tick. A Game stores the state of a room in variables of Open, never in the Game
	// itself. If a registration was rejected, the room fails to open even if Open returns nil.
	Open(r *Room) error
}

// Room is one loop and one game state, both owned by the room's goroutine: call methods in [Game]
// Open or within a tick, unless their documentation allows any goroutine.
type Room struct {
	e       *room.Room // the engine
	systems registry
	server  *Server
	schema  *Schema
	spec    RoomSpec
	now     loop.Now
	tick    Tick
	timers  loop.Timers[*Tick]
	hooks   hooks

	readers       []*readers // by class; nil for a class without rules
	starter       *loop.System[*Tick]
	spectatorRoom *room.Room    // the room of the delayed spectators; nil: no delay
	recording     io.Closer     // the room's own recording; nil: not recorded
	ring          *history.Ring // nil without Config.InspectRing
	listing       listing
	indexedAt     uint64 // 1 + the last captured tick when indexAllGroups ran; 0: never
	number        uint64 // number of this room on the server, from 1
	seed          uint64
	epoch         atomic.Uint64 // of the claim of its name in a cluster; 0: none
	transfer      transfer
	opened        time.Duration // time by the server's clock
	started       bool          // guarded by the mutex of the server's supervisor
	opening       bool
	openContext   context.Context //nolint:containedctx // For Fetch, while Open runs.
	errs          []error         // registrations rejected while Open runs
	fetched       []fetched       // results of Fetch, until recorded; in a replay those to come
	offTick       *offTick        // nil without Config.CheckEdits
}

// roomNumbers has the numbers of a new room: its number on the server, the epoch of its name in a
// cluster or 0, and the seed of its random numbers.
type roomNumbers struct{ number, epoch, seed uint64 }

// openRoom makes a room and lets the game fill it.
func openRoom(ctx context.Context, s *Server, spec RoomSpec, o roomNumbers) (_ *Room, err error) {
	r := &Room{
		server: s, schema: s.schema, spec: spec, number: o.number, seed: o.seed, opened: s.clock.Now(), opening: true,
		openContext: ctx, fetched: slices.Clone(s.cfg.fetched),
	}
	r.epoch.Store(o.epoch)
	r.hooks.room = r
	if s.cfg.CheckEdits {
		r.offTick = new(offTick)
	}
	r.systems = registry{loop.New(&r.tick, &r.now, func() time.Duration { return r.e.LoopClock() }), r.reject}
	if r.e, err = room.New(r.config(s)); err != nil {
		return nil, err
	}
	r.timers.Halt, r.systems.loop.Halt = r.e.GivenUp, r.e.GivenUp
	filled := false
	defer func() {
		if !filled {
			r.unlist() // Open may have registered a watch of other rooms.
			r.e.Discard()
		}
	}()
	r.tick = Tick{now: &r.now, store: r.e.World(), timers: &r.timers, log: r.e.Log(), room: r}
	r.reseed(o.seed)
	r.applyClassOptions()
	r.setReaders()
	r.builtins()

	err = s.game.Open(r)
	r.opening, r.openContext = false, nil
	if err == nil { // An Open that has failed may have registered only a part.
		err = errors.Join(r.undefinedRules(), r.systems.loop.Check())
	}
	if err := errors.Join(append(r.errs, err)...); err != nil {
		return nil, fmt.Errorf("netloop: the game's Open: %w", err)
	}
	if err := r.openSpectatorRoom(); err != nil {
		return nil, err
	}
	filled = true
	return r, nil
}

// config returns the configuration of the room's engine, from the room's spec and the server's
// Config.
func (r *Room) config(s *Server) room.Config {
	return room.Config{
		Spec: room.Spec{
			Name: r.spec.Name, Kind: r.spec.Kind, Rate: loop.Rate(r.spec.Rate), Fixed: loop.Rate(r.spec.FixedRate),
			SendEvery: r.spec.SendEvery, MaxClients: r.spec.MaxClients, Budget: r.spec.Budget,
			MaxSpectators: r.spec.MaxSpectators, SpectatorDelay: r.spec.SpectatorDelay, Private: r.spec.Private, Code: r.spec.Code,
			KeepDropped: r.spec.KeepDropped, SameSubject: room.SameSubject(r.spec.Duplicate - DuplicateTakeOver), LostAfter: s.cfg.LostAfter,
			MaxRewind: r.spec.MaxRewind, CloseEmpty: r.spec.CloseEmpty, Sleep: r.spec.Sleep,
			Travels: s.member != nil || s.cfg.travelled,
		},
		Schema: s.schema.s, Game: &r.hooks, Server: roomServer{r}, Tick: &r.tick, Loop: r.systems.loop, Now: &r.now,
		Clock: s.clock, Log: s.log, Metrics: s.metrics, Stats: s.transport, Instance: s.instance[:],
		Limits: s.cfg.RPC.queue(r.spec.Rate.Period()), Answers: s.cfg.RPC.Answers, Arrivals: s.cfg.RPC.arrivals(),
		LinkLimits:   s.cfg.RPC.link(r.spec.Rate.Period()),
		AdmitTimeout: s.cfg.AdmitTimeout, DrainTimeout: s.cfg.DrainTimeout,
		Watchdog: s.cfg.Watchdog, WatchdogExit: s.cfg.WatchdogExit,
		Identify: func(ctx context.Context, j *room.Join) error { return s.identify(ctx, j, r.spec.Name) },
		Hold:     r.hold, Travel: s.travel(), Places: r.places(),
		Detail:     s.room == nil, // The server's first room is the default room.
		CheckEdits: s.cfg.CheckEdits, CheckValues: s.cfg.CheckValues,
		Closed: func(code Code, text string) error { return &Closed{code, text} },
	}
}

// builtins registers the systems that each room runs.
func (r *Room) builtins() {
	for _, s := range r.e.Systems() {
		added, err := r.systems.loop.Add(loop.Spec[*Tick]{
			Name: s.Name, Place: s.Place, Once: s.Stage == 0, BuiltIn: s.Without,
			// Timers run the game's code, so a panic in this system only loses one call. A panic in
			// any other built-in system would leave the room's state half changed.
			Critical: s.Name != room.TimersSystem,
			Ask: func(stage Stage) func(*Tick) {
				if s.Stage != 0 && s.Stage != stage {
					return nil
				}
				return func(*Tick) { s.Run(stage) }
			},
		})
		if err != nil {
			panic(err) // The names are constants and distinct.
		}
		if s.Name == room.StartSystem {
			r.starter = added
		}
	}
}

// reseed seeds the room's random numbers and the ids of objects that not all clients have.
func (r *Room) reseed(seed uint64) {
	// Derive the second seed with the golden ratio, so that the streams differ.
	r.tick.rand = rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	r.e.World().Seed(seed)
}

// Spec returns the room's description with its defaults set. Any goroutine may call it.
func (r *Room) Spec() RoomSpec { return r.spec }

// Incarnation returns a fencing token: a number by which a store can distinguish successive rooms
// with the same name. A room that the watchdog has given up may still be saving its state while its
// successor loads it. The game passes the number with each load and save, and the store refuses a
// save with a number less than the largest one seen for the name. Any goroutine may call it; a
// replay returns the recorded number.
//
// Each room of a server has a larger number than all rooms that the server opened before. Across
// processes it depends on [Config] Incarnation. By default the first number is the wall clock in
// microseconds: the rooms of a process have larger numbers than those of each process that started
// earlier, unless the wall clock was set back in between. The server command with --state-dir keeps
// a bound in that directory: its numbers are larger than all numbers of earlier processes with this
// directory, even if the clock was set back. Of two processes that run at the same time, the rooms
// of the later one have the larger numbers.
//
// In a cluster, the number of a room other than the default room is the epoch of its name, which
// is larger than that of all rooms that any server of the cluster opened before. A room whose
// hand-over has failed ([Room.HandOver]) continues with a larger number.
func (r *Room) Incarnation() uint64 {
	if e := r.epoch.Load(); e != 0 {
		return e
	}
	return r.server.incarnation + r.number - 1
}

// Log returns the server's logger, for code outside of ticks, such as OnAdmit functions and work
// given to [Go]. Any goroutine may use it.
func (r *Room) Log() *slog.Logger { return r.server.log }

// Server returns the server of the room. Any goroutine may call it.
func (r *Room) Server() *Server { return r.server }

// Close ends the room after this tick and sends the code and the text to each of its clients. The
// server's other rooms continue. If the room is the default room, the server drains and ends; its
// Run returns nil if c is [CodeClosing], and otherwise a [*Closed].
func (r *Room) Close(t *Tick, c Code, why string) {
	t.server("Room.Close")
	r.e.Close(c, why)
}

// Quarantined returns the number of systems that are disabled at present because they panicked
// repeatedly. Any goroutine may call it.
func (r *Room) Quarantined() int { return r.e.Faults.Quarantined() }

// Overload is the level to which a room reduces its work while its ticks take too long. Each level
// includes the reductions of all lower levels.
type Overload uint8

// The levels of overload, in rising order, with the numbers of package overload.
const (
	OverloadNone   Overload = iota // no reduction
	OverloadHalved                 // each client gets half of its snapshots
	// objects with a [Weight] less than 1 are sent at their MinRate, or once a second
	OverloadShedding
	OverloadRefusing // new clients are refused with CodeBusy
)

// String returns the level's name, such as "halved".
func (o Overload) String() string { return overload.Level(o).String() }

// Overload returns the room's level of overload. The level changes only between ticks and is an
// input of the tick, so a game may decide by it how much work to do. Any goroutine may call it.
func (r *Room) Overload() Overload { return Overload(r.e.Load.Level()) }

// reject collects the errors of registrations in Open, with which Open then fails; after Open it
// logs them. The error does not begin with "netloop: ": Open's error and System.Err add that.
func (r *Room) reject(err error) {
	if r.opening {
		r.errs = append(r.errs, err)
		return
	}
	r.e.Log().Error("registration rejected", "error", err)
}

// opens reports whether the game's Open is running. If not, it rejects the registration of name.
func (r *Room) opens(name string) bool {
	if !r.opening {
		r.reject(fmt.Errorf("%s belongs in the game's Open", name))
	}
	return r.opening
}

// takes reports whether a function for the class may be registered: Open is running, and the class
// is in the room's schema. If not, it rejects the registration of name.
func (r *Room) takes(c *class, name string) bool {
	if err := c.belongs(r.schema.s); err != nil {
		r.reject(fmt.Errorf("%s: %w", name, err))
		return false
	}
	return r.opens(name)
}

// needs rejects a nil function of a handler, and reports whether there is one.
func (r *Room) needs(fn bool, call string, m *schema.Method) bool {
	if !fn {
		r.reject(fmt.Errorf("%s of %q needs a function, not nil", call, m.Queue.Name))
	}
	return fn
}

// handled rejects a handler's registration that failed with err.
func (r *Room) handled(err error) {
	if err != nil {
		r.reject(err)
	}
}
