package netlooptest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/net/memnet"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// World is a server and its clients. The test's goroutine owns it.
type World struct {
	tb      testing.TB
	cfg     netloop.Config
	net     *memnet.Network
	server  bridge.Server
	main    *PlayedRoom            // the default one
	rooms   []*PlayedRoom          // the running ones and the default one, in the order of opening
	named   map[string]*PlayedRoom // the newest of each name, ended or not
	ticked  time.Duration          // time of the last tick, if no other act has happened since
	steps   int                    // ticks of the default room, with the frames that follow
	clients []*seat
	audits  []func()          // at each snapshot
	others  map[string]*World // other servers that clients reach, by address: see Connect
	drains  time.Duration     // the DrainTimeout
	wall    atomic.Int64      // see JumpWall

	opening sync.Mutex
	opened  []bridge.Room // since the last look, by any goroutine
}

// Option is an option of [New].
type Option struct{ apply func(*options) }

type options struct {
	seed   uint64
	cfg    netloop.Config
	panics bool
}

// AllowMisfits lets the game store values that do not fit their field, as a server without checks
// does: clients get the nearest value that fits. Without the option such values are rejected, and
// the test fails.
func AllowMisfits() Option { return Option{func(o *options) { o.cfg.CheckValues = false }} }

// AllowPanics lets the game panic without failing the test.
func AllowPanics() Option { return Option{func(o *options) { o.panics = true }} }

// Seed sets the seed of the world: of its links, and of the room's random numbers. Without it the
// seed is 1, or that in the environment variable NETLOOP_SEED.
func Seed(seed uint64) Option { return Option{func(o *options) { o.seed = seed }} }

// Room sets the default room's rates and limits. As at a server, a zero field has the game's
// default, if it is a [netloop.RoomDefaulter], and else netloop's; a test that fails logs the
// fields that have the game's.
func Room(s netloop.RoomSpec) Option { return Option{func(o *options) { o.cfg.Room = s }} }

// Limits bounds the cost of clients' messages for the room.
func Limits(l netloop.RPCLimits) Option { return Option{func(o *options) { o.cfg.RPC = l }} }

// Auth makes joining clients need tokens, as a server's Config does: see [World.Join].
func Auth(a netloop.Auth) Option { return Option{func(o *options) { o.cfg.Auth = a }} }

// MaxRooms sets the largest number of rooms.
func MaxRooms(n int) Option { return Option{func(o *options) { o.cfg.MaxRooms = n }} }

// Configure changes other fields of the server's Config.
func Configure(fn func(*netloop.Config)) Option { return Option{func(o *options) { fn(&o.cfg) }} }

// RecordRoom returns the writers for recordings of rooms other than the default one: see
// netloop.Config.
func RecordRoom(fn func(netloop.RoomInfo) (io.WriteCloser, error)) Option {
	return Option{func(o *options) { o.cfg.RecordRoom = fn }}
}

// Record writes a recording of the run, for netloop.NewReplay. A look with
// [World.Tick] may change the state and cannot be replayed: it marks the recording.
func Record(w io.Writer) Option { return Option{func(o *options) { o.cfg.Record = w }} }

// New makes a world with a server that has run no tick yet. When the test ends
// the server closes, as at the end of its Run.
//
// The world checks the game's use of its state. A field that was changed without Edit, through a
// pointer or a slice that was kept, fails the test, and so does a value that does not fit its
// field, see [AllowMisfits]. The failure names class, object and field.
func New(tb testing.TB, g netloop.Game, o ...Option) *World {
	tb.Helper()
	opt := options{seed: seedFromEnvironment(tb)}
	opt.cfg.CheckEdits, opt.cfg.CheckValues = true, true
	opt.cfg.Incarnation = 1 // Not the wall clock: a world repeats.
	for _, one := range o {
		one.apply(&opt)
	}
	logSeed(tb, opt.seed)
	logRoomDefaults(tb, opt.cfg.Room, g)
	opt.cfg.Seed = opt.seed
	opt.cfg.Log = logger(tb, opt.panics)
	w := &World{tb: tb, cfg: opt.cfg, net: memnet.New(opt.seed)}
	w.serve(g)
	tb.Cleanup(func() { w.finish() })
	return w
}

