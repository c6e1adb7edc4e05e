// Package room is the engine of a room: one loop, one world of replicated objects, one queue of
// messages, and the clients that play. It has no access to the types of a game: it calls a [Game],
// which package netloop implements by closures over the room's one tick.
//
// The files in the order of a tick:
//
//	run.go        a room from its first tick to its last; step is one tick
//	finish.go     the end of a room
//	feed.go       the source of a tick's outside facts: the network, or a recording
//	              (record.go, replayer.go)
//	poll.go       arrivals from clients; clients join and leave
//	dispatch.go   the path of a message: queue, handler, answer
//	work.go       results of other goroutines; mail.go has the messages of other rooms
//	snapshot.go   the snapshots of each client
//	report.go     the cost of a tick
//	sleep.go      whether the next ticks have any work to do
//
// Outside the tick are admission (admit.go), the limits on floods (flood.go), and the supervision
// of the room's goroutine (supervise.go).
package room

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/room/seats"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/tracedump"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/watchdog"
)

// Game is the interface through which a room calls its game. It is called on the room's goroutine,
// except for Admit. An implementation runs each function of the game separately, below
// [Room.Call], so that a panic ends that call alone.
type Game interface {
	// Admit accepts or rejects a join, on a goroutine of its own, and may fill in the Join.
	Admit(ctx context.Context, j *Join) error
	// Start is called at Initialization of the first tick.
	Start()
	// RunTimers calls the timers that are due in this tick.
	RunTimers()
	// TimersDue returns the game time of the next timer, given the scale of scaled time.
	TimersDue(loop.Scale) time.Duration
	// Enter creates the game's handle of a client before Join is called with it. The client's Join
	// comes from an admission or from a recording.
	Enter(c *Client)
	// Join is called once a client has joined. An error closes its connection.
	Join(c *Client) error
	// Drop is called when a client has lost its connection and may resume.
	Drop(c *Client)
	// Resume is called when a client is connected again after a Drop, or has been taken over by
	// another program of the same player and has that program's Join.
	Resume(c *Client)
	// Move is called when a client's address has changed in its Join.
	Move(c *Client)
	// Leave is called when a client leaves, while its objects still exist.
	Leave(c *Client, why *transport.Closed)
	// Left is called after a client has left.
	Left(c *Client)
	// Keeps reports whether an object is kept when its owner leaves.
	Keeps(o *netvar.Object) bool
	// Drain is called when the room is about to end; left is the remaining time.
	Drain(left time.Duration)
	// Close is called after the last tick.
	Close(ctx context.Context) error

	// AppendJoin appends the recorded form of a Join, and ReadJoin decodes it.
	AppendJoin(b []byte, j *Join) ([]byte, error)
	ReadJoin(b []byte, j *Join) error
}

// Server is a room's view of its server.
type Server interface {
	// NextID allocates a client id.
	NextID() uint64
	// EndAdmission rejects all joins from now on.
	EndAdmission(code transport.Code, text string)
	// Ticked is called after each tick, on the room's goroutine.
	Ticked()
}

// Loop is a room's view of a loop.Loop, independent of the argument of its systems.
type Loop interface {
	Follow(loop.Timeline)
	Step(loop.Input) (*loop.Record, error)
	End() *loop.Record
	Err() error
	Scale() loop.Scale
	Due(next uint64) uint64
	Quarantined() int
	Dump() []loop.DumpStage
	Dumper() loop.Dumper
}

// Spec describes a room. Its rates are fixed for the life of the room.
type Spec struct {
	Name        string
	Kind        string // a label of some metrics
	Rate, Fixed loop.Rate
	SendEvery   int // ticks between two snapshots
	MaxClients  int
	// MaxSpectators limits the spectators, in addition to MaxClients.
	MaxSpectators int
	// SpectatorDelay is the delay with which spectators see the room; 0 is none.
	SpectatorDelay time.Duration
	Private        bool   // only tickets and the code admit a client
	Code           string // code of a private room
	Budget         int    // in bytes per tick and client
	// KeepDropped is for how long a client that has lost its connection may resume, in game time;
	// 0 or less is not at all.
	KeepDropped time.Duration
	SameSubject SameSubject
	LostAfter   time.Duration // silence after which a connection is lost, in game time
	MaxRewind   time.Duration // see viewcheck.go; 0 or less: no rewinds
	CloseEmpty  time.Duration // an empty room closes after this game time; 0 or less is never
	Sleep       bool          // the room skips idle ticks: see sleep.go
}

