package cards

import (
	"github.com/netloop/netloop"
	"github.com/netloop/netloop/phase"
	"github.com/netloop/netloop/seats"
)

// The declarations that the server and its clients share.
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

// These limits are above the rate of any player, and also of a bot that plays as fast as it can.
var (
	asked = netloop.Limit(5, 20)
	turns = netloop.Limit(100, 200)
)

// Listing is a table in the lobby's list, except private ones.
type Listing struct {
	Table   string   `net:"max=24"` // the name for SitDown
	Players []string `net:"max=4,each=32"`
	Taken   uint8    // seats that are taken or promised
	Seats   uint8
	Phase   Phase
	Round   uint16
}

// Table is the public state of a table. It has the height of the pile, not its cards, so that no
// client can read them.
type Table struct {
	Name    string `net:"max=24"`
	Code    string `net:"max=64"` // of a private table, for its players to share
	Phase   Phase
	Top     Card // the top card of the discards
	Suit    Suit // to follow: after an eight it differs from the suit of Top
	Turn    uint8
	Pile    uint8 // cards
	Round   uint16
	Winner  uint8       // of the round, in its pause; or of the match
	Clock   phase.State // of the turn, of the pause between two rounds, or of the end
	Players uint8       // needed for a match
	Goal    uint16      // points that win the match
	Turns   uint16      // made in this round
	Mover   uint8       // the player of the last turn
	Drew    bool        // the last turn drew a card, instead of playing Top
}

// Phase is the phase of a table.
type Phase uint8

// The phases of a table.
const (
	Waiting Phase = iota // for players
	Playing
	Pausing // between two rounds
	Over    // the scores are shown; the remaining players play again
)

// Seat is one player's seat. Only its owner can read the hand.
type Seat struct {
	Place    uint8
	Player   string `net:"max=32"`
	Hand     []Card `net:"max=52,read=owner"`
	Cards    uint8  // in the hand
	Presence seats.Presence
	Score    uint16
}

// SitDown asks the lobby for a seat: at the table of this name, or at any waiting table for an
// empty name.
type SitDown struct {
	Table   string `net:"max=24"`
	Private bool   // opens a table that only players with its code can find
	Watch   bool   // asks for a spectator's seat, which sees no hand
}

// Place is the destination of a player's move: the ticket is for client.Client Move.
type Place struct {
	Room   string `net:"max=64"`
	Ticket string `net:"max=512"`
}

// RecordQuery asks for the player's record.
type RecordQuery struct{}

// Won is the player's record.
type Won struct{ Played, Won uint32 }

// Move plays a card of the hand. With an eight its player names the suit to follow.
type Move struct {
	Card Card
	Suit Suit
}

// DrawOne draws a card, after which the turn passes.
type DrawOne struct{}

// GetUp asks for a ticket back to the lobby. During a match the seat is kept.
type GetUp struct{}

// Done confirms a turn.
type Done struct{}
