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

// Game is what a game author writes.
type Game interface {
	// Schema returns the declarations that server and clients share.
	Schema() *Schema
	// Open fills a room: systems, handlers, the first objects. It is called once
	// per room before its first tick, so a Game keeps the state of a room in
	// variables of Open, never in the Game itself. Registrations that were
	// rejected fail it even if it returns nil.
	Open(r *Room) error
}

// RoomSpec describes a room. Its rates hold for the life of the room.
type RoomSpec struct {
	// Name is how clients ask for the room, at most 256 bytes, and no other room of the server has
	// it; that of the default room may be empty.
	Name string
	// Kind says which of the game's kinds of rooms it is, such as "table": for the game's Open,
	// and as a label of some metrics. At most 64 bytes.
	Kind string
	// Rate is the tick rate; zero means 60 Hz. From 1 to 1 000 Hz.
	Rate Rate
	// FixedRate is the rate of the fixed steps; zero means the tick rate.
	FixedRate Rate
	// SendEvery lets every n-th tick send snapshots; zero means 1. From 1 to 60.
	SendEvery int
	// MaxClients is how many may be in the room at once; zero means 256. From 1
	// to 10 000.
	MaxClients int
	// MaxSpectators is how many may watch besides, see [Client.Spectator]: zero is nobody, at most
	// 10 000.
	MaxSpectators int
	// SpectatorDelay lets them see the room as it was so long ago, so that nobody helps a player by
	// telling what there is to see: its objects, what it sends, and its time. Zero is now; at most
	// 5 min. They see what the room's [Client.Camera] does and are no clients of the room: OnAdmit
	// is asked about them, but they do not join, and what they send is dropped. When the room has
	// ended they see the rest, unless the server ends, which waits for its Config.DrainTimeout
	// alone. It costs one client more, and what happens meanwhile is kept in memory, up to 64 MiB.
	SpectatorDelay time.Duration
	// Private keeps the room from everybody who has neither a [Ticket] nor its Code: its name
	// alone opens it no more than one that is not there, unless its player has a client in it,
	// which is taken over then (SameSubject).
	Private bool
	// Code is what people tell each other to meet in a private room: whoever has it as
	// client.Config Ticket gets in. Empty lets the server make one, which [Room.Spec] says: six
	// letters and digits that are hard to mistake for others. At most 64 bytes, without an @, and
	// no other room has it.
	Code string
	// Budget is how many bytes of object records a client is sent per tick, on
	// average; zero means 11 000, as much as the packets of a tick carry. From 1 to
	// 1 048 576. See [Client.SetBudget].
	Budget int
	// KeepDropped is how long a client that has lost its connection may come back, in game time:
	// see [Room.OnDrop]. Zero means 20 s, less than zero that it leaves at once; at most an hour.
	// A client that says goodbye, or is closed by the server, leaves at once in any case. So does
	// one whose seat a newcomer needs, where its player or its address keeps more than a quarter of
	// a full room by such clients.
	KeepDropped time.Duration
	// SameSubject says what becomes of a newcomer whose player ([Join] Subject) is in the room
	// already; zero means [TakeOver].
	SameSubject SameSubject
	// MaxRewind is how far back a client's view may lie, see [Tick.View], before it made the input
	// with which the view came: what is older counts as that old. Zero means 250 ms, less than zero
	// that nobody looks back; at most 1 s. An input is made half a round trip, and as long as
	// inputs wait for their steps, before its step, and that counts up to MaxRewind too. So in all
	// nobody looks back further than twice MaxRewind.
	MaxRewind time.Duration
	// CloseEmpty is for how long nobody is in the room, in game time, until it closes by itself.
	// If a seat is reserved then, or a client on its way in, that time begins anew. Zero or less is
	// never; at most an hour.
	CloseEmpty time.Duration
	// Sleep lets the room run no ticks while there is nothing to do: nothing has come from its
	// clients or was posted, no work has returned, no timer, no Deadline and no system with a
	// period is due, and every client has had a second to see what has changed. All of these wake
	// it, and so do a client that comes, goes or comes back, and whoever looks at the room. Systems
	// that run in each tick do not keep it awake, unless they change what clients see, and neither
	// does a client that only acknowledges or whose inputs are all zero.
	//
	// The ticks that it sleeps through are skipped: Tick.Number goes on as if they had run, and so
	// do GameTime and scaled time, while fixed steps and systems without a period miss them. For a
	// system with a period Delta is the time since its last call, as ever.
	Sleep bool
	// Params is what the game's Open reads by [Room.Params]: the rules of a table, the map of a
	// match. It is a plain struct, a pointer to one, or a protobuf message, and encoded as an RPC's
	// message is, when the room is opened; it takes at most [MaxMessage]. Nil is none, as it is
	// in what [Room.Spec] and [Server.Rooms] return.
	Params any

	packed schema.Parcel // of Params
}

