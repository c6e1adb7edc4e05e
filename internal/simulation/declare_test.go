package simulation

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop"
)

// parts are the optional classes and methods of a schema, as bits.
type parts uint8

const (
	vaultPart parts = 1 << iota
	tomePart
	boilerPart
	chestPart
	shipPart
	allParts = vaultPart | tomePart | boilerPart | chestPart | shipPart

	newerBuild parts = 1 << 7 // of a client: with a class and a method that the server lacks
)

// pawn is the object of a player. It may be on a grid.
type pawn struct {
	N    uint32
	X, Y float32    `net:"quant=1/16,range=-300:300"`
	Face [4]float32 `net:"quat=10"`
	Yaw  float32    `net:"lerp=angle"`
	Hops uint8      `net:"teleport"`
	Life int32      `net:"weight=8"`
	Ammo int32      `net:"read=owner"`
	Pace float32    `net:"name=Speed"`
	Memo string     `net:"-"`
}

// vault has fields that some clients may not read.
type vault struct {
	N    uint32
	Side uint8
	Gold int32  `net:"read=owner"`
	Plan string `net:"read=side,max=24"`
	Code uint16 `net:"read=guild"`
	// Secrets, of which no byte may be sent to another client: see check_secrets_test.go.
	Name string `net:"max=16"`
	Note string `net:"read=owner,max=16"`
	Key  string `net:"read=guild,max=16"`
}

// tome exceeds a packet at times.
type tome struct {
	N     uint32
	Pages []uint32 `net:"max=600"`
}

// boiler delays its changes.
type boiler struct {
	N    uint32
	Slow uint32  `net:"interval=200ms"`
	Heat float32 `net:"quant=1/8,threshold=2"`
}

// chest has lists.
type chest struct {
	N     uint32
	Wares []ware          `net:"max=12,key=ID"`
	Cards []string        `net:"max=6,each=8"`
	Marks map[uint8]int16 `net:"max=8"`
	At    netloop.Deadline
}

type ware struct {
	ID    uint16
	Count int16
}

// ship is moved by its owner's inputs, and predicted.
type ship struct {
	X, V  int32
	Fires uint32
}

// control is the input. Fire numbers a press; 0 is none.
type control struct {
	Turn int8
	Fire uint32
}

// numbered is a message of a life. To is the addressee's id, of messages to clients.
type numbered struct {
	Life uint64
	Seq  uint32
	To   netloop.ClientID
}

// question is a call; Mode selects how it is answered.
type question struct {
	N    uint32
	Mode uint8
}

type answer struct{ N uint32 }

// command tells the game of a room to do something: the name of a row of commands.
type command struct {
	Do     string `net:"max=32"`
	N      uint64
	For    int64
	Client netloop.ClientID
	Text   string `net:"max=300"`
}

// talk is a message between rooms.
type talk struct {
	Room  uint64 // the incarnation of the sender
	Seq   uint64
	Stage netloop.Stage
}

// declared is a schema with some parts; the other classes are nil.
type declared struct {
	schema  *netloop.Schema
	pawns   *netloop.Class[pawn]
	vaults  *netloop.Class[vault]
	tomes   *netloop.Class[tome]
	boilers *netloop.Class[boiler]
	chests  *netloop.Class[chest]
	ships   *netloop.Class[ship]
	boards  *netloop.Class[board]
	rows    *netloop.Class[row]
	hands   *netloop.Class[hand]
	shots   *netloop.Class[shot]
	control *netloop.Input[control]

	up, looseUp     *netloop.RPC[numbered]
	down, looseDown *netloop.RPC[numbered]
	ask             *netloop.Call[question, answer]
	commands        *netloop.RPC[command]
	talks, news     *netloop.RPC[talk]
	claim           *netloop.RPC[claim]
	atOnce          *netloop.Call[question, answer] // that a handler answers before it returns
	shout           *netloop.RPC[numbered]          // to all clients, and to delayed spectators
	members         netloop.Gauge                   // clients without the spectator feed
	presses         netloop.Counter
	changes         netloop.Histogram
}