// Hertz returns the tick rate as a number.
func (s *Spec) Hertz() float64 { return float64(s.Rate.Num) / float64(s.Rate.Den) }

// Config is the configuration of a room.
type Config struct {
	Spec   Spec
	Schema *schema.Schema
	Game   Game
	Server Server
	// Identify determines the player of a join, before the game is asked. Like the game's answer
	// its error may be a refusal. It runs on the connection's own goroutine.
	Identify func(context.Context, *Join) error
	// Tick is the game's own view of the running tick; it is passed to the checks of a
	// schema.Method.
	Tick any
	// Loop has the systems; Now is its report of the running tick and system.
	Loop Loop
	Now  *loop.Now

	Clock    loop.Clock
	Log      *slog.Logger
	Metrics  *metrics.Metrics
	Stats    *transport.Stats
	Instance []byte // id of the server process: it tells clients of a restart

	Limits   rpcqueue.Limits // limits of messages
	Answers  int             // limit of pending answers per client
	Arrivals int             // limit of a client's arrivals that wait for a poll
	// LinkLimits bounds the messages of a client before they are decoded.
	LinkLimits transport.Limits

	AdmitTimeout time.Duration
	DrainTimeout time.Duration
	Watchdog     time.Duration // below 0: none
	WatchdogExit bool
	CheckEdits   bool
	CheckValues  bool
	// Detail keeps ticks in detail (slowtick), which takes 2 MiB.
	Detail bool

	// Closed returns the error of a room that has closed itself.
	Closed func(transport.Code, string) error
}

// Room is one loop and one game state. Its goroutine owns all of it: methods that are not said to
// be callable from elsewhere are for that goroutine.
type Room struct {
	cfg     Config
	game    Game
	schema  *schema.Schema
	spec    Spec
	moves   bool                   // its clients may ask to move
	handles atomic.Pointer[[]byte] // the methods with a handler, as encoded in a welcome
	clock   loop.Clock
	log     *slog.Logger
	metrics *metrics.Metrics
	tally   *metrics.Account // this room's metrics

	// The tick, in the order of the flow: arrivals, systems, departures.
	feed         feed
	inbox        *transport.Inbox
	arrive       func(*transport.Arrival) // takeArrival
	arrived      int                      // arrivals of the last poll
	emptySince   time.Duration            // game time of the last tick with a client in the room
	fullRequests []*Client                // clients that wait for a full state
	clients      clients
	camera       camera // feed of the delayed spectators
	rpcs         *rpcqueue.Queue[*Room]
	// measures the cost of messages: it affects decisions only through the feed
	tariff     *rpcqueue.Tariff
	prices     []rpcqueue.Price // scratch of the feed
	from       *Client          // the client of the handled message, join or leave
	deferred   *Answer          // the answer that the running handler sends later
	unanswered uint64           // calls that reached no handler and got no answer
	guard      panicguard.Guard // guards the game's functions on this goroutine
	aside      panicguard.Guard // guards the game's functions on other goroutines
	misuses    misuses
	loop       Loop
	now        *loop.Now
	in         loop.Input // input of the running tick
	world      *netvar.World
	captured   uint64    // the last tick with captured state
	onSnapshot []func()  // called after each snapshot
	payload    []byte    // scratch of Encode
	sent       *outgoing // digests the sent data while recorded or replayed

	inputs    inputs
	async     async
	queued    posts
	mailed    mailed
	ctx       context.Context // context of the game's work; ends with the room
	cancel    context.CancelFunc
	penalties penalties
	seats     seats.Seats
	shown     *Room // room of its delayed spectators; nil without
	// of the newest tick, for admissions; zero before the first
	epoch    atomic.Pointer[loop.Epoch]
	scale    atomic.Pointer[loop.Scale]       // last scale told to clients; read by admissions too
	refusing atomic.Pointer[transport.Closed] // set once no client is admitted any more
	end      atomic.Pointer[End]              // set by End from outside
	life     life
	closing  *transport.Closed // the reason, set by Close or a critical panic
	ending   bool              // dropped clients can no longer resume
	closesIn time.Duration     // a drain announced after the last tick; 0: none
	closesAt time.Duration     // once ending, the time at which the room ends at the latest
	finished int               // number of begun steps of the end: see Finish

	quarantined atomic.Int64 // systems: see reportFaults
	questions   questions

	load        overloaded
	stall       stall
	sleep       sleep
	visits      visits
	limits      panicguard.Throttle[rpcqueue.Rung] // throttles the log of exceeded limits
	slow        *slowtick.Log                      // nil without Detail
	earliness   []time.Duration                    // scratch of reportMargins
	flight      *tracedump.Dumper                  // writes traces of slow ticks; or nil
	watchdog    *watchdog.Watchdog
	newSchedule func() (loop.Clock, loop.Schedule) // the schedule of ticks
	ended       atomic.Pointer[transport.Closed]   // reason for the end, set when it begins
	finishAt    atomic.Pointer[time.Duration]      // when finish began; nil: not yet
}

