// Package inside is the one door between package netloop and the packages that
// are built on it: client, netlooptest and app need more of netloop
// than a game author does, and what they need shall not show in its
// documentation. Package netloop fills in [Netloop] while it is initialised, and
// nobody writes it later.
//
// Values of netloop's own types pass as any, because this package cannot import
// netloop.
package inside

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Netloop is what package netloop lets through.
var Netloop struct {
	// Schema opens a *netloop.Schema and freezes it.
	Schema func(declared any) *schema.Schema
	// Method opens a *netloop.RPC or *netloop.Call.
	Method func(descriptor any) *schema.Method
	// Class opens a *netloop.Class.
	Class func(descriptor any) Class
	// NewTick makes a *netloop.Tick for a client.
	NewTick func(TickConfig) Tick
	// On, Add and Group register a *netloop.System with a client's loop, as the methods of
	// Room do. Errors are handed to reject, later ones too.
	On    func(l any, reject func(error), s loop.Stage, name string, fn, options any) any
	Add   func(l any, reject func(error), name string, ask, options any) any
	Group func(l any, reject func(error), name string, options any) any
	// Loop makes a *netloop.Loop of a client's loop.
	Loop func(l any, reject func(error)) any
	// Server opens a *netloop.Server.
	Server func(server any) Server
}

// Class is an opened class.
type Class struct {
	State *netvar.Class
	Wrap  func(*netvar.Object) any // the *netloop.Object of an object
}

// TickConfig is what a client's tick shows.
type TickConfig struct {
	Now   *loop.Now
	Store netvar.Store
	Rand  *rand.Rand
	Log   *slog.Logger
}

// Tick is a client's tick: the *netloop.Tick itself, and what the client's loop
// drives it by.
type Tick struct {
	Tick      any
	RunTimers func()
}

// Server is what a server in memory is driven by, on one goroutine, in virtual
// time.
type Server interface {
	// UseClock replaces the clock before the first tick.
	UseClock(loop.Clock)
	// Schema is the game's *netloop.Schema.
	Schema() any
	// Handler admits clients.
	Handler() transport.Handler
	// Overload is the level that the next tick's input has.
	Overload() uint8
	// Step runs one tick.
	Step(loop.Input) error
	// Timeline returns the default room's rates.
	Timeline() loop.Timeline
	// Inspect calls fn with a live *netloop.Tick between two ticks.
	Inspect(fn func(tick any)) error
	// OnMisuse sets who hears what the checks of Config find, instead of the log.
	OnMisuse(func(text string))
	// OnSnapshot lets fn look at a live *netloop.Tick and at the objects right after each snapshot,
	// when it has been judged who may see and read what. It must change nothing.
	OnSnapshot(fn func(tick any, w *netvar.World))
	// Settle waits until the work given to Go is done.
	Settle()
	// Drain tells the game that the room ends, and Lingers reports whether it has something to
	// wait for until it does.
	Drain(limit time.Duration) error
	Lingers(elapsed, limit time.Duration) bool
	// Finish ends the default room as the end of Run does.
	Finish(code transport.Code, text string) error
	// Stages prints the loop: stage by stage the systems in order.
	Stages() []loop.DumpStage
	// View describes the loop before the first tick, or between two.
	View() loop.View
}

// Clock is the clock of a client.
type Clock = loop.Clock

// Client is what package client lets through.
var Client struct {
	// New makes a *client.Client of a client.Config that is connected by hand.
	New func(cfg any, clock Clock) (MemoryClient, error)
	// Inspect calls fn with a *client.Client's live *netloop.Tick between two frames.
	Inspect func(client any, fn func(tick any))
}

// MemoryClient is a client that waits to be connected.
type MemoryClient struct {
	Client    any // *client.Client
	Greeting  transport.Greeting
	Session   transport.SessionConfig
	Connected func(*transport.Session, *netloopv1.Welcome, error)
}
