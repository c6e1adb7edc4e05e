package arena

import (
	"github.com/netloop/netloop"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
)

// Schema is what the arena's server and clients share.
var Schema = netloop.NewSchema("arena", 1, 0)

// Replicated objects.
var (
	Ships   = netloop.NewClass[Ship](Schema, "ship", netloop.Predicted())
	Rocks   = netloop.NewClass[Rock](Schema, "rock")
	Shots   = netloop.NewClass[Shot](Schema, "shot", netloop.Predicted())
	Pickups = netloop.NewClass[Pickup](Schema, "pickup")
)

// Controls is what a player does in each fixed step. What is held goes on where an input is
// missing; what is pressed is not pressed again.
var Controls = netloop.NewInput(Schema, func(last Control, _ int) Control {
	last.Fire = false
	return last
})

// Messages. To enter, to talk and to ask for the standings is game logic, and runs in Update.
var (
	// Nobody types faster.
	Say       = netloop.NewRPC[*arenav1.Say](Schema, "say", netloop.Limit(2, 10))
	Said      = netloop.NewRPC[*arenav1.Said](Schema, "said")
	Enter     = netloop.NewRPC[Entry](Schema, "enter", netloop.Limit(1, 3))
	Struck    = netloop.NewRPC[Strike](Schema, "struck")
	Standings = netloop.NewCall[StandingsQuery, StandingsReply](Schema, "standings")
)

// Size is the length of the arena's sides, in units. What leaves on one side
// comes back on the other.
const Size = 4096

// Ship is a player's ship. Its player's client predicts it, so a step adds to no field less than a
// unit of it: a unit of the position is what the slowest ship flies in one.
type Ship struct {
	X, Y    float32 `net:"quant=1/32"`
	VX, VY  float32 `net:"quant=1/64,read=owner"`  // units per second
	Heading float32 `net:"quant=1/256,lerp=angle"` // radians, from 0 to 2π
	Leaps   uint8   `net:"teleport"`               // over an edge, and to where it starts anew
	Thrust  bool
	Turn    int8             // −1, 0 or 1
	Reload  netloop.Deadline `net:"read=owner"` // until then it does not fire
	Shield  netloop.Deadline // until then nothing harms it
	Name    string           `net:"max=16"`
	Hull    uint8            // hits that it survives; 0: it falls
	Falls   netloop.Deadline // when it falls, it still flies and fires until then
	Score   int32
}

// Rock drifts.
type Rock struct {
	X, Y   float32 `net:"quant=1/8"`
	VX, VY float32 `net:"-"`        // units per second
	Leaps  uint8   `net:"teleport"` // over an edge
	Radius uint8
}

// Shot is the beam of a shot, which hits at once. It is there to be seen.
type Shot struct {
	X, Y    float32          `net:"quant=1/32"` // where it was fired
	Heading float32          `net:"quant=1/256"`
	End     netloop.Deadline // until then it glows
	Born    netloop.Born     `net:"read=owner"`
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

// Control is the input of a player in one fixed step.
type Control struct {
	Thrust, Fire bool
	Turn         int8 // −1 left, 1 right
}

// Entry is how somebody who has looked on gets a ship.
type Entry struct {
	Name string `net:"max=16"`
}

// Strike tells who shot and who was struck, when they see it.
type Strike struct {
	By, Ship netloop.Ref[Ship]
	Step     uint64 // of the input that fired
}

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
