package cards

import "github.com/netloop/netloop"

// What the server and its clients share.
var (
	Schema = netloop.NewSchema("cards", 1, 0)

	// Of the lobby.
	Listings = netloop.NewClass[Listing](Schema, "listing")
	Sit      = netloop.NewCall[SitDown, Place](Schema, "lobby.sit", asked)
	Record   = netloop.NewCall[RecordQuery, Won](Schema, "lobby.record", asked)

	// Of a table.
	Tables = netloop.NewClass[Table](Schema, "table")
	Seats  = netloop.NewClass[Seat](Schema, "seat")
	Play   = netloop.NewCall[Move, Done](Schema, "table.play", turns)
	Draw   = netloop.NewCall[DrawOne, Done](Schema, "table.draw", turns)
	Leave  = netloop.NewCall[GetUp, Place](Schema, "table.leave", asked, netloop.ForSpectators())
)

// More than this no player does, and no bot that plays as fast as it can.
var (
	asked = netloop.Limit(5, 20)
	turns = netloop.Limit(100, 200)
)

// Listing is a table as the lobby shows it, whoever opened it, but for private ones.
type Listing struct {
	Table   string   `net:"max=24"` // the name by which SitDown asks for it
	Players []string `net:"max=4,each=32"`
	Taken   uint8    // seats that are taken or promised
	Seats   uint8
	Phase   Phase
	Round   uint16
}

// Table is what everybody sees of a table. The pile is not in it, only how high it is: nobody can
// read what lies there.
type Table struct {
	Name    string `net:"max=24"`
	Code    string `net:"max=64"` // of a private table, for its players to tell others
	Phase   Phase
	Top     Card // the card that lies on top of the discards
	Suit    Suit // that is to be followed: after an eight another than that of Top
	Turn    uint8
	Pile    uint8 // cards
	Round   uint16
	Winner  uint8            // of the round, in its pause; or of the match
	Until   netloop.Deadline // of the turn, of the pause between two rounds, or of the end
	Players uint8            // that a match needs
	Goal    uint16           // points with which the match is won
	Turns   uint16           // that were made in this round
	Mover   uint8            // who has made the last of them
	Drew    bool             // and has drawn a card, instead of playing Top
}

// Phase is what a table is about.
type Phase uint8

// The phases of a table.
const (
	Waiting Phase = iota // for players
	Playing
	Pausing // between two rounds
	Over    // the scores are shown; who is still there then plays again
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

// SitDown asks the lobby for a place: at the table of this name, or at any that waits for players
// if it has none.
type SitDown struct {
	Table   string `net:"max=24"`
	Private bool   // opens a table that only those find who are told its code
	Watch   bool   // from a place to look on, where no hand is seen
}

// Place is where a player goes next: the ticket is for client.Client Move.
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

// GetUp asks for the way back to the lobby. In a match the seat is kept.
type GetUp struct{}

// Done says that it was.
type Done struct{}
