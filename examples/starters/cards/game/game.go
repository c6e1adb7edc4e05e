// Package game has the rules: a lobby that finds a table or opens one, hidden hands, turns with a
// time limit, returning players, and matches that survive a restart.
//
//	game.go    the schema, the settings, the lobby, and the store
//	table.go   a table: seats, turns, and the saved match
//	rules.go   the card game, without rooms and clocks
package game

import (
	"context"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/match"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/files"
	"github.com/netloop/netloop/phase"
	"github.com/netloop/netloop/seats"
)

// Listing is a table in the list of the lobby.
type Listing struct {
	Table   string   `net:"max=32"`
	Players []string `net:"max=4,each=32"`
	Playing bool
}

// SitDown asks for a seat at a table, or without a name at any table that waits for players.
type SitDown struct {
	Table string `net:"max=32"`
}

// Table is the public state of a table.
type Table struct {
	Playing bool
	Over    bool        // all cards are played
	Turn    uint8       // the place of the player
	Trick   []Card      `net:"max=4"`
	Clock   phase.State // of the turn, or of the end
}

// Seat is the seat of a player. Only the player can read the hand.
type Seat struct {
	Presence seats.Presence
	Player   string `net:"max=32"`
	Place    uint8
	Hand     []Card `net:"max=5,read=owner"`
	Won      uint8
}

// PlayCard plays a card.
type PlayCard struct{ Card Card }

// Done confirms a request.
type Done struct{}

// The declarations that server and clients share.
var (
	Schema   = netloop.NewSchema("cards", 1, 0)
	Listings = netloop.NewClass[Listing](Schema, "listing") // in the lobby
	Tables   = netloop.NewClass[Table](Schema, "table")     // one at each table
	Seats    = netloop.NewClass[Seat](Schema, "seat")
	Sit      = netloop.NewCall[SitDown, Done](Schema, "sit", netloop.Limit(2, 5))
	Play     = netloop.NewCall[PlayCard, Done](Schema, "play", netloop.Limit(20, 40))
	Leave    = netloop.NewCall[Done, Done](Schema, "leave", netloop.Limit(2, 5))
)

// Config are the game's own settings: flags such as --cards.players.
type Config struct {
	Players int    `name:"players" help:"players of a match, 2 to 4" default:"2"`
	Saves   string `name:"saves" help:"folder of the matches under way" default:"saves"`
}

// Game is the game.
type Game struct {
	Settings Config
	store    *files.Store
	keeper   *persist.Keeper // of the store; nil in a replay
}

// Config returns the settings to be filled in before the server opens.
func (g *Game) Config() any { return &g.Settings }

// Schema returns the declarations.
func (*Game) Schema() *netloop.Schema { return Schema }

// OpenServer opens the store before the first room.
func (g *Game) OpenServer(*netloop.Server) (err error) {
	if n := g.Settings.Players; n < 2 || n > 4 {
		return netloop.ConfigError("cards.players", n, "use 2 to 4")
	}
	g.store, err = files.Open(g.Settings.Saves)
	g.keeper = persist.New(g.store)
	return err
}

// CloseServer closes the store after the last room.
func (g *Game) CloseServer(context.Context) error { return g.store.Close() }

// table describes the room of a table. It closes when it is empty: the match is in the store.
func (g *Game) table(name string) netloop.RoomSpec {
	return netloop.RoomSpec{
		Name: "table/" + name, Kind: "table", Rate: netloop.Hz(20), MaxClients: g.Settings.Players, Sleep: true, CloseEmpty: time.Minute,
	}
}

// OpenFor opens the table that a returning client asks for.
func (g *Game) OpenFor(_ context.Context, name string, _ *netloop.Join) (netloop.RoomSpec, error) {
	table, ok := strings.CutPrefix(name, "table/")
	if !ok || table == "" || len(table) > 32 {
		return netloop.RoomSpec{}, netloop.Refuse(netloop.CodeRoomUnknown, "tables have names like table/oak")
	}
	return g.table(table), nil
}

// Open opens the lobby, which is the default room, and each table.
func (g *Game) Open(r *netloop.Room) error {
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		if j.Subject == "" { // Without --auth token a name is enough.
			j.Subject = j.Token
		}
		if j.Subject == "" || len(j.Subject) > 32 {
			return netloop.Refuse(netloop.CodeRefused, "a player needs a name")
		}
		return nil
	})
	if r.Spec().Kind == "table" {
		return g.openTable(r)
	}
	g.openLobby(r)
	return nil
}

// openLobby lists the tables, and sends players to them.
func (g *Game) openLobby(r *netloop.Room) {
	tables := match.NewRooms(match.Config[Listing]{
		Spec:  g.table(""),
		Where: func(l netloop.RoomListing[Listing]) bool { return !l.Info.Playing },
	})
	match.List(r, Listings, netloop.RoomFilter[Listing]{Kind: "table"}, func(s *Listing, l netloop.RoomListing[Listing]) { *s = l.Info })
	Sit.HandleLater(r, func(t *netloop.Tick, from *netloop.Client, q SitDown, reply netloop.Reply[Done]) {
		then := func(t *netloop.Tick, p match.Place, err error) {
			reply.Send(t, Done{}, err)
			if c, here := t.Client(from.ID()); here && err == nil {
				c.Move(t, p.Tickets[0])
			}
		}
		if q.Table == "" {
			tables.Join(t, from.Join().Subject, netloop.Reservation{}, then)
			return
		}
		match.Open(t, g.table(q.Table), netloop.Reservation{}, then)
	})
}
