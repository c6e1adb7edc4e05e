package game

import (
	"cmp"
	"slices"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/persist"
)

// Record is the result of a winner.
type Record struct {
	Name  string `net:"max=16"`
	Score int32
}

// Best is the list of the best results, the first is the best. The lobby shows and keeps it.
type Best struct {
	Records []Record `net:"max=10"`
}

// The part of the schema for records.
var (
	Bests = netloop.NewClass[Best](Schema, "best")
	// Won is from an arena to the lobby.
	Won = netloop.NewRPC[Record](Schema, "won", netloop.ServerOnly())
)

// keepRecords loads the best results before the lobby opens, and saves each change.
func (g *Game) keepRecords(r *netloop.Room) error {
	var best *netloop.Object[Best]
	saver, stored, err := persist.Keep(r, persist.Config[Best]{
		Keeper: g.keeper, Key: "best",
		Save: func() *Best { is := best.State(); return &is },
	})
	if err != nil {
		return err // The server does not start, and says why.
	}
	r.OnStart(func(t *netloop.Tick) {
		if stored == nil {
			stored = &Best{}
		}
		best = Bests.Spawn(t, *stored)
	})
	Won.HandleRoom(r, func(t *netloop.Tick, _ *netloop.Sender, won Record) error {
		list := append(slices.Clone(best.State().Records), won)
		slices.SortStableFunc(list, func(a, b Record) int { return cmp.Compare(b.Score, a.Score) })
		best.Edit(t).Records = list[:min(len(list), 10)]
		saver.Changed(t)
		return nil
	})
	return nil
}
