package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Client connects one player to a room, over one connection at a time, and mirrors the room's
// state. Unless stated otherwise, its methods may only be called from the goroutine that calls
// Step.
type Client struct {
	cfg    Config
	schema *schema.Schema
	served *schema.Foreign // the server's schema, if it is another
	warned map[uint32]bool // methods that the server lacks, by id
	minor  int
	clock  loop.Clock
	log    *slog.Logger
	id     netloop.ClientID
	room   string // the current room, or the requested one
	ticket string // sent with the request; empty is none
	// mayMove reports whether the server may move the client to another room over its connection.
	mayMove bool
	handles []byte // the methods that the room's game handles, a bit each, from the welcome
	params  []byte // Config.Join
	dial    dialing
	jitter  *rand.Rand // of the delays between attempts to reconnect
	closer  func()     // closes the resources that Dial opened for this client alone
	closed  bool       // by Close

	// State that outlives a connection, for the next one.
	instance []byte // of the server
	secret   []byte // the resume token; empty if the server keeps no seat
	keep     time.Duration
	backlog  *transport.Backlog // nil if the server keeps no seat
	before   uint64             // reliable messages received before this connection
	received uint64             // all reliable messages received
	attempts uint64             // to connect: orders a late attempt and the newest
	since    time.Duration      // when this connection began
	away     *away              // nil while connected
	silence  lull

	// The frame, in the order of the data: arrivals, systems, output.
	session  *transport.Session  // nil while connecting; then the last one
	arrivals []transport.Arrival // scratch of poll
	replica  *netvar.Replica
	rpcs     *rpcqueue.Queue[*netloop.Tick]
	loop     *loop.Loop[*netloop.Tick]
	systems  registry
	now      loop.Now
	tick     bridge.Tick
	payload  []byte // scratch of encode
	pace     pace   // of flushes

	time     serverTime
	watchers [][]*watcher // by the index of the class
	batches  uint64       // of events passed to watchers
	telling  uint64       // the batch being delivered now; 0 is none
	calls    calls
	inputs   inputs

	prediction prediction
	held       held
	views      views
	verify     verification
	state      State
	onState    []func(State)
	onSnap     []func(Snapshot)
	overload   netloop.Overload
	onLoad     []func(netloop.Overload)
	guard      panicguard.Guard // of the game's functions other than systems
	stats      Stats
	traffic    transport.Stats
	snapshot   Snapshot // being received

	reception reception
	acking    acking
	refusals  refusals

	mu      sync.Mutex
	foreign []func(*netloop.Tick) // for the next poll; under mu
	gone    *netloop.Closed       // under mu
	done    chan struct{}         // closed with gone
}

// newClient makes a client that is not connected yet.
func newClient(cfg Config, c loop.Clock) (*Client, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	cl := &Client{cfg: cfg, clock: c, room: cfg.Room, ticket: cfg.Ticket, log: cfg.Log, done: make(chan struct{}), schema: bridge.Netloop.Schema(cfg.Schema)}
	if cfg.Join != nil {
		var err error
		if cl.params, err = json.Marshal(cfg.Join); err != nil {
			return nil, fmt.Errorf("client: Config.Join: %w", err)
		}
	}
	cl.jitter = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	cl.replica = netvar.NewReplica(cl.schema.Classes())
	cl.rpcs = rpcqueue.New[*netloop.Tick](cl.schema.RPCs())
	cl.guard.Log, cl.guard.Now, cl.guard.Count = cl.log, c.Now, func(string) { cl.stats.Panics++ }
	cl.rpcs.OnPanic = func(it *rpcqueue.Item, v any, stack []byte) {
		cl.guard.Panicked(&panicguard.Func{Kind: panicguard.Handler, Name: it.Method.Name}, v, stack)
	}
	cl.tick = bridge.Netloop.NewTick(bridge.TickConfig{
		Now: &cl.now, Store: cl.replica, Log: cl.log, Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	})
	cl.loop = loop.New(cl.tick.Tick.(*netloop.Tick), &cl.now, c.Now)
	cl.systems = bridge.Netloop.Systems(cl.loop, cl.reject).(registry)
	cl.views.classes = make([]viewClass, len(cl.schema.Classes().Classes()))
	cl.watchers = make([][]*watcher, len(cl.schema.Classes().Classes()))
	for _, class := range cl.schema.Classes().Classes() {
		cl.replica.TellChanges(class, false) // Until a watcher is added.
	}
	cl.builtins()
	return cl, nil
}