// SameSubject says what becomes of a newcomer whose player is in the room already: somebody whom
// the game's OnAdmit gives the [Join] Subject of a client that is there, connected or not.
type SameSubject uint8

// The policies for a player's second connection.
const (
	// TakeOver gives the newcomer the client that is there, with its id and objects, also in a
	// room that is full, locked or private: OnResume is called, and not OnJoin. The older
	// connection is closed with [CodeReplaced]. Messages of the older program that have not run,
	// and messages to it that were not sent, are dropped. A ticket that the newcomer shows is used.
	//
	// A client plays or watches for all of its life. A player that plays and comes again to watch,
	// or the other way round, needs a free seat of that kind, or a ticket for one; the client that
	// is there leaves with CodeReplaced, and the newcomer joins with the same id: OnLeave, OnJoin.
	TakeOver = 1 + SameSubject(room.TakeOver)
	// RefuseSecond refuses the newcomer with [CodeRefused].
	RefuseSecond = 1 + SameSubject(room.Refuse)
	// AllowSeveral lets it in as a client of its own.
	AllowSeveral = 1 + SameSubject(room.Allow)
)

// Room is one loop and one game state. Its goroutine owns all of it: what is not
// said to be callable from elsewhere belongs into [Game] Open or into a tick.
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

	readers   []*readers // by class; nil for one whose fields everybody may read
	starter   *loop.System[*Tick]
	screening *room.Room // where those are who watch with a delay; nil without
	recording io.Closer  // of the room's own recording; nil without
	posted    posted
	namedAt   uint64 // 1 + the tick of the newest capture before nameGroups
	number    uint64 // of the rooms that the server has had, from 1
	seed      uint64
	opened    time.Duration // by the server's clock
	begun     bool          // under the mutex of the server's crew
	opening   bool
	errs      []error // registrations rejected while Open runs
}

// Closed says why a room ended before its server was told to, why a client has left, and on a
// client why its connection ended.
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
	r.weigh()
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