// finish ends the server with the test.
func (w *World) finish() {
	w.tb.Helper()
	w.server.EndAdmission(netloop.CodeClosing, "the test has ended")
	w.end(netloop.Closed{Code: netloop.CodeClosing, Text: "the test has ended"})
	if err := errors.Join(w.server.CloseServer(), w.server.Leave(context.Background())); err != nil {
		w.tb.Errorf("netlooptest: %v", err)
	}
}

// serve starts a server, to which clients connect from now on.
func (w *World) serve(g netloop.Game) {
	w.tb.Helper()
	s, err := netloop.New(w.cfg, g)
	if err != nil {
		w.tb.Fatalf("netlooptest: %v", err)
	}
	w.server = bridge.Netloop.Server(s)
	w.opened, w.named, w.ticked = nil, map[string]*PlayedRoom{}, -1
	w.server.Adopt(w.adopt)
	w.rooms = nil
	w.main = w.newRoom(bridge.Room{Room: w.server.Room, SpectatorRoom: w.server.SpectatorRoom, Tick: w.server.Tick, Ended: func(error) {}})
	for _, ask := range w.audits {
		w.server.Room.OnSnapshot(ask)
	}
	w.server.UseClock(w.clock())
	w.net.Serve(w.server.Handler)
	if err := w.server.Join(context.Background()); err != nil {
		w.tb.Fatalf("netlooptest: %v", err)
	}
}

// Restart kills the server without a message, as a crash does, and starts another one with the same
// options: its game, a new value, begins with tick 1 and knows no client. Clients notice at once,
// because a server that keeps its keys tells them, and reconnect by themselves as newcomers. The
// killed game's OnClose and CloseServer do not run. A world with [Record] cannot be restarted: a
// recording is of one server.
func (w *World) Restart(g netloop.Game) {
	w.tb.Helper()
	if w.cfg.Record != nil {
		w.tb.Fatalf("netlooptest: Restart: a recording is of one server")
	}
	w.cfg.Incarnation += incarnations
	w.serve(g)
	for _, s := range w.clients {
		if s.audit != nil {
			s.audit.forget()
		}
		s.conn.Break()
	}
}

// incarnations is the number of rooms that a server may open before [World.Restart], so that the
// rooms of the next one have larger numbers.
const incarnations = 1 << 32

// told has the tests that run, and the seeds that [logSeed] has seen for each: a test may make many
// worlds with one seed.
var told sync.Map

// logSeed logs how to repeat a test that has failed, once for each test and seed.
func logSeed(tb testing.TB, seed uint64) {
	type key struct {
		tb   testing.TB
		seed uint64
	}
	if _, again := told.LoadOrStore(key{tb, seed}, nil); again {
		return
	}
	tb.Cleanup(func() {
		told.Delete(key{tb, seed})
		if tb.Failed() {
			tb.Logf("seed %d: rerun with NETLOOP_SEED=%d go test -run '^%s$'", seed, seed, tb.Name())
		}
	})
}

// logRoomDefaults logs, if the test has failed, which fields of the room have the game's defaults
// beside those of the option Room.
func logRoomDefaults(tb testing.TB, room netloop.RoomSpec, g netloop.Game) {
	p, ok := g.(netloop.RoomDefaulter)
	asked := reflect.ValueOf(room)
	if !ok || asked.IsZero() {
		return
	}
	var names []string
	defaults := reflect.ValueOf(p.RoomDefaults())
	for i := range asked.NumField() {
		if f := asked.Type().Field(i); f.IsExported() && asked.Field(i).IsZero() && !defaults.Field(i).IsZero() {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("netlooptest: Room leaves %s to the game's RoomDefaults", strings.Join(names, ", "))
		}
	})
}

func seedFromEnvironment(tb testing.TB) uint64 {
	text := os.Getenv("NETLOOP_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		tb.Fatalf("netlooptest: NETLOOP_SEED: %v", err)
	}
	return seed
}

