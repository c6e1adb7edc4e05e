// Command tournament serves the arena as a league of duels: a client that joins waits in the lobby,
// duels a player with about as many points, and returns to the lobby, which stores the points. The
// arena's page shows the expected wait, and the clock and the result of a duel: open it twice.
//
//	go run ./examples/arena/tournament run --web 127.0.0.1:8000
//	go run ./cmd/loadclient run --clients 20
//
// The flow:
//
//	main.go   the lobby: match.Queue finds a pair ──▶ match.Open opens its room ──▶ Client.Move
//	duel.go   the room: the arena, with seats for two players, and phase.Timer
//	              │ Result
//	              ▼
//	main.go   the lobby: a point for the winner ──▶ persist.Saver
package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/match"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/files"
)

// Config are the settings of the tournament.
type Config struct {
	Duel  time.Duration `name:"duel" help:"length of a duel, at least 1s" default:"1m"`
	Saves string        `name:"saves" help:"folder for the points" default:"points"`
}

// Game is the tournament.
type Game struct {
	arena  *arena.Game
	cfg    Config
	store  *files.Store
	keeper *persist.Keeper // of the store; nil in a replay
}

// Config returns the settings to be filled in before the server opens.
func (g *Game) Config() any { return &g.cfg }

// Web returns the arena's page.
func (g *Game) Web() fs.FS { return g.arena.Web() }

// Schema returns the declarations: those of the arena, and those of this package.
func (*Game) Schema() *netloop.Schema { return arena.Schema }

// OpenServer opens the store before the first room.
func (g *Game) OpenServer(*netloop.Server) (err error) {
	if g.cfg.Duel < time.Second {
		return netloop.ConfigError("arena.duel", g.cfg.Duel, "use 1s or more")
	}
	g.store, err = files.Open(g.cfg.Saves)
	g.keeper = persist.New(g.store)
	return err
}

// CloseServer closes the store after the last room.
func (g *Game) CloseServer(context.Context) error { return g.store.Close() }

// Open opens the lobby, which is the default room, and each duel.
func (g *Game) Open(r *netloop.Room) error {
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		var p arena.JoinParams
		if j.Subject == "" && j.Params(&p) == nil { // Among friends a name is enough.
			j.Subject = netloop.Truncate(p.Name, maxName)
		}
		if j.Subject == "" && !p.Watch {
			return netloop.Refuse(netloop.CodeRefused, "a player of the tournament needs a name")
		}
		return nil
	})
	if r.Spec().Kind == duelKind {
		return g.openDuel(r)
	}
	return g.openLobby(r)
}

const maxName = 16 // bytes

// Record is a player's result of all duels.
type Record struct{ Points, Played int }

// lobby is the state of the lobby.
type lobby struct {
	records map[string]Record // by player
	saver   *persist.Saver[map[string]Record]
	queue   *match.Queue[int]
	opened  int // duels
}

// openLobby loads the records, and sends pairs of players to duels.
func (g *Game) openLobby(r *netloop.Room) error {
	l := &lobby{records: map[string]Record{}}
	saver, stored, err := persist.Keep(r, persist.Config[map[string]Record]{
		Keeper: g.keeper, Key: "records", Save: func() *map[string]Record { return &l.records },
	})
	if err != nil {
		return err
	}
	if l.saver = saver; stored != nil {
		l.records = *stored
	}
	l.queue = match.NewQueue(r, match.QueueConfig[int]{
		Teams: 2, TeamSize: 1,
		Distance:  func(a, b int) float64 { return math.Abs(float64(a - b)) },
		Tolerance: func(waited time.Duration) float64 { return 1 + waited.Seconds()/5 },
		Found:     l.found,
	})
	r.OnJoin(l.join)
	Result.HandleRoom(r, func(t *netloop.Tick, _ *netloop.Sender, o Outcome) error { l.count(t, o); return nil })
	arena.Standings.Handle(r, l.standings)
	return nil
}

// join shows a client its place in the lobby, and puts it into the queue, unless it only watches.
func (l *lobby) join(t *netloop.Tick, c *netloop.Client) error {
	var p arena.JoinParams
	err := c.Join().Params(&p)
	is := Waiting{Queued: err == nil && !p.Watch && !c.Spectator()}
	if expected := l.queue.Expected(); is.Queued && expected > 0 {
		is.Until = t.In(expected)
	}
	Waits.Spawn(t, is, netloop.OwnedBy(c.ID()), netloop.VisibleTo(netloop.To(c.ID())))
	if is.Queued {
		return l.wait(t, c)
	}
	return nil
}

// wait puts a player into the queue.
func (l *lobby) wait(t *netloop.Tick, c *netloop.Client) error {
	return l.queue.Add(t, match.Party[int]{Players: []netloop.ClientID{c.ID()}, Properties: l.records[c.Join().Subject].Points})
}

// found moves a pair to a room of its own. If none opens, they wait again.
func (l *lobby) found(t *netloop.Tick, m match.Match[int]) {
	l.opened++
	players := m.Players()
	match.Open(t, duelSpec(fmt.Sprintf("duel/%d", l.opened)), netloop.Reservation{Seats: len(players)}, func(t *netloop.Tick, p match.Place, err error) {
		for i, id := range players {
			c, here := t.Client(id)
			switch {
			case !here: // The other player waits in the duel until startTime has passed.
			case err == nil:
				c.Move(t, p.Tickets[i])
			default:
				t.AfterFunc(time.Second, func(t *netloop.Tick) {
					if c, here := t.Client(id); here {
						_ = l.wait(t, c) // The queue has room for the players of a lobby.
					}
				})
			}
		}
	})
}

// count notes the result of a duel.
func (l *lobby) count(t *netloop.Tick, o Outcome) {
	for _, player := range o.Players {
		is := l.records[player]
		if is.Played++; player == o.Winner {
			is.Points++
		}
		l.records[player] = is
	}
	l.saver.Changed(t)
}

// standings answers with the best players.
func (l *lobby) standings(_ *netloop.Tick, _ *netloop.Client, q arena.StandingsQuery) (arena.StandingsReply, error) {
	best := slices.SortedFunc(maps.Keys(l.records), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.records[b].Points, l.records[a].Points), cmp.Compare(l.records[a].Played, l.records[b].Played), cmp.Compare(a, b))
	})
	var reply arena.StandingsReply
	for _, player := range best[:min(len(best), int(q.Top), 10)] {
		reply.Rows = append(reply.Rows, arena.Standing{Name: player, Score: int32(l.records[player].Points)})
	}
	return reply, nil
}

// duelSpec describes the room of a duel.
func duelSpec(name string) netloop.RoomSpec {
	return netloop.RoomSpec{Name: name, Kind: duelKind, MaxClients: 2, CloseEmpty: returnTime}
}

// OpenFor opens a duel that a client asks for: after a crash of the server its players begin anew.
func (*Game) OpenFor(_ context.Context, name string, _ *netloop.Join) (netloop.RoomSpec, error) {
	if !strings.HasPrefix(name, "duel/") {
		return netloop.RoomSpec{}, netloop.Refuse(netloop.CodeRoomUnknown, "duels have names like duel/1")
	}
	return duelSpec(name), nil
}

func main() { app.Main(&Game{arena: arena.New()}) }
