package persist_test

import (
	"context"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/files"
)

var (
	league = netloop.NewSchema("league", 1, 0)
	goals  = netloop.NewRPC[struct{}](league, "goal")
)

// season is the state that a room keeps.
type season struct{ Goals map[string]int }

// Season is a game whose rooms keep the goals of each player in a folder.
type Season struct {
	store  *files.Store
	keeper *persist.Keeper
}

func (*Season) Schema() *netloop.Schema { return league }

// OpenServer opens the store before the first room.
func (g *Season) OpenServer(*netloop.Server) (err error) {
	g.store, err = files.Open("seasons")
	g.keeper = persist.New(g.store)
	return err
}

// CloseServer closes it after the last one.
func (g *Season) CloseServer(context.Context) error { return g.store.Close() }

// Open loads the room's state, and saves it behind the ticks.
func (g *Season) Open(r *netloop.Room) error {
	state := season{Goals: map[string]int{}}
	saver, stored, err := persist.Keep(r, persist.Config[season]{
		Keeper: g.keeper, Key: "season", Save: func() *season { return &state },
	})
	if err != nil {
		return err
	}
	if stored != nil {
		state = *stored
	}
	goals.Handle(r, func(t *netloop.Tick, from *netloop.Client, _ struct{}) error {
		state.Goals[from.Join().Subject]++
		saver.Changed(t)
		return nil
	})
	return nil
}

// A game keeps the state of its rooms in a folder of files.
func Example() {
	server, err := netloop.New(netloop.Config{}, new(Season))
	if err != nil {
		panic(err)
	}
	_ = server.Run(context.Background())
}
