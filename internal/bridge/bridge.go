// Package bridge is the one door between package netloop and the packages that
// are built on it: client, netlooptest and app need more of netloop
// than a game author does, and what they need shall not show in its
// documentation. Package netloop fills in [Netloop] while it is initialised, and
// nobody writes it later.
//
// Values of netloop's own types pass as any, because this package cannot import
// netloop.
package bridge

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/netloop/netloop/internal/limits"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/net/inproc"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/room"
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
	// Input opens a *netloop.Input.
	Input func(descriptor any) *schema.Input
	// Class opens a *netloop.Class.
	Class func(descriptor any) Class
	// Object opens a *netloop.Object.
	Object func(object any) *netvar.Object
	// Repoint lets a *netloop.Object be that of another object.
	Repoint func(handle any, to *netvar.Object)
	// Repeat makes up the input of a step for which none has come, as a *netloop.Input says.
	Repeat func(descriptor, last any, missed int) any
	// NewTick makes a *netloop.Tick for a client.
	NewTick func(TickConfig) Tick
	// Systems returns where a client's systems are registered: it has the methods On, Add, Group
	// and Loop of a netloop.Room. Errors are handed to reject, later ones too.
	Systems func(l any, reject func(error)) any
	// Server opens a *netloop.Server.
	Server func(server any) Server
	// Bounds are the package's rows of docs/LIMITS.md.
	Bounds func() limits.Table
}

// Class is an opened class.
type Class struct {
	State *netvar.Class
	Wrap  func(*netvar.Object) any // the *netloop.Object of an object

	Predicted bool // clients may predict it
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
	// ShiftTimers moves what waits for game time and for scaled time.
	ShiftTimers func(game, scaled time.Duration)
}

// Server is an opened server: what drives it on one goroutine, in virtual time.
type Server struct {
	Public    any // the *netloop.Server itself
	Room      *room.Room
	Screening *room.Room        // where those are who watch with a delay; nil without
	Tick      any               // the room's *netloop.Tick
	Schema    any               // the game's *netloop.Schema
	Handler   transport.Handler // admits clients
	// Local lets clients of this process in without a network.
	Local *inproc.Host
	// UseClock replaces the clock before the first tick.
	UseClock func(loop.Clock)
	// SetIdleTimeout says for how long a client may give no sign of life. It acts on a server that
	// does not listen yet.
	SetIdleTimeout func(time.Duration)
	// Simulate lets the clients of a server that does not listen yet come through a simulated
	// network, which has Stats: the metrics show them.
	Simulate func(netem.Config)
	// EndAdmission refuses whoever comes from now on.
	EndAdmission func(transport.Code, string)
	// Adopt hands over the rooms that are opened from now on, instead of running them: on whichever
	// goroutine opens one.
	Adopt func(func(Room))
	// Tell tells those who watch the rooms what has changed, if it is time.
	Tell func()
}

// Room is an opened room of a server that is not its default one.
type Room struct {
	Room      *room.Room
	Screening *room.Room  // nil without
	Tick      any         // the room's *netloop.Tick
	Ended     func(error) // to be called when the room has come to its end
}

// Clock is the clock of a client.
type Clock = loop.Clock

// Client is what package client lets through.
var Client struct {
	// New makes a *client.Client of a client.Config whose connections are made in memory, and
	// begins the first one.
	New func(cfg any, m Memory) (client any, err error)
	// NewDialer makes a *client.Dialer of a socket, which belongs to it from now on.
	NewDialer func(socket net.PacketConn) any
	// Blind lets a *client.Client acknowledge what comes without reading it, before its first Step:
	// it has no objects.
	Blind func(client any)
	// Inspect calls fn with a *client.Client's live *netloop.Tick between two frames.
	Inspect func(client any, fn func(tick any))
	// Bounds are the package's rows of docs/LIMITS.md.
	Bounds func() limits.Table
}

// Memory is what a client lives in that has no network.
type Memory struct {
	Clock Clock
	Seed  uint64 // of its attempts to come back
	// Dial begins a connection, and calls done once, later.
	Dial func(g transport.Greeting, s transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error))
}