// logger writes the server's errors to the test's log, and fails the test on a panic.
func logger(tb testing.TB, panics bool) *slog.Logger {
	if panics {
		return slog.New(slog.DiscardHandler)
	}
	return logging.Slog(zaptest.NewLogger(tb, zaptest.Level(zap.ErrorLevel), zaptest.WrapOptions(zap.Hooks(func(e zapcore.Entry) error {
		if strings.HasSuffix(e.Message, "panicked") {
			tb.Errorf("netlooptest: %s", e.Message)
		}
		return nil
	}))))
}

// Join makes a client that joins over a link. The token is for the game's OnAdmit, and for the
// server if it demands tokens (see [Auth]); params are the client's join parameters. It is
// connected after some steps: see client.State, or client.Closed when it was refused.
func (w *World) Join(token string, params any, l Link, o ...ClientOption) *client.Client {
	w.tb.Helper()
	return w.JoinAs(client.Config{Token: token, Join: params}, l, o...)
}

// JoinAs is [World.Join] for a client of any configuration, such as one with
// another schema. Without a schema it has the server's.
func (w *World) JoinAs(cfg client.Config, l Link, o ...ClientOption) *client.Client {
	w.tb.Helper()
	if cfg.Schema == nil {
		cfg.Schema = w.server.Schema.(*netloop.Schema)
	}
	if cfg.Log == nil {
		cfg.Log = w.cfg.Log
	}
	s := &seat{link: memnet.Link(l)}
	for _, one := range o {
		one.apply(s)
	}
	w.begin(s)
	memory := bridge.Memory{
		Clock: netClock{w.net, &s.clock, nil}, Seed: w.cfg.Seed + uint64(len(w.clients)),
		Dial: func(g transport.Greeting, cfg transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error)) {
			s.dial(w, g, cfg, done)
		},
	}
	if w.others != nil {
		memory.DialTo = func(addr string, g transport.Greeting, cfg transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error)) {
			to := w.others[addr]
			if to == nil {
				done(nil, nil, fmt.Errorf("no server at %s", addr))
				return
			}
			s.dial(to, g, cfg, done)
		}
	}
	c, err := bridge.Client.New(cfg, memory)
	if err != nil {
		w.tb.Fatalf("netlooptest: %v", err)
	}
	s.c = c.(*client.Client)
	w.clients = append(w.clients, s)
	return s.c
}

// Connect lets the clients that join w from now on move to the server of another world, at an
// address of that server: the Addr of its [netloop.Cluster]. The test advances both worlds by the
// same small steps, such as a millisecond, because their clocks must agree.
func (w *World) Connect(addr string, other *World) {
	if w.others == nil {
		w.others = map[string]*World{}
	}
	w.others[addr] = other
}

// Step runs n ticks of the default room, and the due ticks of each other room. A client's frame
// runs half a tick after the tick of its room, or as soon as a tick that took longer has ended;
// frames of [FPS] run when they are due. Once the default room has ended itself, see [World.Ended],
// only clients and time advance. A critical system that panics fails the test.
func (w *World) Step(n int) {
	w.tb.Helper()
	w.ticked = -1
	for until := w.steps + n; w.steps < until; {
		w.act()
	}
}

// Advance runs all ticks and frames that are due within a time.
func (w *World) Advance(d time.Duration) {
	w.tb.Helper()
	w.ticked = -1
	until := w.net.Now() + d
	for w.startOpenedRooms(); w.first().at <= until; w.startOpenedRooms() {
		w.act()
	}
	w.advance(until)
}

// Ended returns why the server has ended: by Room.Close of the game in the default room, or by
// [World.Drain]. It is nil while it runs.
func (w *World) Ended() *netloop.Closed { return w.main.ended }

// end ends all rooms at once: clients are told, and the game's OnLeave and OnClose run.
func (w *World) end(why netloop.Closed) {
	w.tb.Helper()
	w.startOpenedRooms()
	for _, r := range slices.Clone(w.rooms) {
		r.end(why)
	}
}

