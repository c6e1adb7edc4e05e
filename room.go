package netloop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/guard"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/watchdog"
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
	// Name is how clients ask for the room; the default room's is empty.
	Name string
	// Rate is the tick rate; zero means 60 Hz. From 1 to 1 000 Hz.
	Rate Rate
	// FixedRate is the rate of the fixed steps; zero means the tick rate.
	FixedRate Rate
	// SendEvery lets every n-th tick send snapshots; zero means 1. From 1 to 60.
	SendEvery int
	// MaxClients is how many may be in the room at once; zero means 256. From 1
	// to 10 000.
	MaxClients int
	// Budget is how many bytes of object records a client is sent per tick, on
	// average; zero means 11 000, as much as the packets of a tick carry. From 1 to
	// 1 048 576. See [Client.SetBudget].
	Budget int
}

// Room is one loop and one game state. Its goroutine owns all of it: what is not
// said to be callable from elsewhere belongs into [Game] Open or into a tick.
type Room struct {
	server *Server
	schema *Schema
	spec   RoomSpec
	log    *slog.Logger

	// The tick, in the order of the flow: what arrives, what runs, what leaves.
	feed     feed
	inbox    *transport.Inbox
	arrivals []transport.Arrival // scratch of poll
	clients  clients
	rpcs     *rpcqueue.Queue[*Tick]
	tariff   *rpcqueue.Tariff // what messages take: decides nothing but through the feed
	prices   []rpcqueue.Price // scratch of the feed
	unsaid   uint64           // calls that reached no handler, and got no answer
	guard    guard.Guard      // of the game's functions, on this goroutine
	aside    guard.Guard      // of those that run on others
	misuses  misuses
	loop     *loop.Loop[*Tick]
	world    *netvar.World
	captured uint64        // the tick whose state was captured last
	readers  []*readers    // by class; nil for one whose fields everybody may read
	looks    []func(*Tick) // called after each snapshot: see inside.Server
	in       loop.Input    // of the running tick
	now      loop.Now
	tick     Tick
	timers   timers
	payload  []byte    // scratch of encode
	leaving  *outgoing // sums up what leaves, while recorded or replayed
	owing    *owed     // what the running handler answers later

	onStart   []func(*Tick)
	onAdmit   []func(context.Context, *Join) error
	onJoin    []func(*Tick, *Client) error
	onLeave   []func(*Tick, *Client, LeaveReason)
	onDrain   []func(*Tick, time.Duration)
	onClose   []func(context.Context) error
	perClient []interface {
		make(ClientID)
		free(ClientID)
	}
	opening bool
	starter *loop.System[*Tick]
	errs    []error // registrations rejected while Open runs

	async     async
	queued    posts
	ctx       context.Context // of Go's work; ends with the room
	cancel    context.CancelFunc
	penalties penalties
	seats     atomic.Int64               // clients in the room or on their way in
	epoch     atomic.Pointer[loop.Epoch] // of the newest tick, for admissions; zero before the first
	scale     atomic.Pointer[loop.Scale] // that clients have been told, for admissions too
	closing   *Closed                    // by Room.Close or a critical panic

	quarantined atomic.Int64 // systems: see reportFaults
	questions   questions

	load     overloaded
	stall    stall
	limits   guard.Throttle[rpcqueue.Rung] // of what the log is told of them
	slow     *slowtick.Log
	watchdog *watchdog.Watchdog
	finishAt atomic.Int64 // when finish began; 0 is not yet
}

