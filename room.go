package netloop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// Game is implemented by the game author.
type Game interface {
	// Schema returns the declarations that server and clients share.
	Schema() *Schema
	// Open fills a room: systems, handlers, the first objects. It is called once per room, before
	// the room's first tick. A Game keeps the state of a room in variables of Open, never in the
	// Game itself. If a registration was rejected, the room fails to open even if Open returns nil.
	Open(r *Room) error
}

// RoomSpec describes a room. Its rates hold for the life of the room.
type RoomSpec struct {
	// Name is the name by which clients ask for the room, at most 256 bytes and unique on the
	// server. The name of the default room may be empty.
	Name string
	// Kind is the room's kind within the game, such as "table". The game's Open reads it, and some
	// metrics have it as a label. At most 64 bytes.
	Kind string
	// Rate is the tick rate; zero means 60 Hz. From 1 to 1 000 Hz.
	Rate Rate
	// FixedRate is the rate of the fixed steps; zero means the tick rate.
	FixedRate Rate
	// SendEvery lets every n-th tick send snapshots; zero means 1. From 1 to 60.
	SendEvery int
	// MaxClients is the number of seats for clients; zero means 256. From 1 to 10 000.
	MaxClients int
	// MaxSpectators is the number of additional seats for spectators, see [Client.Spectator]. Zero
	// means none; at most 10 000.
	MaxSpectators int
	// SpectatorDelay shows spectators the room as it was this long ago, so that a spectator cannot
	// help a player by telling the positions of others. It delays the objects, the messages and the
	// room's time alike. Zero means no delay; at most 5 min. Delayed spectators see the view of the
	// room's [Client.Camera] and are not clients of the room: OnAdmit is called for them, but they
	// do not join, and their messages are dropped. After the room has ended they are shown the
	// remaining delay; if the server ends, it waits for Config.DrainTimeout at most. The delay
	// costs as much as one more client, and keeps the delayed data in memory, up to 64 MiB.
	SpectatorDelay time.Duration
	// Private refuses clients that have neither a [Ticket] nor the room's Code, with the same
	// answer as for a room that does not exist. A player with a client in the room gets in without
	// them and takes that client over (Duplicate).
	Private bool
	// Code lets people meet in a private room: a client with this code as its client.Config Ticket
	// gets in. Empty lets the server generate one, which [Room.Spec] returns: six letters and
	// digits that are hard to confuse. At most 64 bytes, without an @, and unique on the server.
	Code string
	// Budget is the average number of bytes of object records that a client is sent per tick; zero
	// means 11 000, as much as the packets of a tick carry. From 1 to 1 048 576. See
	// [Client.SetBudget].
	Budget int
	// KeepDropped is the game time within which a client that has lost its connection may return:
	// see [Room.OnDrop]. Zero means 20 s, less than zero that the client leaves at once; at most an
	// hour. A client that closes its connection itself, or is closed by the server, leaves at once
	// in any case. So does a client if a newcomer needs its seat, and the client's player or
	// address keeps more than a quarter of a full room by such clients.
	KeepDropped time.Duration
	// Duplicate is the policy for a newcomer whose player ([Join] Subject) is in the room
	// already; zero means [DuplicateTakeOver].
	Duplicate DuplicatePolicy
	// MaxRewind limits the age of a client's view, see [Tick.ViewMoment], at the time of the input
	// that carried it; an older view counts as this old. Zero means 250 ms, less than zero disables
	// rewinding; at most 1 s. An input is made half a round trip before its step, plus the time for
	// which inputs wait for their steps, and this age is limited to MaxRewind too. The total rewind
	// is therefore at most twice MaxRewind.
	MaxRewind time.Duration
	// CloseEmpty is the game time after which an empty room closes by itself. If a seat is reserved
	// then, or a client is joining, the time starts anew. Zero means 30 s, and for the default room
	// [NeverClose], like any value below zero; at most an hour.
	CloseEmpty time.Duration
	// Sleep lets the room skip its ticks while it is idle. A room is idle when no message of its
	// clients, no posted function and no result of work is pending, no timer, Deadline or system
	// with a period is due, and each client has had a second to receive the last changes. Any of
	// these wakes the room, and so do a client that joins, leaves or returns, and an inspection of
	// the room. Systems that run in each tick do not keep it awake, unless they change replicated
	// state; neither does a client that only acknowledges, or sends inputs of zeros.
	//
	// Tick.Number, GameTime and scaled time advance as if the skipped ticks had run, while fixed
	// steps and systems without a period miss them. For a system with a period, Delta is the time
	// since its last call, as always.
	Sleep bool
	// Params is read by the game's Open with [Room.Params]: the rules of a table, the map of a
	// match. It is a plain struct, a pointer to one, or a protobuf message. It is encoded like an
	// RPC message when the room is opened, and takes at most [MaxMessage]. Nil means none; the
	// specs that [Room.Spec] and [Server.Rooms] return have nil here.
	Params any

	packed schema.Parcel // of Params
}