// config is what of the server's configuration concerns the engine.
func (r *Room) config(s *Server) room.Config {
	return room.Config{
		Spec: room.Spec{
			Name: r.spec.Name, Kind: r.spec.Kind, Rate: loop.Rate(r.spec.Rate), Fixed: loop.Rate(r.spec.FixedRate),
			SendEvery: r.spec.SendEvery, MaxClients: r.spec.MaxClients, Budget: r.spec.Budget,
			MaxSpectators: r.spec.MaxSpectators, SpectatorDelay: r.spec.SpectatorDelay, Private: r.spec.Private, Code: r.spec.Code,
			KeepDropped: r.spec.KeepDropped, SameSubject: room.SameSubject(r.spec.SameSubject - TakeOver), LostAfter: s.cfg.LostAfter,
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

// builtins registers what every room runs.
func (r *Room) builtins() {
	for _, s := range r.e.Systems() {
		added, err := r.systems.loop.Add(loop.Spec[*Tick]{
			Name: s.Name, Place: s.Place, Once: s.Stage == 0, BuiltIn: s.Without,
			// A panic in a timer is the game's and costs one call; one in the others
			// would leave the room half-done.
			Critical: s.Name != room.TimersSystem,
			Ask: func(stage Stage) func(*Tick) {
				if s.Stage != 0 && s.Stage != stage {
					return nil
				}
				return func(*Tick) { s.Run(stage) }
			},
		})
		if err != nil {
			panic(err) // The names are ours and distinct.
		}
		if s.Name == room.StartSystem {
			r.starter = added
		}
	}
}

// reseed starts the room's random numbers.
func (r *Room) reseed(seed uint64) {
	// The golden ratio: any other stream.
	r.tick.rand = rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	r.e.World().Seed(seed)
}

// Spec returns the room's description with the defaults filled in.
func (r *Room) Spec() RoomSpec { return r.spec }

// Incarnation returns the number by which a store tells apart the rooms that have had one name: a
// fencing token. A room that the watchdog has given up may still have a save under way while its
// successor of the same name loads. The game passes the number with each load and save, and the
// store refuses a save whose number is less than one that it has seen for the name. Any goroutine
// may call it; a replay returns the recorded number.
//
// Each room of a server has a larger number than all rooms that the server opened before. Across
// processes it depends on [Config] Incarnation. By default the first number is the wall clock in
// microseconds: then the rooms of a process have larger numbers than those of each process that
// started earlier, unless the wall clock was set back in between. The server command with
// --state-dir keeps a bound in that directory: then they are larger than all numbers of earlier
// processes with this directory, whatever the clock does. Of two processes that run at the same
// time, the rooms of the one that started later have the larger numbers.
func (r *Room) Incarnation() uint64 { return r.server.incarnation + r.number - 1 }

// Log returns the server's logger, for code that runs outside of ticks, such as
// OnAdmit functions and work given to [Go]. Any goroutine may use it.
func (r *Room) Log() *slog.Logger { return r.server.log }

// Server returns the server that the room belongs to.
func (r *Room) Server() *Server { return r.server }

// Close ends the room after this tick. Every client in it is told the code and the text. The server
// goes on with its other rooms, unless it is the default room: then it drains and ends,
// and with [CodeClosing] its Run returns nil, otherwise a [*Closed].
func (r *Room) Close(t *Tick, c Code, why string) {
	t.server("Room.Close")
	r.e.Close(c, why)
}

// Ended returns why the room has ended, for OnLeave, OnRemove and OnClose, and nil while it ticks:
// the code and text of [Room.Close] or [Server.CloseRoom], [CodeClosing] for a room that was empty
// or whose server ends, and [CodeInternal] for a room that has failed, whose state may be half
// changed. Any goroutine may call it.
func (r *Room) Ended() *Closed {
	if why := r.e.Ended(); why != nil {
		return &Closed{why.Code, why.Text}
	}
	return nil
}

// Quarantined returns how many systems do not run at present because they
// panicked again and again. Any goroutine may call it.
func (r *Room) Quarantined() int { return r.e.Quarantined() }

// Overload is how much a server gives up while it cannot keep up. What a level
// gives up, all higher ones give up too.
type Overload = overload.Level

// The levels of overload, from bottom to top.
const (
	OverloadNone   = overload.Normal // nothing is given up
	OverloadHalved = overload.Halved // every client gets half of the snapshots
	// objects that weigh less than 1 (see [Weight]) are sent at their MinRate, or once a second
	OverloadShedding = overload.Shedding
	OverloadRefusing = overload.Refusing // nobody else may join: they are refused with CodeBusy
)

// Overload returns the room's level of overload. It changes between ticks only,
// and is an input of the tick: a game may do less by it. Any goroutine may call
// it.
func (r *Room) Overload() Overload { return r.e.Overload() }

// reject collects what Open registered wrongly; later it is logged. The error has no
// "netloop: " in front: Open's has, or System.Err.
func (r *Room) reject(err error) {
	if r.opening {
		r.errs = append(r.errs, err)
		return
	}
	r.e.Log().Error("registration rejected", "error", err)
}

// opens reports whether what belongs into Open may still be added.
func (r *Room) opens(name string) bool {
	if !r.opening {
		r.reject(fmt.Errorf("%s belongs into the game's Open", name))
	}
	return r.opening
}

// takes reports whether a hook of a class may be added.
func (r *Room) takes(c *class, name string) bool {
	if err := c.belongs(r.schema.s); err != nil {
		r.reject(fmt.Errorf("%s: %w", name, err))
		return false
	}
	return r.opens(name)
}

// handled takes the error of registering a handler.
func (r *Room) handled(err error) {
	if err != nil {
		r.reject(err)
	}
}