// New returns a room that is still to be filled and then opened by [Room.Open].
func New(cfg Config) (*Room, error) {
	r := &Room{
		cfg: cfg, game: cfg.Game, schema: cfg.Schema, spec: cfg.Spec, clock: cfg.Clock, metrics: cfg.Metrics,
		loop: cfg.Loop, now: cfg.Now,
	}
	r.life.ctx, r.life.end = context.WithCancel(context.Background())
	r.log = slog.New(&tickHandler{Handler: cfg.Log.Handler(), room: r})
	r.guarded()
	r.feed, r.arrive, r.newSchedule = network{r}, r.takeArrival, r.byClock
	r.inbox = transport.NewInbox(cfg.Arrivals, cfg.Stats)
	r.inbox.MaxJoins = maxEntering
	r.seats.Playing.Most, r.seats.Watching.Most = cfg.Spec.MaxClients, cfg.Spec.MaxSpectators
	if r.delayed() { // They are in the delayed spectator room.
		r.seats.Watching.Most = 0
	}
	r.seats.Rouse = r.rouse
	r.prepareSleep()
	r.world = netvar.NewWorld(r.schema.Classes())
	r.world.OnClamp(func(class, field string) {
		r.log.Warn("a value does not fit its field and is cut or clamped; this is said once", "class", class, "field", field)
	})
	r.check()
	r.prepareInputs()
	r.world.SetRate(r.spec.Rate.Num, r.spec.Rate.Den)
	r.rpcs = rpcqueue.New[*Room](r.schema.RPCs())
	r.handles.Store(&[]byte{0})
	r.rpcs.OnPanic, r.rpcs.OnError, r.rpcs.OnLimit = r.handlerPanicked, r.handlerFailed, r.limited
	if err := r.rpcs.SetLimits(cfg.Limits); err != nil {
		return nil, err
	}
	r.tariff = rpcqueue.NewTariff(r.schema.RPCs(), func() time.Duration { return r.clock.Now() })
	r.rpcs.Tariff = r.tariff
	r.watchdog = watchdog.New(cfg.Watchdog)
	if cfg.Detail {
		r.slow = slowtick.New(r.spec.Rate.Period())
	}
	r.load.ladder = overload.New(r.spec.Rate.Period())
	r.loop.Follow(r.Timeline())
	r.scale.Store(new(r.loop.Scale()))
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.epoch.Store(&loop.Epoch{})
	r.tally = cfg.Metrics.Open(r.spec.Kind)
	return r, nil
}

// AllowMoves lets clients ask to move to another room. Call it before the first tick.
func (r *Room) AllowMoves() { r.moves = true }

// Discard releases a room after a failed Open of its game.
func (r *Room) Discard() {
	r.cancel()
	r.life.end()
	r.tally.Close(transport.CodeInternal.Name())
}

// Trace sets the recorder of slow ticks. Call it before the first tick.
func (r *Room) Trace(d *tracedump.Dumper) { r.flight = d }