var schemas = struct {
	sync.Mutex
	of map[parts]*declared
}{of: map[parts]*declared{}}

// declare returns the schema with these parts.
func declare(p parts) *declared {
	schemas.Lock()
	defer schemas.Unlock()
	if d := schemas.of[p]; d != nil {
		return d
	}
	s := netloop.NewSchema(fmt.Sprintf("simulation-%d", p&allParts), 1, int(p/newerBuild))
	if p&newerBuild != 0 {
		netloop.NewClass[answer](s, "later")
		netloop.NewRPC[answer](s, "later")
	}
	d := &declared{schema: s, pawns: netloop.NewClass[pawn](s, "pawn", netloop.Weight(2), netloop.MinRate(2), netloop.OnMap("X", "Y"))}
	d.boards, d.rows = netloop.NewClass[board](s, "board"), netloop.NewClass[row](s, "row")
	d.hands = netloop.NewClass[hand](s, "hand")
	d.members = netloop.NewGauge(s, "members", "Clients of the rooms.")
	d.presses = netloop.NewCounter(s, "presses", "Presses of clients.", netloop.ByLabel("parity", "0", "1"))
	d.changes = netloop.NewHistogram(s, "changes", "Objects that change in a tick.", []float64{1, 4})
	if p&vaultPart != 0 {
		d.vaults = netloop.NewClass[vault](s, "vault")
	}
	if p&tomePart != 0 {
		d.tomes = netloop.NewClass[tome](s, "tome", netloop.Weight(0.5))
	}
	if p&boilerPart != 0 {
		d.boilers = netloop.NewClass[boiler](s, "boiler")
	}
	if p&chestPart != 0 {
		d.chests = netloop.NewClass[chest](s, "chest")
	}
	if p&shipPart != 0 {
		d.ships = netloop.NewClass[ship](s, "ship", netloop.Predicted())
		d.shots = netloop.NewClass[shot](s, "shot", netloop.Predicted())
	}
	d.control = netloop.NewInput(s, func(last control, _ int) control { last.Fire = 0; return last })
	stages := netloop.AtStage(netloop.Update, slices.DeleteFunc(netloop.AllStages(), func(s netloop.Stage) bool { return s == netloop.Update })...)
	d.up, d.down = netloop.NewRPC[numbered](s, "up", stages), netloop.NewRPC[numbered](s, "down", netloop.ServerOnly())
	d.looseUp = netloop.NewRPC[numbered](s, "loose up", netloop.Unreliable(), netloop.LateDrop())
	d.looseDown = netloop.NewRPC[numbered](s, "loose down", netloop.Unreliable(), netloop.ServerOnly())
	d.ask = netloop.NewCall[question, answer](s, "ask", netloop.Timeout(2*time.Second), netloop.Limit(50, 100), netloop.LimitPerTick(50),
		netloop.Validate(func(q question) error {
			if q.Mode == badQuestion {
				return errors.New("a bad question")
			}
			return nil
		}))
	d.claim = netloop.NewRPC[claim](s, "claim", netloop.MinRole(1), netloop.ForSpectators(), netloop.OwnerOnly(func(m claim) netloop.Ref[pawn] { return m.Pawn }))
	d.atOnce = netloop.NewCall[question, answer](s, "ask at once", netloop.Timeout(2*time.Second), netloop.Limit(50, 100), netloop.LimitPerTick(20))
	d.shout = netloop.NewRPC[numbered](s, "shout", netloop.ServerOnly())
	d.commands = netloop.NewRPC[command](s, "command", netloop.ServerOnly())
	d.talks, d.news = netloop.NewRPC[talk](s, "talk", netloop.ServerOnly(), stages), netloop.NewRPC[talk](s, "news", netloop.ServerOnly())
	schemas.of[p] = d
	return d
}
