package arena

import (
	"github.com/netloop/netloop"
)

// Config is the arena's own configuration: flags, environment and file keys of
// the server under the name arena.
type Config struct {
	Rocks   int `name:"rocks" help:"drifting rocks, 0 to 2000" default:"100"`
	Pickups int `name:"pickups" help:"pickups waiting at a time, 0 to 100" default:"12"`
}

// Game is the arena.
type Game struct{ cfg Config }

// New makes the arena with its default configuration.
func New() *Game { return &Game{Config{Rocks: 100, Pickups: 12}} }

// Config returns the configuration to be filled in before the server opens.
func (g *Game) Config() any { return &g.cfg }

// Schema implements netloop.Game.
func (g *Game) Schema() *netloop.Schema { return Schema }

// room is the state of one room that only the server has: it is not replicated.
type room struct {
	cfg   Config
	ships *netloop.PerClient[pilot]
}

// pilot is the room's record of a client: its ship, nil for a client that watches.
type pilot struct{ ship *netloop.Object[Ship] }

// JoinParams are a client's join parameters.
type JoinParams struct {
	Name  string
	Watch bool // watches, until it sends Enter
}

// Open implements netloop.Game.
func (g *Game) Open(r *netloop.Room) error {
	if err := g.cfg.check(); err != nil {
		return err
	}
	a := &room{cfg: g.cfg, ships: netloop.NewPerClient[pilot](r)}

	r.OnStart(a.scatterRocks)
	r.OnJoin(a.join)

	Controls.Handle(r, a.control)
	r.On(netloop.FixedUpdate, "arena.ships", a.raiseShips)
	r.On(netloop.FixedUpdate, "arena.rocks", a.driftRocks)
	r.On(netloop.FixedUpdate, "arena.shots", a.endShots)

	r.On(netloop.PreUpdate, "arena.collect", a.collect)

	Enter.Handle(r, a.enter)
	Say.Handle(r, a.say)
	Standings.Handle(r, a.standings)
	r.On(netloop.Update, "arena.pickups", a.placePickups)
	return nil
}

// Bounds of Config.
const (
	maxRocks   = 2000
	maxPickups = 100
)

func (c Config) check() error {
	if c.Rocks < 0 || c.Rocks > maxRocks {
		return netloop.ConfigError("arena.rocks", c.Rocks, "use 0 to %d", maxRocks)
	}
	if c.Pickups < 0 || c.Pickups > maxPickups {
		return netloop.ConfigError("arena.pickups", c.Pickups, "use 0 to %d", maxPickups)
	}
	return nil
}
