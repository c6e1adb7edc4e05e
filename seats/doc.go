// Package seats keeps the seats of players in a match. A seat belongs to a player and not to a
// connection: it outlives the client as long as the game says, and a returning player has it again.
//
//	                 Sit                       Keep has passed, in a locked match
//	client of a ──────────▶ Here ──────▶ Away ─────────────────▶ Gone ──▶ freed by Unlock
//	player                   ▲  OnDrop,    │
//	                         │  OnLeave    ├──▶ freed, if Keep has passed and no match is locked
//	                         └─────────────┘
//	               OnResume, OnJoin of the same player
//
// Each seat is an object of the game's class, owned by the client of its player, so that fields
// with the tag read=owner are the player's own. Its [Presence] is replicated: a page draws the
// players who are here, those who are away with the time for which their seats are kept, and those
// who are gone.
//
//	type Hand struct {
//		Presence seats.Presence
//		Cards    []Card `net:"max=52,read=owner"`
//	}
//
//	table := seats.New(r, seats.Config[Hand]{
//		Class:    Hands,
//		Presence: func(h *Hand) *seats.Presence { return &h.Presence },
//		Changed:  func(t *netloop.Tick, s *seats.Seat[Hand]) { ... },
//	})
//	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
//		if !c.Spectator() && table.Sit(t, c) == nil {
//			return netloop.Refuse(netloop.CodeFull, "all seats are taken")
//		}
//		return nil
//	})
//
// A player is a [netloop.Join] Subject. A client without one is a player of its own, who cannot
// come back after the client has left. A player who becomes a spectator is away.
//
// Seats end with the room: an empty room closes after [netloop.RoomSpec] CloseEmpty with its kept
// seats. A game that stores its match (package persist) stores [Seats.Players] with it, and passes
// them as [Config] Stored to the next room.
package seats
