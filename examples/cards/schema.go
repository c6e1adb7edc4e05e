package cards

import "github.com/netloop/netloop"

// What the server and its clients share.
var (
	Schema = netloop.NewSchema("cards", 1, 0)

	Tables = netloop.NewClass[Table](Schema, "table")
	Seats  = netloop.NewClass[Seat](Schema, "seat")

	// Of the lobby.
	Sit    = netloop.NewCall[SitDown, Place](Schema, "lobby.sit")
	Record = netloop.NewCall[RecordQuery, Won](Schema, "lobby.record")
	// Of a table.
	Play = netloop.NewCall[Move, Done](Schema, "table.play")
	Draw = netloop.NewCall[DrawOne, Done](Schema, "table.draw")
)

// Table is what everybody sees of a table. The pile is not in it, only how high it is: nobody can
// read what lies there.
type Table struct {
	Phase   Phase
	Top     Card // the card that lies on top of the discards
	Suit    Suit // that is to be followed: after an eight another than that of Top
	Turn    uint8
	Pile    uint8 // cards
	Round   uint16
	Winner  uint8            // of the round, in its pause; or of the match
	Until   netloop.Deadline // of the turn, or of the pause between two rounds
	Players uint8            // that a match needs
}

// Phase is what a table is about.
type Phase uint8

// The phases of a table.
const (
	Waiting Phase = iota // for players
	Playing
	Pausing // between two rounds
	Over    // until somebody plays again
)

// Seat is one player's place. Its hand is read by its owner alone.
type Seat struct {
	Place  uint8
	Player string `net:"max=32"`
	Hand   []Card `net:"max=52,read=owner"`
	Cards  uint8  // in the hand
	Away   bool   // the player has lost the connection, or has left
	Score  uint16
}

// SitDown asks the lobby for a place: at a table of this name, or at any if it has none.
type SitDown struct {
	Table string `net:"max=24"`
}

// Place is where a player goes: what client.Config wants to know.
type Place struct {
	Room   string `net:"max=64"`
	Ticket string `net:"max=512"`
}

// RecordQuery asks what the player has won.
type RecordQuery struct{}

// Won is that.
type Won struct{ Played, Won uint32 }

// Move plays a card of the hand. With an eight its player names the suit that is to be followed.
type Move struct {
	Card Card
	Suit Suit
}

// DrawOne draws a card, after which the turn passes.
type DrawOne struct{}

// Done says that it was.
type Done struct{}
