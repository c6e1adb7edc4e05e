package room

import (
	"context"
	"log/slog"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Game is the interface through which a room calls its game. The room calls all methods on its own
// goroutine, except Admit. An implementation calls each function of the game separately, through
// [Room.Call], so that a panic ends only that call.
type Game interface {
	// Admit accepts or rejects a join, on a separate goroutine, and may set fields of the Join.
	Admit(ctx context.Context, j *Join) error
	// Start is called at Initialization of the first tick.
	Start()
	// RunTimers calls the timers that are due in this tick.
	RunTimers()
	// TimersDue returns the game time of the next timer, which depends on the scale of scaled time.
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
	// Role is called when a client has joined in another role than the client that it replaces, of
	// the same player.
	Role(c *Client)
	// Move is called after a client's address has changed. The client's Join has the new address.
	Move(c *Client)
	// Leave is called when a client leaves, while its objects still exist.
	Leave(c *Client, why *transport.Closed)
	// Left is called after a client has left.
	Left(c *Client)
	// Keeps reports whether an object is kept when its owner leaves.
	Keeps(o *state.Object) bool
	// NameLost is called when another server has opened a room of the room's name.
	NameLost()
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

// Loop is the part of a loop.Loop that a room uses, independent of the type of the argument of its
// systems.
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
	SetDisabled(name string, yes bool) error
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
	// SpectatorDelay is the delay with which spectators see the room; 0: no delay.
	SpectatorDelay time.Duration
	Private        bool   // only clients with a ticket or the code are admitted
	Code           string // code of a private room
	Budget         int    // bytes per tick and client
	// KeepDropped is the game time for which a client that has lost its connection may resume. At 0
	// or less it cannot resume.
	KeepDropped time.Duration
	SameSubject SameSubject
	LostAfter   time.Duration // silence after which a connection is lost, in game time
	MaxRewind   time.Duration // see viewcheck.go; 0 or less: no rewinds
	CloseEmpty  time.Duration // an empty room closes after this game time; 0 or less: never
	Sleep       bool          // the room skips idle ticks: see sleep.go
	Travels     bool          // clients may move to rooms of other servers: see travel.go
}

// Hertz returns the tick rate as a number.
func (s *Spec) Hertz() float64 { return float64(s.Rate.Num) / float64(s.Rate.Den) }

// Config is the configuration of a room.
type Config struct {
	Spec   Spec
	Schema *schema.Schema
	Game   Game
	Server Server
	// Identify determines the player of a join, before the game is asked. Its error may be a
	// refusal, like that of Game.Admit. It runs on the connection's own goroutine.
	Identify func(context.Context, *Join) error
	// Hold returns nil while the room may admit clients without a ticket or a seat, and otherwise
	// their refusal: another server of the cluster may have a room of this name. A nil Hold never
	// refuses.
	Hold func() error
	// Travel is the access to other servers, if Spec.Travels is set; nil in a replay.
	Travel Travel
	// Places keeps each player in one room of a cluster; nil: players may be in several.
	Places Places
	// Tick is the game's type of the running tick. The room passes it to the checks of a
	// schema.Method.
	Tick any
	// Loop has the systems. Now is the loop's report of the running tick and system.
	Loop Loop
	Now  *loop.Now

	Clock    loop.Clock
	Log      *slog.Logger
	Metrics  *metrics.Metrics
	Stats    *transport.Stats
	Instance []byte // id of the server process, by which clients detect a restart

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
	// Detail records ticks in detail (package slowtick), which takes 2 MiB.
	Detail bool

	// Closed returns the error to report when the room closes itself.
	Closed func(transport.Code, string) error
}
