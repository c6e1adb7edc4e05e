package membership

import (
	"context"

	"github.com/netloop/netloop/cluster"
)

// playerPrefix begins the names of players. A player's name has a digest of its subject, so that
// the store has no names of persons.
const playerPrefix = "player/"

// ClaimPlayer takes the name of a player until ReleasePlayer. The error is one of package cluster.
func (m *Member) ClaimPlayer(ctx context.Context, player string) (cluster.Epoch, error) {
	if !m.joined.Load() {
		return 0, cluster.ErrBusy
	}
	return m.cfg.Via.Claim(ctx, playerPrefix+player, 0)
}

// ReleasePlayer gives the name of a player back. The error is [cluster.ErrBusy] if the store has
// not answered: the name is free later.
func (m *Member) ReleasePlayer(ctx context.Context, player string, e cluster.Epoch) error {
	return m.cfg.Via.Release(ctx, playerPrefix+player, e)
}

// PlayerServer returns the id of the server that has the name of a player. The error is one of
// package cluster.
func (m *Member) PlayerServer(ctx context.Context, player string) (server string, err error) {
	if !m.joined.Load() {
		return "", cluster.ErrBusy
	}
	h, err := m.cfg.Via.Find(ctx, playerPrefix+player)
	return h.Server, err
}
