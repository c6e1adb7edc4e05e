package arena

import (
	"github.com/netloop/netloop"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
)

// Schema is shared by the arena's server and clients.
var Schema = netloop.NewSchema("arena", 1, 0)

// Replicated objects.
var (
	Ships   = netloop.NewClass[Ship](Schema, "ship", netloop.Predicted(), netloop.OnMap("X", "Y"))
	Rocks   = netloop.NewClass[Rock](Schema, "rock", netloop.OnMap("X", "Y"))
	Shots   = netloop.NewClass[Shot](Schema, "shot", netloop.Predicted(), netloop.OnMap("X", "Y"))
	Pickups = netloop.NewClass[Pickup](Schema, "pickup", netloop.OnMap("X", "Y"))
)

// Controls is the input of a player in each fixed step. A missing input is replaced by the held
// keys of the last input, without Fire, which is a single press.
var Controls = netloop.NewInput(Schema, func(last Control, _ int) Control {
	last.Fire = false
	return last
})

// Messages. Entering, chatting and asking for the standings are game logic, and run in Update.
var (
	// This limit is higher than the rate of any player.
	Say       = netloop.NewRPC[*arenav1.Say](Schema, "say", netloop.Limit(2, 10))
	Said      = netloop.NewRPC[*arenav1.Said](Schema, "said")
	Enter     = netloop.NewRPC[Entry](Schema, "enter", netloop.Limit(1, 3))
	Struck    = netloop.NewRPC[Strike](Schema, "struck")
	Standings = netloop.NewCall[StandingsQuery, StandingsReply](Schema, "standings")
)

// Size is the length of the arena's sides, in units. The arena wraps around.
const Size = 4096

// Ship is a player's ship. The player's client predicts it, so each step must change a field by at
// least one quantum: the quantum of the position is the distance that the slowest ship flies in one
// step.
type Ship struct {
	X, Y    float32 `net:"quant=1/32"`
	VX, VY  float32 `net:"quant=1/64,read=owner"`  // units per second
	Heading float32 `net:"quant=1/256,lerp=angle"` // radians, from 0 to 2π
	Leaps   uint8   `net:"teleport"`               // counts jumps: over an edge, and to a new start
	Thrust  bool
	Turn    int8             // −1, 0 or 1: the direction of the turn
	Reload  netloop.Deadline `net:"read=owner"` // the ship cannot fire before
	Shield  netloop.Deadline // the ship takes no damage before
	Name    string           `net:"max=16"`
	Hull    uint8            // remaining hits; at 0 the ship falls
	Falls   netloop.Deadline // when the ship falls; until then it flies and fires
	Score   int32
}

// Rock is an asteroid that drifts.
type Rock struct {
	X, Y   float32 `net:"quant=1/8"`
	VX, VY float32 `net:"-"`        // units per second
	Leaps  uint8   `net:"teleport"` // over an edge
	Radius uint8
}

// Shot is the beam of a shot, which hits at once. The object only makes the shot visible.
type Shot struct {
	X, Y    float32          `net:"quant=1/32"` // position from which it was fired
	Heading float32          `net:"quant=1/256"`
	End     netloop.Deadline // it is visible until then
	Born    netloop.SpawnKey `net:"read=owner"`
}

// PickupKind is the effect of a pickup.
type PickupKind uint8

// The kinds of pickups.
const (
	Repair PickupKind = iota // one more hit survived
	Shield                   // protects from damage for a time
)

// Pickup is an object that a ship can collect.
type Pickup struct {
	X, Y float32 `net:"quant=1/8"`
	Kind PickupKind
}

// Control is the input of a player in one fixed step.
type Control struct {
	Thrust, Fire bool
	Turn         int8 // −1 left, 1 right
}

// Entry is the request of a client that has watched for a ship of its own.
type Entry struct {
	Name string `net:"max=16"`
}

// Strike names the shooter and the struck ship. Their clients receive it together with the snapshot
// that shows the hit.
type Strike struct {
	By, Ship netloop.Ref[Ship]
	Step     uint64 // of the input that fired
}

// StandingsQuery is the request for the best players.
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
