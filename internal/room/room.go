// Package room is the engine of a room: one loop, one world of replicated objects, one queue of
// messages, and the clients that play. It knows nothing of a game's types: it calls a [Game],
// which package netloop implements by closures over the room's one tick.
//
// The files in the order in which a tick goes through them:
//
//	run.go        a room from its first tick to its last; step is one tick
//	finish.go     its end, from then on
//	feed.go       where the outside facts of a tick come from: the network, or a recording
//	              (record.go, replayer.go)
//	poll.go       everything that has arrived; clients come and go
//	dispatch.go   the way of a message: the queue, its handler, its answer
//	work.go       what other goroutines bring in; mail.go is what other rooms send
//	snapshot.go   what each client is sent
//	report.go     what a tick cost
//	sleep.go      whether there is anything to do in the next ones
//
// Beside the tick stand admission (admit.go), the limits of who floods (flood.go), and who
// watches over the room's goroutine (supervise.go).
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
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/tracedump"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/watchdog"
)

// Game is what a room calls of the game that is played in it. It is called on the room's
// goroutine, except for Admit. Whoever implements it lets each function of the game run by
// itself, below [Room.Call], so that a panic costs the call alone.
type Game interface {
	// Admit judges who asks to come in, on a goroutine of its own, and may fill in the Join.
	Admit(ctx context.Context, j *Join) error
	// Start comes at Initialization of the first tick.
	Start()
	// RunTimers calls what is put off until this tick.
	RunTimers()
	// TimersDue is the game time at which the next of those calls is due, given how scaled time
	// runs.
	TimersDue(loop.Scale) time.Duration
	// Enter makes the game's handle of a client, before Join is called with it; its Join is
	// that of an admission, or one that a recording holds.
	Enter(c *Client)
	// Join says that a client has come in. An error closes its connection.
	Join(c *Client) error
	// Drop says that a client has lost its connection and may come back.
	Drop(c *Client)
	// Resume says that a client is back, after a Drop or as another program of the same player,
	// whose Join it then has.
	Resume(c *Client)
	// Move says that a client's Join has another address.
	Move(c *Client)
	// Leave says that a client goes, while its objects still exist.
	Leave(c *Client, why *transport.Closed)
	// Left says that a client has gone.
	Left(c *Client)
	// Keeps says whether an object stays when its owner leaves.
	Keeps(o *netvar.Object) bool
	// Drain says that the room ends in so much time.
	Drain(left time.Duration)
	// Close comes after the last tick.
	Close(ctx context.Context) error

	// AppendJoin appends what a recording keeps of a Join, and ReadJoin fills in one from that.
	AppendJoin(b []byte, j *Join) ([]byte, error)
	ReadJoin(b []byte, j *Join) error
}

// Server is what a room needs of the server that it belongs to.
type Server interface {
	// NextID draws the id of a client.
	NextID() uint64
	// EndAdmission refuses whoever comes from now on.
	EndAdmission(code transport.Code, text string)
	// Ticked comes after each tick, on the room's goroutine.
	Ticked()
}

// Loop is what a room drives of a loop.Loop, whatever its systems are handed.
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

// Spec describes a room. Its rates hold for the life of the room.
type Spec struct {
	Name        string
	Kind        string // a label of some metrics
	Rate, Fixed loop.Rate
	SendEvery   int // ticks between two snapshots
	MaxClients  int
	// MaxSpectators is how many may watch, beside those.
	MaxSpectators int
	// SpectatorDelay is how long ago what they see has happened; 0 is now.
	SpectatorDelay time.Duration
	Private        bool   // only tickets and the code let anybody in
	Code           string // of a private room
	Budget         int    // bytes per tick and client
	// KeepDropped is for how long a client that has lost its connection may come back, in game
	// time; 0 or less is not at all.
	KeepDropped time.Duration
	SameSubject SameSubject
	LostAfter   time.Duration // of silence a connection counts as lost, in game time
	MaxRewind   time.Duration // see viewcheck.go; 0 or less: no rewinds
	CloseEmpty  time.Duration // without anybody, in game time, it closes; 0 or less is never
	Sleep       bool          // it runs no ticks while there is nothing to do: see sleep.go
}

// Hertz returns the tick rate as a number.
func (s *Spec) Hertz() float64 { return float64(s.Rate.Num) / float64(s.Rate.Den) }

