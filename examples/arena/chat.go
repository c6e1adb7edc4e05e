package arena

import (
	"cmp"
	"slices"

	"github.com/netloop/netloop"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
)

const maxChat = 120 // bytes of one line

// say sends a line of chat to all clients.
func (a *room) say(t *netloop.Tick, from *netloop.Client, in *arenav1.Say) error {
	if len(in.Text) == 0 || len(in.Text) > maxChat {
		return netloop.Refuse(netloop.CodeRefused, "a line of chat has 1 to %d bytes", maxChat)
	}
	ship := a.ships.Of(from).ship
	if ship == nil {
		return netloop.Refuse(netloop.CodeRefused, "whoever looks on has no voice: enter first")
	}
	Said.Send(t, netloop.Everyone(), &arenav1.Said{Name: ship.State().Name, Text: in.Text})
	return nil
}

// standings answers with the best players.
func (a *room) standings(t *netloop.Tick, _ *netloop.Client, q StandingsQuery) (StandingsReply, error) {
	var all []Standing
	for o := range Ships.All(t) {
		s := o.State()
		all = append(all, Standing{Name: s.Name, Score: s.Score})
	}
	slices.SortStableFunc(all, func(a, b Standing) int { return cmp.Compare(b.Score, a.Score) })
	return StandingsReply{Rows: all[:min(len(all), int(q.Top), 10)]}, nil
}