// Drain ends the server as the end of Run's context does, with d as the DrainTimeout: new clients
// are refused, OnDrain runs in every room, and ticks continue while clients are in it, for d at
// most. Then all clients leave, work given to [netloop.Go] has 5 s of real time, and OnClose runs.
// With Cluster.HandOver in the Config, rooms that can are handed over before.
func (w *World) Drain(d time.Duration) {
	w.tb.Helper()
	if w.main.ended != nil {
		return
	}
	w.handOver()
	w.drains = d
	w.server.EndAdmission(netloop.CodeClosing, "the server is closing")
	w.startOpenedRooms()
	for _, r := range w.rooms {
		r.drain(d, closing)
	}
	for w.main.ended == nil || len(w.rooms) > 1 {
		w.Step(1)
	}
}

// handOver moves the rooms that can to other servers, if the server's Config asks for that.
func (w *World) handOver() {
	w.tb.Helper()
	if !w.cfg.Cluster.HandOver {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.server.HandOver()
	}()
	for {
		select {
		case <-done:
			return
		default:
			w.Step(1)
			runtime.Gosched()
		}
	}
}

// closing is the reason that clients of an ending server get.
var closing = netloop.Closed{Code: netloop.CodeClosing, Text: "the server is closing"}

// Settle waits until all work that the game has given to [netloop.Go] so far is done; the next tick
// delivers its results, in the order in which the work was started. Work runs in real time, for
// which virtual time does not wait: without Settle its results arrive some ticks later, at other
// ticks in each run, and a call that needs them for its answer may time out first.
//
// Step does not call it by itself, because work that waits for the next action of the test, or of a
// client that Step runs, would never end; and because a world that always waits would never test a
// game with unfinished work: a player that leaves meanwhile, or an answer that arrives too late.
//
//	w.Step(2)  // the message arrives, and its handler calls Go
//	w.Settle() // the work is done
//	w.Step(2)  // its result is delivered, and the answer arrives
func (w *World) Settle() {
	for _, r := range w.rooms {
		r.in.Room.Async.Settle()
	}
}

// Spend advances virtual time within a tick: called by a system or a handler of a room, it makes
// the running tick take d longer. A room that spends more than its period falls behind, drops ticks
// and climbs its overload ladder as a real one does. Other rooms tick on meanwhile. Between two
// ticks no room acts meanwhile, as when the whole machine stops.
func (w *World) Spend(d time.Duration) {
	if d < 0 {
		w.tb.Fatalf("netlooptest: Spend(%v): time does not go back", d)
	}
	w.pass(w.net.Now() + d)
}

// Until runs ticks until done returns true, checked after each. The test fails after at most max
// ticks, with the state of the clients and the room.
func (w *World) Until(max int, done func() bool) {
	w.tb.Helper()
	for range max {
		if done() {
			return
		}
		w.Step(1)
	}
	if !done() {
		w.tb.Fatalf("netlooptest: not done after %d ticks: %s", max, w.condition())
	}
}

// maxListed bounds the number of clients in a failure text.
const maxListed = 8

// condition returns the state of the room and its clients.
func (w *World) condition() string {
	said := []string{"the room runs"}
	if why := w.main.ended; why != nil {
		said[0] = "the room has ended: " + why.Error()
	}
	for i, s := range w.clients[:min(len(w.clients), maxListed)] {
		how := fmt.Sprintf("client %d is %v", i+1, s.c.State().Phase)
		if closed := s.c.Closed(); closed != nil {
			how = fmt.Sprintf("client %d was closed: %v", i+1, closed)
		}
		said = append(said, how)
	}
	if more := len(w.clients) - maxListed; more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, "; ")
}

// Tick calls fn with the tick of the default room, between two ticks: to look at its state,
// or to change it for the next tick's snapshot.
func (w *World) Tick(fn func(*netloop.Tick)) {
	w.tb.Helper()
	w.main.Tick(fn)
}

// Look calls fn with a client's tick, between two frames: to look at the client's objects.
func (w *World) Look(c *client.Client, fn func(*netloop.Tick)) {
	w.tb.Helper()
	bridge.Client.Inspect(c, func(t any) { fn(t.(*netloop.Tick)) })
}

// Now returns the virtual time since the world was made.
func (w *World) Now() time.Duration { return w.net.Now() }