// Config is how a room runs.
type Config struct {
	Spec   Spec
	Schema *schema.Schema
	Game   Game
	Server Server
	// Identify finds out who wants to join, before the game is asked. Like the game's answer its
	// error may be a refusal. It runs on the connection's own goroutine.
	Identify func(context.Context, *Join) error
	// Tick is the game's own view of the running tick: the checks of a schema.Method get it.
	Tick any
	// Loop has the systems, and Now is where it says what runs.
	Loop Loop
	Now  *loop.Now

	Clock    loop.Clock
	Log      *slog.Logger
	Metrics  *metrics.Metrics
	Stats    *transport.Stats
	Instance []byte // of the server: clients notice a restart

	Limits   rpcqueue.Limits // of messages
	Answers  int             // that may be owed to a client
	Arrivals int             // of a client that may wait for a poll
	// LinkLimits bounds what a client sends before it is decoded.
	LinkLimits transport.Limits

	AdmitTimeout time.Duration
	DrainTimeout time.Duration
	Watchdog     time.Duration // below 0 is none
	WatchdogExit bool
	CheckEdits   bool
	CheckValues  bool
	// Detail keeps ticks in detail (slowtick), which takes two MiB.
	Detail bool

	// Closed makes the error of a room that has closed itself.
	Closed func(transport.Code, string) error
}

// Room is one loop and one game state. Its goroutine owns all of it: what is not
// said to be callable from elsewhere belongs to that goroutine.
type Room struct {
	cfg     Config
	game    Game
	schema  *schema.Schema
	spec    Spec
	moves   bool                   // its clients may ask to move
	handles atomic.Pointer[[]byte] // the methods with a handler, as a welcome says them
	clock   loop.Clock
	log     *slog.Logger
	metrics *metrics.Metrics
	tally   *metrics.Account // what of them is the room's

	// The tick, in the order of the flow: what arrives, what runs, what leaves.
	feed       feed
	inbox      *transport.Inbox
	arrive     func(*transport.Arrival) // takeArrival
	arrived    int                      // of the last poll
	emptySince time.Duration            // game time of the last tick in which somebody was here
	anew       []*Client                // that wait to start anew, oldest request first
	clients    clients
	camera     camera // of those who watch with a delay
	rpcs       *rpcqueue.Queue[*Room]
	tariff     *rpcqueue.Tariff // what messages take: decides nothing but through the feed
	prices     []rpcqueue.Price // scratch of the feed
	from       *Client          // whose message, join or leave is being handled
	owing      *Answer          // what the running handler answers later
	unsaid     uint64           // calls that reached no handler, and got no answer
	guard      panicguard.Guard // of the game's functions, on this goroutine
	aside      panicguard.Guard // of those that run on others
	misuses    misuses
	loop       Loop
	now        *loop.Now
	in         loop.Input // of the running tick
	world      *netvar.World
	captured   uint64    // the tick whose state was captured last
	looks      []func()  // called after each snapshot
	payload    []byte    // scratch of Encode
	leaving    *outgoing // sums up what leaves, while recorded or replayed

	inputs    inputs
	async     async
	queued    posts
	mailed    mailed
	ctx       context.Context // of the game's work; ends with the room
	cancel    context.CancelFunc
	penalties penalties
	seats     seats
	shown     *Room // its screening; nil without
	// of the newest tick, for admissions; zero before the first
	epoch    atomic.Pointer[loop.Epoch]
	scale    atomic.Pointer[loop.Scale]       // that clients have been told, for admissions too
	refusing atomic.Pointer[transport.Closed] // since nobody comes in any more
	end      atomic.Pointer[End]              // by who ends the room from outside
	life     life
	closing  *transport.Closed // by Close or a critical panic
	ending   bool              // nobody comes back any more
	closesIn time.Duration     // a drain that was told after the last tick; 0: none
	closesAt time.Duration     // the room ends then at the latest, once ending
	finished int               // steps of the end that have begun: see Finish

	quarantined atomic.Int64 // systems: see reportFaults
	questions   questions

	load      overloaded
	stall     stall
	sleep     sleep
	visits    visits
	limits    panicguard.Throttle[rpcqueue.Rung] // of what the log is told of them
	slow      *slowtick.Log                      // nil without Detail
	earliness []time.Duration                    // scratch of reportMargins
	flight    *tracedump.Dumper                  // nil without traces
	watchdog  *watchdog.Watchdog
	paces     func() (loop.Clock, loop.Schedule) // which tick runs when
	ended     atomic.Pointer[transport.Closed]   // why, from the beginning of its end
	finishAt  atomic.Pointer[time.Duration]      // when finish began; nil is not yet
}

