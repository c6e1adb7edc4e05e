package cards

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/netloop/netloop"
)

// Config is the game's own configuration: flags, environment and file keys of the server under the
// name cards.
type Config struct {
	Database string        `name:"database" help:"file with tables and scores; empty keeps them in memory" default:""`
	Players  int           `name:"players" help:"players that a match needs, 2 to 4" default:"4"`
	Turn     time.Duration `name:"turn" help:"time for a turn, after which a card is drawn" default:"20s"`
}

// Game is the game.
type Game struct {
	cfg   Config
	store *store
}

// New makes the game with its default configuration.
func New() *Game { return &Game{cfg: Config{Players: MaxPlayers, Turn: 20 * time.Second}} }

// Config returns the configuration to be filled in before the server opens.
func (g *Game) Config() any { return &g.cfg }

// Schema implements netloop.Game.
func (g *Game) Schema() *netloop.Schema { return Schema }

// tableKind is the kind of rooms that are tables. The default room is the lobby.
const tableKind = "table"

// tablePrefix begins the name of every room that is a table.
const tablePrefix = "table/"

// tableSpec describes the room of a table. Nothing happens there most of the time.
func (g *Game) tableSpec(name string) netloop.RoomSpec {
	return netloop.RoomSpec{
		Name: name, Kind: tableKind, Rate: netloop.Hz(10), MaxClients: g.cfg.Players, Sleep: true,
		KeepDropped: time.Minute, CloseEmpty: 10 * time.Minute,
	}
}

// Open implements netloop.Game. The lobby is opened first, and opens the database.
func (g *Game) Open(r *netloop.Room) error {
	r.OnAdmit(admit)
	if r.Spec().Kind == tableKind {
		return g.openTable(r)
	}
	if g.cfg.Players < 2 || g.cfg.Players > MaxPlayers {
		return netloop.ConfigError("cards.players", g.cfg.Players, "use 2 to %d", MaxPlayers)
	}
	if g.cfg.Turn < time.Second {
		return netloop.ConfigError("cards.turn", g.cfg.Turn, "use 1s or more")
	}
	return g.openLobby(r)
}

// OpenFor implements netloop.Opener: whoever asks for a table by its name gets it, as it was left.
func (g *Game) OpenFor(_ context.Context, name string, _ *netloop.Join) (netloop.RoomSpec, error) {
	rest, ok := strings.CutPrefix(name, tablePrefix)
	if !ok || rest == "" || len(rest) > 24 {
		return netloop.RoomSpec{}, netloop.Refuse(netloop.CodeRoomUnknown, "tables have names like table/oak")
	}
	return g.tableSpec(name), nil
}

// maxName bounds the name of a player, in bytes.
const maxName = 32

// admit takes a player by the token of a login service, or else by the name that it says: then
// anybody may say it, which is enough among friends.
func admit(_ context.Context, j *netloop.Join) error {
	if j.Subject == "" {
		j.Subject = j.Token
	}
	if j.Subject == "" || len(j.Subject) > maxName {
		return netloop.Refuse(netloop.CodeRefused, "a player needs a name of 1 to %d bytes", maxName)
	}
	return nil
}

// said is what a player reads of an error of the rules.
func said(err error) error {
	for _, rule := range []error{errNotYours, errNotHeld, errNoFit, errNoSuit} {
		if errors.Is(err, rule) {
			return netloop.Refuse(netloop.CodeRefused, "%s", rule)
		}
	}
	return err
}