// registry registers the client's systems, as a netloop.Room registers its own.
type registry interface {
	On(s netloop.Stage, name string, fn func(*netloop.Tick), o ...netloop.SystemOption) *netloop.System
	Add(name string, ask func(netloop.Stage) func(*netloop.Tick), o ...netloop.SystemOption) *netloop.System
	Group(name string, o ...netloop.SystemOption) *netloop.System
	Loop() *netloop.Loop
}

// maxArrivals limits the arrivals that wait for the next Step. A client that does not step sends no
// acknowledgements, so the server soon sends it only a few probes a second and no more state;
// messages fill this inbox. When it is full, unreliable messages are dropped, and a reliable one,
// which must not be dropped, ends the connection.
const maxArrivals = 1024

// builtins registers the systems that each client runs.
func (c *Client) builtins() {
	at := func(stage netloop.Stage, fn func(*netloop.Tick)) func(netloop.Stage) func(*netloop.Tick) {
		return func(s netloop.Stage) func(*netloop.Tick) {
			if s != stage {
				return nil
			}
			return fn
		}
	}
	for _, s := range []loop.Spec[*netloop.Tick]{
		{Name: "transport.poll", Place: loop.Head, Ask: at(netloop.EarlyUpdate, c.poll), BuiltIn: "nothing from the server would arrive"},
		{Name: "rpc.drain", Place: loop.Head, Once: true, Ask: func(s netloop.Stage) func(*netloop.Tick) {
			return func(t *netloop.Tick) { c.rpcs.Drain(s, t) }
		}, BuiltIn: "messages would wait for ever"},
		{Name: "client.timers", Place: loop.Head, Ask: at(netloop.Update, func(*netloop.Tick) { c.tick.RunTimers() }), BuiltIn: "Tick.AfterFunc would call nothing"},
		{Name: "transport.flush", Place: loop.Tail, Ask: at(netloop.PostLateUpdate, func(*netloop.Tick) { c.flush() }), BuiltIn: "nothing would reach the server"},
	} {
		if _, err := c.loop.Add(s); err != nil {
			panic(err) // The names are ours and distinct.
		}
	}
}

// connected handles the first connection, before the first Step.
func (c *Client) connected(e *entry) {
	if err := c.arrive(e); err != nil {
		e.session.Close(transport.CodeProtocol, err.Error())
		c.end(netloop.Closed{Code: transport.CodeProtocol, Text: err.Error()})
		return
	}
	c.enter(nil, e)
	c.setState(State{Phase: Loading})
}

// ID returns the client's id in the room, and 0 before it is connected. A client that has joined
// anew after a break has another one: see [Reconnect].
func (c *Client) ID() netloop.ClientID { return c.id }

// Room returns the name of the client's room; before the client is connected, the name that it
// requests.
func (c *Client) Room() string { return c.room }

// Minor returns the minor version of the schema that is in force, once connected:
// the smaller of the server's and the client's.
func (c *Client) Minor() int { return c.minor }

// On registers a function to run at a stage of every frame, as Room.On does on the server. Every
// counts the time of frames. An invalid registration is logged, and System.Err returns the error.
// Anchors and groups may be registered later, until the first Step.
func (c *Client) On(s netloop.Stage, name string, fn func(*netloop.Tick), o ...netloop.SystemOption) *netloop.System {
	return c.systems.On(s, name, fn, o...)
}

// Add registers a system by a function that returns, for each stage, the function to run there, as
// Room.Add does on the server; nil is none.
func (c *Client) Add(name string, ask func(netloop.Stage) func(*netloop.Tick), o ...netloop.SystemOption) *netloop.System {
	return c.systems.Add(name, ask, o...)
}

// Group registers a group of systems for others to be netloop.In, as Room.Group does on
// the server.
func (c *Client) Group(name string, o ...netloop.SystemOption) *netloop.System {
	return c.systems.Group(name, o...)
}

func (c *Client) reject(err error) { c.log.Error("registration rejected", "error", err) }

// Loop returns the tree of the client's systems, as Room.Loop does on the server.
func (c *Client) Loop() *netloop.Loop {
	return c.systems.Loop()
}