// Closed says why a room ended before its server was told to, and on a client
// why its connection ended.
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
func openRoom(s *Server, spec RoomSpec) (*Room, error) {
	r := &Room{server: s, schema: s.schema, spec: spec, opening: true}
	r.log = slog.New(&tickHandler{Handler: s.log.Handler(), room: r})
	r.guarded()
	r.feed = network{r}
	r.inbox = transport.NewInbox(s.cfg.RPC.arrivals(), s.transport)
	r.world = netvar.NewWorld(s.schema.s.Classes())
	r.world.OnClamp(func(class, field string) {
		r.log.Warn("a value does not fit its field and is cut or clamped; this is said once", "class", class, "field", field)
	})
	r.check()
	r.world.SetRate(spec.Rate.Num, spec.Rate.Den)
	r.prioritize()
	r.restrict()
	r.rpcs = rpcqueue.New[*Tick](s.schema.s.RPCs())
	r.rpcs.OnPanic, r.rpcs.OnError, r.rpcs.OnLimit = r.handlerPanicked, r.handlerFailed, r.limited
	if err := r.rpcs.SetLimits(s.cfg.RPC.queue(spec.Rate.Period())); err != nil {
		return nil, err
	}
	r.tariff = rpcqueue.NewTariff(s.schema.s.RPCs(), func() time.Duration { return s.clock.Now() })
	r.rpcs.Tariff = r.tariff
	r.tick = Tick{now: &r.now, store: r.world, timers: &r.timers, log: r.log, room: r}
	r.reseed(s.cfg.Seed)
	r.watchdog = watchdog.New(s.cfg.Watchdog)
	r.slow = slowtick.New(spec.Rate.Period())
	r.load.ladder = overload.New(spec.Rate.Period())
	r.loop = loop.New(&r.tick, &r.now, func() time.Duration { return s.clock.Now() })
	r.loop.Follow(r.timeline())
	r.scale.Store(new(r.loop.Scale()))
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.epoch.Store(&loop.Epoch{})
	r.builtins()

	err := s.game.Open(r)
	r.opening = false
	if err := errors.Join(append(r.errs, err, r.undefined(), r.loop.Check())...); err != nil {
		return nil, fmt.Errorf("netloop: the game's Open: %w", err)
	}
	return r, nil
}

// builtins registers what every room runs. They are ordinary systems with names,
// so a game may place its own around them.
func (r *Room) builtins() {
	at := func(stage Stage, fn func(*Tick)) func(Stage) func(*Tick) {
		return func(s Stage) func(*Tick) {
			if s != stage {
				return nil
			}
			return fn
		}
	}
	for _, s := range []loop.Spec[*Tick]{
		{Name: "room.start", Place: loop.Head, Ask: at(Initialization, r.start), BuiltIn: "OnStart functions would not run"},
		{Name: "transport.poll", Place: loop.Head, Ask: at(EarlyUpdate, r.poll), BuiltIn: "nothing from clients would reach the room"},
		{Name: "rpc.drain", Place: loop.Head, Once: true, Ask: func(s Stage) func(*Tick) {
			return func(t *Tick) { r.watchdog.Stage(s); r.rpcs.Drain(s, t) }
		}, BuiltIn: "messages would wait for ever"},
		{Name: "room.timers", Place: loop.Head, Ask: at(Update, r.timers.run), BuiltIn: "Tick.After would call nothing"},
		{Name: "netvar.snapshot", Place: loop.Tail, Ask: at(PreLateUpdate, r.snapshot), BuiltIn: "clients would see no state"},
		{Name: "transport.flush", Place: loop.Tail, Ask: at(PostLateUpdate, r.flush), BuiltIn: "nothing would reach clients"},
	} {
		// A panic in a timer is the game's and costs one call; one in the others
		// would leave the room half-done.
		s.Critical = s.Name != "room.timers"
		added, err := r.loop.Add(s)
		if err != nil {
			panic(err) // The names are ours and distinct.
		}
		if s.Name == "room.start" {
			r.starter = added
		}
	}
}

// Spec returns the room's description with the defaults filled in.
func (r *Room) Spec() RoomSpec { return r.spec }

// Log returns the server's logger, for code that runs outside of ticks, such as
// OnAdmit functions and work given to [Go]. Any goroutine may use it.
func (r *Room) Log() *slog.Logger { return r.server.log }

// Server returns the server that the room belongs to.
func (r *Room) Server() *Server { return r.server }

// reject collects what Open registered wrongly; later it is logged. The error has no
// "netloop: " in front: Open's has, or System.Err.
func (r *Room) reject(err error) {
	if r.opening {
		r.errs = append(r.errs, err)
		return
	}
	r.log.Error("registration rejected", "error", err)
}

// hooks reports whether hooks may still be added: they are read by admissions on
// other goroutines, and a client that has joined would have missed its OnJoin.
func (r *Room) hooks(name string) bool {
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
	return r.hooks(name)
}

