// Package bridge gives the packages that are built on netloop (client, netlooptest and app) access
// to its internals. They need more of netloop than a game author does, and its documentation must
// not show these parts. Package netloop sets [Netloop] while it is initialised, and no code writes
// it later.
//
// Values of netloop's own types are passed as any, because this package cannot import netloop.
package bridge

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/net/inproc"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Netloop holds functions of package netloop. A function that opens a value of such a type returns
// the internal value behind it.
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
	Object func(object any) *state.Object
	// Repoint makes a *netloop.Object the handle of another object.
	Repoint func(handle any, to *state.Object)
	// Repeat returns the input for a step for which none has arrived, derived from the last input
	// by the rule of a *netloop.Input.
	Repeat func(descriptor, last any, missed int) any
	// Send converts the options of one send, a []netloop.SendOption.
	Send func(options any) schema.Send
	// NewTick makes a *netloop.Tick for a client.
	NewTick func(TickConfig) Tick
	// Systems returns the registry of a client's systems, with the methods On, Add, Group and Loop
	// of a netloop.Room. Errors are passed to reject, later ones too.
	Systems func(l any, reject func(error)) any
	// Room opens a *netloop.Room.
	Room func(room any) *room.Room
	// Replay opens a *netloop.Replay.
	Replay func(replay any) *room.Replay
	// Server opens a *netloop.Server.
	Server func(server any) Server
}

// Class is an opened class.
type Class struct {
	State *state.Class
	Wrap  func(*state.Object) any // the *netloop.Object of an object

	Predicted bool // clients may predict it
}

// TickConfig is the data of a client's tick.
type TickConfig struct {
	Now   *loop.Now
	Store state.Store
	Rand  *rand.Rand
	Log   *slog.Logger
}

// Tick is a client's tick: the *netloop.Tick itself, and the functions by which the client's loop
// drives it.
type Tick struct {
	Tick      any
	RunTimers func()
	// ShiftTimers moves the times of all timers: those in game time by game, those in scaled time
	// by scaled.
	ShiftTimers func(game, scaled time.Duration)
}

// Server is an opened server, with the parts that run it on one goroutine, in virtual time.
type Server struct {
	Public        any // the *netloop.Server itself
	Room          *room.Room
	SpectatorRoom *room.Room        // the room of the delayed spectators; nil without
	Tick          any               // the room's *netloop.Tick
	Schema        any               // the game's *netloop.Schema
	Handler       transport.Handler // admits clients
	// Local accepts clients of this process without a network.
	Local *inproc.Host
	// UseClock replaces the clock before the first tick.
	UseClock func(loop.Clock)
	// SetIdleTimeout sets the silence after which a connection is lost. It acts on a server that
	// does not listen yet.
	SetIdleTimeout func(time.Duration)
	// Simulate puts a simulated network between a server that does not listen yet and its clients.
	// The network has Stats, which the metrics show.
	Simulate func(netem.Config)
	// EndAdmission refuses all further connections.
	EndAdmission func(transport.Code, string)
	// CloseServer calls the game's CloseServer, once: after the last room has ended.
	CloseServer func() error
	// Join joins the cluster of the Config, if there is one, as Listen does, and Leave leaves it.
	Join  func(context.Context) error
	Leave func(context.Context) error
	// HandOver moves the rooms that can to other servers, as the end of Run's context does.
	HandOver func()
	// Adopt passes each room that is opened later to a function, instead of running it. The
	// function runs on the goroutine that opened the room.
	Adopt func(func(Room))
	// Tell reports changes to the watches of the rooms, if a report is due.
	Tell func()
	// Page returns the content of a page of the admin listener for a token of role read, or does
	// what the page does. It may wait for a tick, so the goroutine of a room must not call it.
	Page func(ctx context.Context, path string, query url.Values) (any, error)
	// WriterPage is Page for a token of role write.
	WriterPage func(ctx context.Context, path string, query url.Values) (any, error)
}

// Room is an opened room of a server, other than its default room.
type Room struct {
	Room          *room.Room
	SpectatorRoom *room.Room  // nil without
	Tick          any         // the room's *netloop.Tick
	Ended         func(error) // must be called when the room has ended
}

// Clock is the clock of a client.
type Clock = loop.Clock

// Client is the access to package client.
var Client struct {
	// New makes a *client.Client of a client.Config with connections in memory, and begins its
	// first connection.
	New func(cfg any, m Memory) (client any, err error)
	// NewDialer makes a *client.Dialer of a socket, which it then owns.
	NewDialer func(socket net.PacketConn) any
	// Break makes a *client.Client lose its connection between two frames, and reconnect.
	Break func(client any)
	// WrapStreams puts a wrapper around each later TCP connection of a *client.Dialer.
	WrapStreams func(dialer any, wrap func(net.Conn) net.Conn)
	// Blind makes a *client.Client acknowledge packets without decoding them, so that it has no
	// objects. It is called before the first Step.
	Blind func(client any)
	// Inspect calls fn with a *client.Client's live *netloop.Tick between two frames.
	Inspect func(client any, fn func(tick any))
}

// Memory is the environment of a client without a network.
type Memory struct {
	Clock Clock
	Seed  uint64 // of its reconnect attempts
	// Dial begins a connection, and calls done once, later.
	Dial func(g transport.Greeting, s transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error))
	// DialTo is Dial for another server, at an address; nil: the client cannot move there.
	DialTo func(addr string, g transport.Greeting, s transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error))
}