// NeverClose is the [RoomSpec] CloseEmpty of a room that does not close while it is empty.
const NeverClose time.Duration = -1

// DuplicatePolicy is the policy for a newcomer whose player is in the room already: the game's
// OnAdmit gave it the [Join] Subject of a client of the room, connected or not.
type DuplicatePolicy uint8

// The policies for a player's second connection.
const (
	// DuplicateTakeOver gives the newcomer the existing client with its id and objects, even if the
	// room is full, locked or private: OnResume is called instead of OnJoin. The older connection
	// is closed with [CodeReplaced]. Messages from the older connection that have not run, and
	// unsent messages to it, are dropped. A ticket that the newcomer shows is used up.
	//
	// A client plays or watches for all of its life. To change from playing to watching or back, a
	// player needs a free seat of that kind, or a ticket for one. The existing client then leaves
	// with CodeReplaced, and the newcomer joins with the same id: OnLeave, OnJoin.
	DuplicateTakeOver DuplicatePolicy = iota + 1
	// DuplicateRefuse refuses the newcomer with [CodeRefused].
	DuplicateRefuse
	// DuplicateAllow admits the newcomer as a client of its own.
	DuplicateAllow
)

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

	readers   []*readers // by class; nil for a class without rules
	starter   *loop.System[*Tick]
	screening *room.Room // the room of the delayed spectators; nil without
	recording io.Closer  // of the room's own recording; nil without
	posted    posted
	namedAt   uint64 // 1 + the tick of the newest capture before nameGroups
	number    uint64 // of this room among the server's rooms, from 1
	seed      uint64
	opened    time.Duration // by the server's clock
	begun     bool          // under the mutex of the server's crew
	opening   bool
	errs      []error // registrations rejected while Open runs
	asides    *asides // nil without Config.CheckEdits
}

// Closed is the reason why a room ended before its server was told to, why a client has left, or,
// on a client, why its connection ended.
type Closed struct {
	Code Code
	Text string
}

// Error implements error.
func (c *Closed) Error() string {
	if c.Text == "" || c.Text == c.Code.String() {
		return fmt.Sprintf("netloop: closed: %s", c.Code)
	}
	return fmt.Sprintf("netloop: closed: %s: %s", c.Code, c.Text)
}

// openRoom makes a room and lets the game fill it.
func openRoom(s *Server, spec RoomSpec, number, seed uint64) (_ *Room, err error) {
	r := &Room{server: s, schema: s.schema, spec: spec, number: number, seed: seed, opened: s.clock.Now(), opening: true}
	r.hooks.room = r
	if s.cfg.CheckEdits {
		r.asides = new(asides)
	}
	r.systems = registry{loop.New(&r.tick, &r.now, func() time.Duration { return r.e.LoopClock() }), r.reject}
	if r.e, err = room.New(r.config(s)); err != nil {
		return nil, err
	}
	r.timers.Halt, r.systems.loop.Halt = r.e.GivenUp, r.e.GivenUp
	filled := false
	defer func() {
		if !filled {
			r.unpost() // Open may have watched other rooms.
			r.e.Discard()
		}
	}()
	r.tick = Tick{now: &r.now, store: r.e.World(), timers: &r.timers, log: r.e.Log(), room: r}
	r.reseed(seed)
	r.applyClassOptions()
	r.restrict()
	r.builtins()

	err = s.game.Open(r)
	r.opening = false
	if err := errors.Join(append(r.errs, err, r.undefined(), r.systems.loop.Check())...); err != nil {
		return nil, fmt.Errorf("netloop: the game's Open: %w", err)
	}
	if err := r.screen(); err != nil {
		return nil, err
	}
	filled = true
	return r, nil
}

// config returns the engine's part of the server's configuration.
func (r *Room) config(s *Server) room.Config {
	return room.Config{
		Spec: room.Spec{
			Name: r.spec.Name, Kind: r.spec.Kind, Rate: loop.Rate(r.spec.Rate), Fixed: loop.Rate(r.spec.FixedRate),
			SendEvery: r.spec.SendEvery, MaxClients: r.spec.MaxClients, Budget: r.spec.Budget,
			MaxSpectators: r.spec.MaxSpectators, SpectatorDelay: r.spec.SpectatorDelay, Private: r.spec.Private, Code: r.spec.Code,
			KeepDropped: r.spec.KeepDropped, SameSubject: room.SameSubject(r.spec.Duplicate - DuplicateTakeOver), LostAfter: s.cfg.LostAfter,
			MaxRewind: r.spec.MaxRewind, CloseEmpty: r.spec.CloseEmpty, Sleep: r.spec.Sleep,
		},
		Schema: s.schema.s, Game: &r.hooks, Server: host{r}, Tick: &r.tick, Loop: r.systems.loop, Now: &r.now,
		Clock: s.clock, Log: s.log, Metrics: s.metrics, Stats: s.transport, Instance: s.instance[:],
		Limits: s.cfg.RPC.queue(r.spec.Rate.Period()), Answers: s.cfg.RPC.Answers, Arrivals: s.cfg.RPC.arrivals(),
		LinkLimits:   s.cfg.RPC.link(),
		AdmitTimeout: s.cfg.AdmitTimeout, DrainTimeout: s.cfg.DrainTimeout,
		Watchdog: s.cfg.Watchdog, WatchdogExit: s.cfg.WatchdogExit,
		Identify:   func(ctx context.Context, j *room.Join) error { return s.identify(ctx, j, r.spec.Name) },
		Detail:     s.room == nil, // It is about to be the default room.
		CheckEdits: s.cfg.CheckEdits, CheckValues: s.cfg.CheckValues,
		Closed: func(code Code, text string) error { return &Closed{code, text} },
	}
}

