// Package game has the rules: a lobby, and tables at which Crazy Eights is played.
//
//	game.go    the schema, the kinds of rooms, and the names of players
//	lobby.go   the list of tables, and tickets for them
//	table.go   a table: seats, turns with a time limit, and saved matches
//	rules.go   the card game, without rooms and clocks
package game

import (
	"context"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/files"
	"github.com/netloop/netloop/phase"
)

// The schema lists the objects and messages of the game, for server and clients alike.
var (
	Schema   = netloop.NewSchema("cards", 1, 0)
	Listings = netloop.NewClass[Listing](Schema, "listing") // in the lobby
	Tables   = netloop.NewClass[Table](Schema, "table")     // one at each table
	Seats    = netloop.NewClass[Seat](Schema, "seat")
	Sit      = netloop.NewCall[SitDown, Place](Schema, "sit", netloop.Limit(2, 10))
	Leave    = netloop.NewCall[GetUp, Place](Schema, "leave", netloop.Limit(2, 10))
	Turn     = netloop.NewCall[Move, Done](Schema, "turn", netloop.Limit(20, 40))
)

// Listing is a table in the lobby's list.
type Listing struct {
	Room    string   `net:"max=64"`
	Players []string `net:"max=4,each=16"`
	Seats   uint8
	Playing bool
}

// Table is what all players see.
type Table struct {
	Playing bool
	Top     Card        // of the discards
	Suit    Suit        // to follow: an eight changes it
	Turn    uint8       // the place of the player whose turn it is
	Pile    uint8       // cards that can be drawn
	Winner  string      `net:"max=16"`
	Clock   phase.State // of the turn
}

// Seat is a player's place. Only its owner gets the hand.
type Seat struct {
	Place  uint8
	Player string `net:"max=16"`
	Away   bool
	Cards  uint8
	Hand   []Card `net:"max=52,read=owner"`
}

// SitDown asks for a seat in a room, or in any with a free one.
type SitDown struct {
	Room string `net:"max=64"`
}

// GetUp asks for the way back to the lobby.
type GetUp struct{}

// Place is a ticket: the client moves with it.
type Place struct {
	Ticket string `net:"max=512"`
}

// Move plays a card, or draws one. With an eight it names the suit to follow.
type Move struct {
	Draw bool
	Card Card
	Suit Suit
}

// Done confirms a Move.
type Done struct{}

// Config are the game's own settings: flags such as --cards.players.
type Config struct {
	Players int           `name:"players" help:"players of a match, 2 to 4" default:"2"`
	Turn    time.Duration `name:"turn" help:"time for a turn, after which a card is drawn" default:"20s"`
	Saves   string        `name:"saves" help:"folder of the matches under way" default:"saves"`
}

// Game is the game.
type Game struct {
	Settings Config
	store    *files.Store
	keeper   *persist.Keeper // nil in a replay, like store
}

// New makes the game with its default settings.
func New() *Game { return &Game{Settings: Config{2, 20 * time.Second, "saves"}} }

// Config returns the settings to be filled in before the server opens.
func (g *Game) Config() any { return &g.Settings }

// Schema implements netloop.Game.
func (g *Game) Schema() *netloop.Schema { return Schema }

// OpenServer opens the store, before the first room.
func (g *Game) OpenServer(*netloop.Server) (err error) {
	if n := g.Settings.Players; n < 2 || n > 4 {
		return netloop.ConfigError("cards.players", n, "use 2 to 4")
	}
	if g.Settings.Turn < time.Second {
		return netloop.ConfigError("cards.turn", g.Settings.Turn, "use 1s or more")
	}
	g.store, err = files.Open(g.Settings.Saves)
	g.keeper = persist.New(g.store)
	return err
}

// CloseServer closes the store, after the last room.
func (g *Game) CloseServer(context.Context) error { return g.store.Close() }

// Open implements netloop.Game. The default room is the lobby, and each table is a room of its own.
func (g *Game) Open(r *netloop.Room) error {
	r.AllowMoves()
	r.OnAdmit(admit)
	if r.Spec().Kind == "table" {
		return g.openTable(r)
	}
	g.openLobby(r)
	return nil
}

// spec describes a table. It sleeps while nothing is to do, and closes when all have left.
func (g *Game) spec(name string) netloop.RoomSpec {
	return netloop.RoomSpec{Name: name, Kind: "table", Rate: netloop.Hz(20), MaxClients: g.Settings.Players, Sleep: true}
}

// OpenFor opens a table that a client asks for by name: after a restart of the server, players
// return to their match.
func (g *Game) OpenFor(_ context.Context, name string, _ *netloop.Join) (netloop.RoomSpec, error) {
	if !strings.HasPrefix(name, "table/") {
		return netloop.RoomSpec{}, netloop.Refuse(netloop.CodeRoomUnknown, "there is no such table")
	}
	return g.spec(name), nil
}

// admit takes the claimed name as the player's. Among friends that is enough; a server with
// --auth token knows the player already.
func admit(_ context.Context, j *netloop.Join) error {
	if j.Subject == "" {
		j.Subject = netloop.Truncate(strings.TrimSpace(j.Token), 16)
	}
	if j.Subject == "" {
		return netloop.Refuse(netloop.CodeRefused, "a player needs a name")
	}
	return nil
}