// handle registers the handler of a method.
func (r *Room) handle(m *schema.Method, fn func(*Tick, *Client, *rpcqueue.Item) error) {
	if err := m.Belongs(r.schema.s); err != nil {
		r.reject(err)
		return
	}
	err := r.rpcs.Handle(&m.Queue, func(t *Tick, it *rpcqueue.Item) error {
		from, ok := t.sender(it)
		if !ok {
			return errSenderLeft
		}
		t.from = from
		defer t.forget()
		if from != nil {
			if err := permits(m, t, from, it); err != nil {
				if it.Call != 0 {
					from.refuse(it, err)
				}
				return err
			}
		}
		return fn(t, from, it)
	})
	if err != nil {
		r.reject(err)
	}
}

// permits runs the checks of a message of a client.
func permits(m *schema.Method, t *Tick, from *Client, it *rpcqueue.Item) error {
	for i := range m.Checks {
		if err := m.Checks[i].Ask(t, from, it.Msg); err != nil {
			return err
		}
	}
	return nil
}

// errSenderLeft ends a message whose client has left in the very drain that runs it.
var errSenderLeft = &rpcqueue.Rejection{Why: rpcqueue.ClientGone, Err: Refuse(CodeLeft, "its client has left")}

func (t *Tick) forget() { t.from = nil }

// OnStart adds what happens once, at Initialization of the first tick, before
// any client can join: spawn the first objects here.
func (r *Room) OnStart(fn func(*Tick)) {
	if r.hooks("OnStart") {
		r.onStart = append(r.onStart, fn)
	}
}

// start is the system behind OnStart; it leaves after the first tick.
func (r *Room) start(t *Tick) {
	for _, fn := range r.onStart {
		fn(t)
	}
	r.starter.Remove()
}

// OnAdmit adds a check that every client passes before it joins. It runs on its
// own goroutine, may block until ctx ends ([Config] AdmitTimeout) and touches no
// state of the room. A refusal reaches the client in words.
func (r *Room) OnAdmit(fn func(ctx context.Context, j *Join) error) {
	if r.hooks("OnAdmit") {
		r.onAdmit = append(r.onAdmit, fn)
	}
}

// OnJoin adds what happens when a client comes in, in EarlyUpdate and before any
// message of this client. An error closes the connection, and no message of the
// client runs; OnLeave follows all the same, with the PerClient records and
// objects that were made so far.
func (r *Room) OnJoin(fn func(*Tick, *Client) error) {
	if r.hooks("OnJoin") {
		r.onJoin = append(r.onJoin, fn)
	}
}

// OnLeave adds what happens when a client has gone: exactly once for each that
// OnJoin was called with, while its objects still exist.
func (r *Room) OnLeave(fn func(*Tick, *Client, LeaveReason)) {
	if r.hooks("OnLeave") {
		r.onLeave = append(r.onLeave, fn)
	}
}

// OnDrain adds what happens when the server has been told to end: left is the
// time until it does.
func (r *Room) OnDrain(fn func(t *Tick, left time.Duration)) {
	if r.hooks("OnDrain") {
		r.onDrain = append(r.onDrain, fn)
	}
}

// OnClose adds what happens after the last tick, when all systems have been removed
// (see [OnRemove]): save here. The error of Run reports what it returns.
// The context ends 60 s after the first of them was called, for all of them together.
func (r *Room) OnClose(fn func(ctx context.Context) error) {
	if r.hooks("OnClose") {
		r.onClose = append(r.onClose, fn)
	}
}

// Close ends the room after this tick. Every client is told the code and the text.
// With [CodeClosing] the server's Run returns nil, otherwise a [*Closed].
func (r *Room) Close(t *Tick, c Code, why string) {
	t.server("Room.Close")
	if r.closing == nil {
		r.closing = &Closed{c, why}
	}
}

// clients holds the clients of a room in the order of their ids. The room's
// goroutine owns it.
type clients struct {
	list []*Client
	last *Client // found: the messages of one packet have one sender
}

func (cs *clients) get(id ClientID) (*Client, bool) {
	if cs.last != nil && cs.last.id == id {
		return cs.last, true
	}
	i, ok := cs.find(id)
	if !ok {
		return nil, false
	}
	cs.last = cs.list[i]
	return cs.last, true
}

func (cs *clients) all() iter.Seq[*Client] {
	return func(yield func(*Client) bool) {
		for _, c := range cs.list {
			if !yield(c) {
				return
			}
		}
	}
}
