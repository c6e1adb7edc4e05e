package room

import (
	"context"

	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room/seats"
	"github.com/netloop/netloop/internal/transport"
)

// Places keeps each player in one room of a cluster. Any goroutine may call it. A player has a
// place from Claim until as many calls of Free:
//
//	admission ──▶ Claim ──▶ a seat ─────────────────▶ Free, when the seat ends
//	                │         resumed ──▶ Regain       └── Keep before, if the client moves to
//	                └─▶ no seat ──▶ Free                   another room of this server
type Places interface {
	// Claim makes the room the place of a player, and waits for it. The number is that of the move
	// by which the client comes from another server, or 0. The error is a refusal.
	Claim(ctx context.Context, subject string, number uint64) error
	// Regain claims the place of a seat again, if another server has it for a client that was on
	// its way there. The error is a refusal.
	Regain(ctx context.Context, subject string) error
	// Keep keeps the place of a player, whose client moves to another room of this server, until
	// the next Claim.
	Keep(subject string)
	// Free ends a Claim. It does not wait.
	Free(subject string)
}

// claimPlace makes the room the place of the player of a request, before it has a seat. Spectators
// have no place.
func (a *Admission) claimPlace(ctx context.Context, q *seats.Request, known *Identity) error {
	if a.cfg.Places == nil || q.Who.Subject == "" || q.Who.Spectator {
		return nil
	}
	if err := a.seats.Refuses(q); err != nil {
		return err
	}
	number := uint64(0)
	if known != nil && known.From.Server != "" {
		number = known.From.Number
	}
	if err := a.cfg.Places.Claim(ctx, q.Who.Subject, number); err != nil {
		return err
	}
	q.Placed = true
	return nil
}

// freePlace ends the place of a request that got no seat.
func (a *Admission) freePlace(q *seats.Request) {
	if q.Placed {
		a.cfg.Places.Free(q.Who.Subject)
	}
}

// regainPlace claims the place of a resumed seat again. After an error the connection has no seat.
func (a *Admission) regainPlace(ctx context.Context, at *seats.Seat) error {
	if a.cfg.Places == nil {
		return nil
	}
	subject := a.seats.Player(at)
	if subject == "" {
		return nil
	}
	err := a.cfg.Places.Regain(ctx, subject)
	if err != nil {
		a.seats.Entered(at)
	}
	return err
}

// keepPlace keeps the place of a client that moves to another room of this server.
func (cs *connections) keepPlace(c *Client) {
	if p := cs.cfg.Places; p != nil && c.join.Subject != "" {
		p.Keep(c.join.Subject)
	}
}

// KickPlayer kicks the clients of a player with a place in the room, and waits for a tick. Clients
// that have not entered the room yet are not kicked.
func (c *Commands) KickPlayer(ctx context.Context, subject string, code transport.Code, text string) {
	for _, id := range c.room.Admission.seats.Of(subject) {
		// After an error the client is not in the room, or no tick runs. The caller tries again.
		_ = c.Execute(ctx, recording.Command{Kind: recording.Kick, Client: id, Code: uint32(code), Text: text})
	}
}