// New makes a room that is still to be filled and that [Room.Open] completes.
func New(cfg Config) (*Room, error) {
	r := &Room{
		cfg: cfg, game: cfg.Game, schema: cfg.Schema, spec: cfg.Spec, clock: cfg.Clock, metrics: cfg.Metrics,
		loop: cfg.Loop, now: cfg.Now,
	}
	r.life.ctx, r.life.end = context.WithCancel(context.Background())
	r.log = slog.New(&tickHandler{Handler: cfg.Log.Handler(), room: r})
	r.guarded()
	r.feed, r.arrive, r.paces = network{r}, r.takeArrival, r.byClock
	r.inbox = transport.NewInbox(cfg.Arrivals, cfg.Stats)
	r.inbox.MaxJoins = maxEntering
	r.seats.playing.most, r.seats.watching.most = cfg.Spec.MaxClients, cfg.Spec.MaxSpectators
	if r.delayed() { // They are in its screening.
		r.seats.watching.most = 0
	}
	r.seats.rouse = r.rouse
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

// AllowMoves lets clients ask to move to another room. It belongs before the first tick.
func (r *Room) AllowMoves() { r.moves = true }

// Discard lets go of a room that was never filled: its game's Open has failed.
func (r *Room) Discard() {
	r.cancel()
	r.life.end()
	r.tally.Close(transport.CodeInternal.Name())
}

// Trace hands slow ticks to a flight recorder, before the first tick.
func (r *Room) Trace(d *tracedump.Dumper) { r.flight = d }

// The parts that the game's own view of a room works on.

// Spec returns the room's description.
func (r *Room) Spec() Spec { return r.spec }

// Schema returns what the room's game has declared.
func (r *Room) Schema() *schema.Schema { return r.schema }

// World returns the room's objects.
func (r *Room) World() *netvar.World { return r.world }

// Guard returns what the game's functions run below, on the room's goroutine.
func (r *Room) Guard() *panicguard.Guard { return &r.guard }

// Log returns the log of the running tick.
func (r *Room) Log() *slog.Logger { return r.log }

// Metrics returns where the room counts.
func (r *Room) Metrics() *metrics.Metrics { return r.metrics }

// Figures are a few numbers of the room, which any goroutine may ask for.
func (r *Room) Figures() metrics.Figures { return r.tally.Figures() }

// Progress returns how long ago the newest tick ended, and the tick period. Any goroutine may ask.
func (r *Room) Progress() (since, period time.Duration) { return r.tally.Progress() }

// Slow returns the record of slow ticks, which any goroutine may read; nil without Detail.
func (r *Room) Slow() *slowtick.Log { return r.slow }

// Watchdog returns who looks for ticks that hang, which any goroutine may ask.
func (r *Room) Watchdog() *watchdog.Watchdog { return r.watchdog }

// Captured returns the tick whose state was captured last.
func (r *Room) Captured() uint64 { return r.captured }

// Context ends with the room.
func (r *Room) Context() context.Context { return r.ctx }

// Seats returns how many clients are in the room or on their way in. Any goroutine may ask.
func (r *Room) Seats() int {
	players, spectators, _ := r.Places()
	return players + spectators
}

// Places returns how many of them play and watch, and how many more seats are reserved. Any
// goroutine may ask.
func (r *Room) Places() (players, spectators, reserved int) { return r.seats.count(r.clock.Now()) }

// Players returns how many seats of players are taken or reserved. Any goroutine may ask.
func (r *Room) Players() int { return r.seats.playersAt(r.clock.Now()) }

// Closing reports whether nobody else comes in, because the room ends. Any goroutine may ask.
func (r *Room) Closing() bool { return r.refusing.Load() != nil }

// Finishing returns for how long the room has been ending, by its clock, once it has run its
// last tick. Any goroutine may ask.
func (r *Room) Finishing() (since time.Duration, ends bool) {
	at := r.finishAt.Load()
	if at == nil {
		return 0, false
	}
	return r.clock.Now() - *at, true
}

// System is one of the systems that every room runs. They are ordinary systems with names, so
// a game may place its own around them.
type System struct {
	Name    string
	Stage   loop.Stage // 0 is each of the seven
	Place   loop.Place
	Run     func(loop.Stage)
	Without string // what happens without it
}

// The systems that are the game's own.
const (
	StartSystem  = "room.start"
	TimersSystem = "room.timers"
)

// Systems lists what runs in every tick, in the order of the stages.
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
