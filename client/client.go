package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// Client connects one player to a room, over one connection at a time, and holds a copy of the
// room's state. Unless stated otherwise, its methods may only be called from the goroutine that
// calls Step.
type Client struct {
	core
	systems registry
	closer  func() // closes the resources that Dial opened for this client alone
	closed  bool   // Close was called

	// The parts, in the order of the data: connection, arrivals, drawing, output.
	conn       connection
	arrivals   []transport.Arrival // scratch of poll
	time       serverTime
	receiver   receiver
	messages   messages
	watchers   watchers
	prediction prediction
	views      views
	inputs     inputs
	pace       pace // of flushes
	acking     acking

	overload   netloop.Overload
	onOverload []func(netloop.Overload)
}

// newClient makes a client that is not connected yet.
func newClient(cfg Config, clock loop.Clock) (*Client, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	var params []byte
	if cfg.Join != nil {
		var err error
		if params, err = json.Marshal(cfg.Join); err != nil {
			return nil, fmt.Errorf("client: Config.Join: %w", err)
		}
	}
	c := &Client{core: core{schema: bridge.Netloop.Schema(cfg.Schema), clock: clock, log: cfg.Log}}
	c.replica = replica.New(c.schema.Classes())
	c.guard.Log, c.guard.Now, c.guard.Count = c.log, clock.Now, func(string) { c.stats.Panics++ }
	c.tick = bridge.Netloop.NewTick(bridge.TickConfig{Now: &c.now, Store: c.replica, Log: c.log, Rand: newRand()})
	c.loop = loop.New(c.current(), &c.now, clock.Now)
	c.systems = bridge.Netloop.Systems(c.loop, c.reject).(registry)
	c.link(&cfg, params)
	c.messages.queue.OnPanic = func(it *rpcqueue.Item, v any, stack []byte) {
		c.guard.Panicked(&panicguard.Func{Kind: panicguard.Handler, Name: it.Method.Name}, v, stack)
	}
	for _, class := range c.schema.Classes().Classes() {
		c.replica.TellChanges(class, false) // Changes are not reported until a watcher is added.
	}
	c.builtins()
	return c, nil
}