// Accessors for the game's own view of a room.

// Spec returns the room's description.
func (r *Room) Spec() Spec { return r.spec }

// Schema returns the schema that the room's game has declared.
func (r *Room) Schema() *schema.Schema { return r.schema }

// World returns the room's objects.
func (r *Room) World() *netvar.World { return r.world }

// Guard returns the guard of the game's functions on the room's goroutine.
func (r *Room) Guard() *panicguard.Guard { return &r.guard }

// Log returns the log of the running tick.
func (r *Room) Log() *slog.Logger { return r.log }

// Metrics returns the room's metrics.
func (r *Room) Metrics() *metrics.Metrics { return r.metrics }

// Figures returns a few numbers of the room. Any goroutine may call it.
func (r *Room) Figures() metrics.Figures { return r.tally.Figures() }

// Progress returns how long ago the newest tick ended, and the tick period. Any goroutine may call
// it.
func (r *Room) Progress() (since, period time.Duration) { return r.tally.Progress() }

// Slow returns the log of slow ticks; nil without Detail. Any goroutine may read it.
func (r *Room) Slow() *slowtick.Log { return r.slow }

// Watchdog returns the watchdog, which detects ticks that hang. Any goroutine may call it.
func (r *Room) Watchdog() *watchdog.Watchdog { return r.watchdog }

// Captured returns the last tick with captured state.
func (r *Room) Captured() uint64 { return r.captured }

// Context returns a context that ends with the room.
func (r *Room) Context() context.Context { return r.ctx }

// Seats returns the number of clients in the room or being admitted. Any goroutine may call it.
func (r *Room) Seats() int {
	players, spectators, _ := r.Places()
	return players + spectators
}

// Places returns the number of players and spectators among them, and of reserved seats. Any
// goroutine may call it.
func (r *Room) Places() (players, spectators, reserved int) { return r.seats.Count(r.clock.Now()) }

// Players returns how many seats of players are taken or reserved. Any goroutine may call it.
func (r *Room) Players() int { return r.seats.Players(r.clock.Now()) }

// Closing reports whether the room admits no more clients because it ends. Any goroutine may call
// it.
func (r *Room) Closing() bool { return r.refusing.Load() != nil }

// Finishing returns for how long the room has been ending, by its clock, once it has run its last
// tick. Any goroutine may call it.
func (r *Room) Finishing() (since time.Duration, ends bool) {
	at := r.finishAt.Load()
	if at == nil {
		return 0, false
	}
	return r.clock.Now() - *at, true
}

// System is one of the systems that each room runs. They are ordinary systems with names, so a
// game may place its own around them.
type System struct {
	Name    string
	Stage   loop.Stage // 0: each of the seven
	Place   loop.Place
	Run     func(loop.Stage)
	Without string // the consequence of its absence
}

// The systems that are the game's own.
const (
	StartSystem  = "room.start"
	TimersSystem = "room.timers"
)

// Systems lists the systems of each tick, in the order of the stages.
func (r *Room) Systems() []System {
	run := func(fn func()) func(loop.Stage) { return func(loop.Stage) { fn() } }
	all := append([]System{
		{StartSystem, loop.Initialization, loop.Head, run(r.game.Start), "OnStart functions would not run"},
		{"transport.poll", loop.EarlyUpdate, loop.Head, run(r.poll), "nothing from clients would reach the room"},
		{"rpc.drain", 0, loop.Head, r.drainRPCs, "messages would wait for ever"},
		{TimersSystem, loop.Update, loop.Head, run(r.game.RunTimers), "Tick.AfterFunc would call nothing"},
		{"netvar.snapshot", loop.PreLateUpdate, loop.Tail, run(r.snapshot), "clients would see no state"},
		{"transport.flush", loop.PostLateUpdate, loop.Tail, run(r.flush), "nothing would reach clients"},
	}, r.inputSystem()...)
	if r.world.Rounds() {
		all = append(all, System{"netvar.round", loop.FixedUpdate, loop.Tail, run(r.world.Round), "clients would predict from other values than the server goes on from"})
	}
	return all
}
