package cards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
)

// Config is the game's own configuration: flags, environment and file keys of the server under the
// name cards.
type Config struct {
	Database string        `name:"database" help:"file with tables and scores; empty keeps them in memory" default:""`
	Players  int           `name:"players" help:"players that a match needs, 2 to 4" default:"4"`
	Goal     int           `name:"goal" help:"points with which a match is won, 1 to 1000" default:"100"`
	Turn     time.Duration `name:"turn" help:"time for a turn, after which a card is drawn" default:"20s"`
	Pause    time.Duration `name:"pause" help:"time to look at the end of a round" default:"5s"`
	Rate     int           `name:"rate" help:"ticks of a table in a second, 1 to 1000; nothing to do costs none" default:"20"`
	Delay    time.Duration `name:"watch-delay" help:"how long ago what watchers see has happened, 0s to 5m" default:"0s"`
	Keep     time.Duration `name:"keep" help:"how long a match is kept that nobody goes on with, 1h or more" default:"720h"`
	Bots     int           `name:"bots" help:"players of the server's own, who sit down with those who wait, 0 to 100" default:"0"`
}

// check names the first key that cannot be used.
func (c *Config) check() error {
	for _, k := range []struct {
		key             string
		is, least, most int
	}{
		{"cards.players", c.Players, 2, MaxPlayers},
		{"cards.goal", c.Goal, 1, 1000},
		{"cards.rate", c.Rate, 1, 1000},
		{"cards.bots", c.Bots, 0, 100},
	} {
		if k.is < k.least || k.is > k.most {
			return netloop.ConfigError(k.key, k.is, "use %d to %d", k.least, k.most)
		}
	}
	if c.Turn < time.Second {
		return netloop.ConfigError("cards.turn", c.Turn, "use 1s or more")
	}
	if c.Pause < 0 || c.Pause > time.Minute {
		return netloop.ConfigError("cards.pause", c.Pause, "use 0s to 1m")
	}
	if c.Keep < time.Hour {
		return netloop.ConfigError("cards.keep", c.Keep, "use 1h or more")
	}
	if c.Delay < 0 || c.Delay > 5*time.Minute {
		return netloop.ConfigError("cards.watch-delay", c.Delay, "use 0s to 5m")
	}
	return nil
}

// Game is the game.
type Game struct {
	cfg    Config
	host   Host
	store  *store          // nil in a replay, as is keeper
	keeper *persist.Keeper // of the store
}

// Host runs n players of the server itself until ctx ends, and returns when all have left.
type Host func(ctx context.Context, s *netloop.Server, n int)

// New makes the game with its default configuration. The host runs the configured number of bots;
// without a host there are none.
func New(host Host) *Game {
	return &Game{host: host, cfg: Config{Players: MaxPlayers, Goal: 100, Turn: 20 * time.Second, Pause: 5 * time.Second, Rate: 20, Keep: 720 * time.Hour}}
}

// Config returns the configuration to be filled in before the server opens.
func (g *Game) Config() any { return &g.cfg }

// Schema implements netloop.Game.
func (g *Game) Schema() *netloop.Schema { return Schema }

// RoomDefaults implements netloop.RoomDefaulter: the lobby is large, and has little work.
func (g *Game) RoomDefaults() netloop.RoomSpec {
	return netloop.RoomSpec{Rate: netloop.Hz(20), MaxClients: 2000, Sleep: true}
}

// tableKind is the kind of rooms that are tables. The default room is the lobby.
const tableKind = "table"

// tablePrefix begins the name of every room that is a table.
const tablePrefix = "table/"

// maxWatching is the most spectators of a table.
const maxWatching = 32

// tableSpec describes the room of a table. The room is idle most of the time. It closes soon after
// its last player has left: a match under way is in the database, and continues when a player asks
// for the table again.
func (g *Game) tableSpec(name string) netloop.RoomSpec {
	return netloop.RoomSpec{
		Name: tablePrefix + name, Kind: tableKind, Rate: netloop.Hz(uint64(g.cfg.Rate)), MaxClients: g.cfg.Players, MaxSpectators: maxWatching, SpectatorDelay: g.cfg.Delay,
		Sleep: true, KeepDropped: time.Minute, CloseEmpty: 2 * time.Minute,
	}
}

// OpenServer implements netloop.ServerOpener: it opens the database.
func (g *Game) OpenServer(*netloop.Server) (err error) {
	if err = g.cfg.check(); err != nil {
		return err
	}
	if g.store, err = openStore(g.cfg.Database); err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	g.keeper = persist.New(g.store)
	return nil
}

// CloseServer implements netloop.ServerOpener.
func (g *Game) CloseServer(context.Context) error { return g.store.db.Close() }

// Open implements netloop.Game. The lobby is opened first.
func (g *Game) Open(r *netloop.Room) error {
	r.OnAdmit(admit)
	r.AllowMoves()
	if r.Spec().Kind == tableKind {
		return g.openTable(r)
	}
	return g.openLobby(r)
}

// OpenFor implements netloop.Opener: it opens a table by its name, with its saved match. So players
// return to their match after a restart of the server. A private table is public from then on: its
// match keeps other players away.
func (g *Game) OpenFor(_ context.Context, name string, _ *netloop.Join) (netloop.RoomSpec, error) {
	table, ok := strings.CutPrefix(name, tablePrefix)
	if !ok || !named(table, maxTable) {
		return netloop.RoomSpec{}, netloop.Refuse(netloop.CodeRoomUnknown, "tables have names like table/oak")
	}
	return g.tableSpec(table), nil
}

// The longest names, in bytes: of a player, and of a table without its prefix.
const (
	maxName  = 32
	maxTable = 24
)

// named reports whether a text can be a name: it is shown to other players, in terminals too.
func named(text string, most int) bool {
	return text != "" && len(text) <= most && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// admit identifies a player by the token of a login service, or else by the claimed name: then any
// player may claim it, which is enough among friends.
func admit(_ context.Context, j *netloop.Join) error {
	j.Subject = cmp.Or(j.Subject, j.Token)
	if !named(j.Subject, maxName) {
		return netloop.Refuse(netloop.CodeRefused, "a player needs a name of 1 to %d letters", maxName)
	}
	return nil
}

// said turns an error of the rules into a refusal with a text for the player. It returns other
// errors unchanged.
func said(err error) error {
	for _, rule := range []error{errNotYours, errNotHeld, errNoFit, errNoSuit} {
		if errors.Is(err, rule) {
			return netloop.Refuse(netloop.CodeRefused, "%s", rule)
		}
	}
	return err
}