// link makes the client's parts, and connects each to the parts that it uses.
func (c *Client) link(cfg *Config, params []byte) {
	core, conn, classes := &c.core, &c.conn, len(c.schema.Classes().Classes())
	c.conn = connection{
		core: core, cfg: *cfg, params: params, jitter: newRand(), welcomed: c.welcome, end: c.end,
		room: cfg.Room, ticket: cfg.Ticket, done: make(chan struct{}),
	}
	c.receiver = receiver{core: core, conn: conn, watchers: &c.watchers, prediction: &c.prediction, views: &c.views}
	c.messages = messages{core: core, conn: conn, queue: rpcqueue.New[*netloop.Tick](c.schema.RPCs())}
	c.watchers = watchers{core: core, matched: c.prediction.confirm, byClass: make([][]*watcher, classes)}
	c.prediction = prediction{core: core, conn: conn, time: &c.time, inputs: &c.inputs, watchers: &c.watchers, views: &c.views}
	c.views = views{replica: c.replica, time: &c.time, reached: c.messages.reached, classes: make([]viewClass, classes)}
	c.inputs = inputs{core: core, conn: conn, time: &c.time, views: &c.views}
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// registry registers the client's systems, as a netloop.Room registers its own.
type registry interface {
	On(s netloop.Stage, name string, fn func(*netloop.Tick), o ...netloop.SystemOption) *netloop.System
	Add(name string, ask func(netloop.Stage) func(*netloop.Tick), o ...netloop.SystemOption) *netloop.System
	Group(name string, o ...netloop.SystemOption) *netloop.System
	Loop() *netloop.Loop
}

// maxArrivals limits the arrivals that wait for the next Step. A client that does not call Step
// sends no acknowledgements, so the server soon sends it only a few probes a second and no state;
// only messages fill this inbox. If it is full, unreliable messages are dropped, and a reliable
// message, which must not be dropped, ends the connection.
const maxArrivals = 1024

// builtins registers the systems that each client runs.
func (c *Client) builtins() {
	for _, s := range []loop.Spec[*netloop.Tick]{
		{Name: "transport.poll", Place: loop.Head, Ask: at(netloop.EarlyUpdate, c.poll), BuiltIn: "no packet from the server would arrive"},
		{Name: "rpc.drain", Place: loop.Head, Once: true, Ask: func(s netloop.Stage) func(*netloop.Tick) {
			return func(t *netloop.Tick) { c.messages.queue.Drain(s, t) }
		}, BuiltIn: "messages would wait for ever"},
		{Name: "client.timers", Place: loop.Head, Ask: at(netloop.Update, func(*netloop.Tick) { c.tick.RunTimers() }), BuiltIn: "Tick.AfterFunc would call no function"},
		{Name: "transport.flush", Place: loop.Tail, Ask: at(netloop.PostLateUpdate, func(*netloop.Tick) { c.flush() }), BuiltIn: "no packet would be sent to the server"},
	} {
		if _, err := c.loop.Add(s); err != nil {
			panic(err) // The names are constants and distinct.
		}
	}
}

// at returns the function Ask of a system (see [loop.Spec]) that runs fn at one stage only.
func at(stage netloop.Stage, fn func(*netloop.Tick)) func(netloop.Stage) func(*netloop.Tick) {
	return func(s netloop.Stage) func(*netloop.Tick) {
		if s != stage {
			return nil
		}
		return fn
	}
}

// ID returns the client's id in the room, and 0 before it is connected. The id changes if the
// client has to join again after it has lost its connection: see [Reconnect].
func (c *Client) ID() netloop.ClientID { return c.conn.id }

// Room returns the name of the client's room; before the client is connected, the name that it
// requests.
func (c *Client) Room() string { return c.conn.room }

// Minor returns the minor version of the schema in use after the client has connected: the smaller
// of the server's and the client's version.
func (c *Client) Minor() int { return c.conn.minor }

// On registers a function to run at a stage of every frame, as Room.On does on the server. With the
// option netloop.Every, the period is measured in the time of frames. An invalid registration is
// logged, and System.Err returns the error. Anchors and groups may be registered later, until the
// first Step.
func (c *Client) On(s netloop.Stage, name string, fn func(*netloop.Tick), o ...netloop.SystemOption) *netloop.System {
	return c.systems.On(s, name, fn, o...)
}

// Add registers a system by a function that returns, for each stage, the function to run there, as
// Room.Add does on the server. If it returns nil, the system does not run at that stage.
func (c *Client) Add(name string, ask func(netloop.Stage) func(*netloop.Tick), o ...netloop.SystemOption) *netloop.System {
	return c.systems.Add(name, ask, o...)
}

// Group registers a group, which systems join by the option netloop.InSystemGroup, as Room.Group
// does on the server.
func (c *Client) Group(name string, o ...netloop.SystemOption) *netloop.System {
	return c.systems.Group(name, o...)
}

// Loop returns the tree of the client's systems, as Room.Loop does on the server.
func (c *Client) Loop() *netloop.Loop { return c.systems.Loop() }

// Run calls Step at the server's tick rate. If the tick rate is below 10 Hz, Run uses the rate of
// fixed steps if it is higher, but at most 10 Hz. Run returns nil when ctx ends, or a
// *netloop.Closed when the client is closed. It does not close the connection.
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
		next = max(next, now-period) // After a stall only one missed frame is made up for.
		next += period
		if err := c.clock.WaitUntil(ctx, next); err != nil {
			return nil //nolint:nilerr // The end of the context is the usual end.
		}
	}
}

// Closed returns the reason why the client ended, or nil if it has not ended. A client that
// reconnects has not ended: see [Reconnect]. It may be called from any goroutine.
func (c *Client) Closed() *netloop.Closed { return c.conn.ended() }

// Close tells the server that the client leaves and ends the connection. Messages sent before are
// still flushed; calls that wait for an answer fail, and all systems are removed (see
// [netloop.OnRemove]). A second Close has no effect. A later Step runs no system: it only returns
// errors to calls that callbacks made while the client ended. Close must not run concurrently with
// Step.
func (c *Client) Close() error {
	if c.conn.session != nil {
		c.conn.session.Close(netloop.CodeLeft, "")
	}
	if c.closer != nil {
		c.closer()
		c.closer = nil
	}
	c.end(netloop.Closed{Code: netloop.CodeLeft})
	c.closed = true
	if rec := c.loop.End(); c.now.Stage == 0 { // Otherwise the running Step reports it.
		c.report(rec)
	}
	return nil
}

// end ends the client for the given reason: calls that wait for an answer and checks of Verify fail
// with it.
func (c *Client) end(why netloop.Closed) {
	if !c.conn.setEnded(&why) {
		return
	}
	fail := func(t *netloop.Tick) { c.messages.calls.failAll(t, &why) }
	if c.now.Stage != 0 {
		fail(c.current())
	} else {
		c.inspect(fail) // Close is called between two frames: the failed calls get a live tick too.
	}
	c.receiver.verified(&why)
	c.conn.setState(State{Phase: Closed, Code: why.Code, Text: why.Text})
}

var systemClock = sync.OnceValue(func() loop.Clock { return clock.NewSystem() })