// builtins registers the systems that each room runs.
func (r *Room) builtins() {
	for _, s := range r.e.Systems() {
		added, err := r.systems.loop.Add(loop.Spec[*Tick]{
			Name: s.Name, Place: s.Place, Once: s.Stage == 0, BuiltIn: s.Without,
			// Timers run the game's code, so a panic there costs one call only. A panic in any
			// other built-in system would leave the room's state half changed.
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

// reseed starts the room's random numbers.
func (r *Room) reseed(seed uint64) {
	// Derive the second seed with the golden ratio, so that the streams differ.
	r.tick.rand = rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	r.e.World().Seed(seed)
}

// Spec returns the room's description with the defaults filled in.
func (r *Room) Spec() RoomSpec { return r.spec }

// Incarnation returns a fencing token: a number that distinguishes the successive rooms of one name
// in a store. A room that the watchdog has given up may still have a save in progress while its
// successor of the same name loads. The game passes the number with each load and save, and the
// store refuses a save with a number less than the largest one seen for the name. Any goroutine may
// call it; a replay returns the recorded number.
//
// Each room of a server has a larger number than all rooms that the server opened before. Across
// processes it depends on [Config] Incarnation. By default the first number is the wall clock in
// microseconds: the rooms of a process have larger numbers than those of each process that started
// earlier, unless the wall clock was set back in between. The server command with --state-dir keeps
// a bound in that directory: its numbers are larger than all numbers of earlier processes with this
// directory, even if the clock was set back. Of two processes that run at the same time, the rooms
// of the later one have the larger numbers.
func (r *Room) Incarnation() uint64 { return r.server.incarnation + r.number - 1 }

// Log returns the server's logger, for code that runs outside of ticks, such as
// OnAdmit functions and work given to [Go]. Any goroutine may use it.
func (r *Room) Log() *slog.Logger { return r.server.log }

// Server returns the server that the room belongs to.
func (r *Room) Server() *Server { return r.server }

// Close ends the room after this tick and sends the code and the text to each of its clients. The
// server keeps its other rooms. If the room is the default room, the server drains and ends, and
// its Run returns nil with [CodeClosing], otherwise a [*Closed].
func (r *Room) Close(t *Tick, c Code, why string) {
	t.server("Room.Close")
	r.e.Close(c, why)
}

// Quarantined returns how many systems are disabled at present because they panicked repeatedly.
// Any goroutine may call it.
func (r *Room) Quarantined() int { return r.e.Faults.Quarantined() }

// Overload is how far a server reduces its work while it cannot keep up. Each level includes the
// reductions of all lower levels.
type Overload uint8

// The levels of overload, from bottom to top, with the numbers of package overload.
const (
	OverloadNone   Overload = iota // no reduction
	OverloadHalved                 // each client gets half of the snapshots
	// objects that weigh less than 1 (see [Weight]) are sent at their MinRate, or once a second
	OverloadShedding
	OverloadRefusing // new clients are refused with CodeBusy
)

// String returns the level's name, such as "halved".
func (o Overload) String() string { return overload.Level(o).String() }

// Overload returns the room's level of overload. The level changes between ticks only and is an
// input of the tick, so a game may reduce its work by it. Any goroutine may call it.
func (r *Room) Overload() Overload { return Overload(r.e.Load.Level()) }

// reject collects the registration errors of Open, which fail it together; after Open it logs them.
// The error does not begin with "netloop: ": Open's error and System.Err add that.
func (r *Room) reject(err error) {
	if r.opening {
		r.errs = append(r.errs, err)
		return
	}
	r.e.Log().Error("registration rejected", "error", err)
}

// opens reports whether the game's Open is running, and otherwise rejects the registration of name.
func (r *Room) opens(name string) bool {
	if !r.opening {
		r.reject(fmt.Errorf("%s belongs into the game's Open", name))
	}
	return r.opening
}

// takes reports whether a hook of the class may be registered.
func (r *Room) takes(c *class, name string) bool {
	if err := c.belongs(r.schema.s); err != nil {
		r.reject(fmt.Errorf("%s: %w", name, err))
		return false
	}
	return r.opens(name)
}

// handled rejects a handler's registration that failed with err.
func (r *Room) handled(err error) {
	if err != nil {
		r.reject(err)
	}
}