// Step runs one frame, of any length: the seven stages once, and one fixed step for each that
// became due on the server's clock, at most 125 ms of them or 8 and often none, each with its own
// number and time. frame is the time since the last Step, which systems see as Delta. It never
// waits for the network.
func (c *Client) Step(frame time.Duration) {
	if c.closed { // Calls made in callbacks of the end fail.
		c.inspect(func(t any) { c.runForeign(t.(*netloop.Tick)) })
		return
	}
	c.listen()
	c.reconnect()
	if c.live() {
		c.time.request(c.clock.Now(), c.session)
	}
	if c.inputs.sample != nil {
		c.time.leads(c.clock.Now())
	}
	in := c.time.input(c.clock.Now(), c.clock.Wall(), frame)
	c.loop.Reject(c.reject)
	c.rpcs.Begin(in.Tick, in.GameTime)
	rec, err := c.loop.Step(in)
	c.report(rec)
	if err != nil {
		c.end(netloop.Closed{Code: netloop.CodeInternal, Text: err.Error()})
	}
}

// report logs the panics and quarantines of systems.
func (c *Client) report(rec *loop.Record) {
	for i := range rec.Panics {
		if p := &rec.Panics[i]; p.First {
			c.log.Error("a system panicked", "system", p.System, "panic", p.Value, "stack", string(p.Stack))
		} else if p.Quarantine > 0 {
			c.log.Error("a system is quarantined: it panicked again and again", "system", p.System, "panic", p.Value, "frames", p.Quarantine)
		}
	}
}

// Run steps the client at the server's tick rate until ctx ends, which returns
// nil, or the client is closed, which returns a *netloop.Closed. It does not
// close the connection.
func (c *Client) Run(ctx context.Context) error {
	last := c.clock.Now()
	for next := last; ; {
		period := cmp.Or(c.pace.period, time.Second/60) // Not connected: Closed is set.
		now := c.clock.Now()
		c.Step(now - last)
		last = now
		if closed := c.Closed(); closed != nil {
			return closed
		}
		next = max(next, now-period) // After a stall one frame is made up for, not all.
		next += period
		if err := c.clock.WaitUntil(ctx, next); err != nil {
			return nil //nolint:nilerr // The context's end is the ordinary end.
		}
	}
}

// Closed returns why the client ended. It returns nil while the client has not ended, which
// includes reconnecting after a break, see [Reconnect]. It may be called from any goroutine.
func (c *Client) Closed() *netloop.Closed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// Close tells the server that the client leaves and ends the connection. Messages sent before are
// still flushed; calls that wait for an answer fail, and all systems are removed (see
// [netloop.OnRemove]). A second Close has no effect. A later Step runs no system: it only fails the
// calls made in callbacks of the end. Close must not run concurrently with Step.
func (c *Client) Close() error {
	if c.session != nil {
		c.session.Close(netloop.CodeLeft, "")
	}
	if c.closer != nil {
		c.closer()
		c.closer = nil
	}
	c.end(netloop.Closed{Code: netloop.CodeLeft})
	c.closed = true
	if rec := c.loop.End(); c.now.Stage == 0 { // Else the Step that runs reports it.
		c.report(rec)
	}
	return nil
}

// inspect calls fn with a live tick, between two frames or in a callback of one.
func (c *Client) inspect(fn func(tick any)) {
	stage, system := c.now.Stage, c.now.System // Zero, except in a callback of the running frame.
	c.now.Stage, c.now.System = netloop.Update, "client.inspect"
	defer func() { c.now.Stage, c.now.System = stage, system }()
	fn(c.tick.Tick)
}

// end records the end of the connection, once, and fails the calls that wait for an answer.
func (c *Client) end(why netloop.Closed) {
	c.mu.Lock()
	if c.gone != nil {
		c.mu.Unlock()
		return
	}
	c.gone = &why
	c.mu.Unlock()
	close(c.done)
	c.stay()
	fail := func(t any) { c.calls.failAll(t.(*netloop.Tick), &why) }
	if c.now.Stage != 0 {
		fail(c.tick.Tick)
	} else {
		c.inspect(fail) // Close is called between two frames: the failed calls get a live tick too.
	}
	c.verify.done(c, &why)
	c.setState(State{Phase: Closed, Code: why.Code, Text: why.Text})
}

var systemClock = sync.OnceValue(func() loop.Clock { return clock.NewSystem() })
