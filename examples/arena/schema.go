package arena

import (
	"time"

	"github.com/netloop/netloop"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
)

// Schema is what the arena's server and clients share.
var Schema = netloop.NewSchema("arena", 1, 0)

// Replicated objects.
var (
	Ships   = netloop.NewClass[Ship](Schema, "ship")
	Rocks   = netloop.NewClass[Rock](Schema, "rock")
	Shots   = netloop.NewClass[Shot](Schema, "shot")
	Pickups = netloop.NewClass[Pickup](Schema, "pickup")
)

// Messages. Steering and firing act on the simulation, so they run before its
// first fixed step; chat and standings are game logic.
var (
	SteerShip = netloop.NewRPC[Steer](Schema, "steer", netloop.AtStage(netloop.FixedUpdate), netloop.Unreliable())
	FireShot  = netloop.NewRPC[Fire](Schema, "fire", netloop.AtStage(netloop.FixedUpdate))
	// Nobody types faster.
	Say       = netloop.NewRPC[*arenav1.Say](Schema, "say", netloop.Limit(2, 10))
	Said      = netloop.NewRPC[*arenav1.Said](Schema, "said")
	Standings = netloop.NewCall[StandingsQuery, StandingsReply](Schema, "standings")
)

// Size is the length of the arena's sides, in units. What leaves on one side
// comes back on the other.
const Size = 4096

// Body is where something is and how fast it moves. Positions travel in
// eighths of a unit; speeds are the server's own business.
type Body struct {
	X, Y   float32 `net:"quant=1/8"`
	VX, VY float32 `net:"-"` // units per second
}

// Ship is a player's ship.
type Ship struct {
	Body
	Name    string  `net:"max=16"`
	Heading float32 `net:"quant=1/256"` // radians, from 0 to 2π
	Thrust  bool
	Turn    int8  // −1, 0 or 1
	Hull    uint8 // hits that it survives
	Score   int32
	Shield  netloop.Deadline // until then nothing harms it
	Reload  time.Duration    `net:"-"` // game time from which it may fire
}

// Rock drifts.
type Rock struct {
	Body
	Radius uint8
}

// Shot flies straight until it hits or its time is over. Where it is follows from
// where and when it was fired, so it is sent once and never changes: see
// [Shot.Position].
type Shot struct {
	X, Y   float32 `net:"quant=1/8"` // where it was fired
	VX, VY float32 `net:"quant=1/8"` // units per second
	By     netloop.Ref[Ship]
	End    netloop.Deadline
}

// PickupKind says what a pickup is good for.
type PickupKind uint8

// The kinds of pickups.
const (
	Repair PickupKind = iota // one more hit survived
	Shield                   // nothing harms the ship for a while
)

// Pickup waits to be collected.
type Pickup struct {
	X, Y float32 `net:"quant=1/8"`
	Kind PickupKind
}

// Steer sets a ship's controls until the next Steer.
type Steer struct {
	Thrust bool
	Turn   int8 // −1 left, 1 right
}

// Fire asks for one shot.
type Fire struct{}

// StandingsQuery asks for the best players.
type StandingsQuery struct{ Top uint8 } // how many, at most 10

// StandingsReply lists the best players, best first.
type StandingsReply struct {
	Rows []Standing `net:"max=10"`
}

// Standing is one line of the standings.
type Standing struct {
	Name  string `net:"max=16"`
	Score int32
}
