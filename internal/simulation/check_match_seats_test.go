package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/seats"
)

// hand is the object of a player's seat in a match.
type hand struct {
	Presence seats.Presence
	Card     uint16 `net:"read=owner"`
}

// matchSeats are the seats of the players of a room, with a record of the game's own. They check
// package seats. The documents: the comments of seats.Config and seats.Seats, and ADR 65.
//
//   - A player has at most one seat. It is here exactly while a client of the player is connected,
//     and belongs to that client: also after a return, a take-over, a move and a kick.
//   - Without a client the seat is away, for the time of the room or of the match, and not longer.
//     Then it is free, or gone if a match is locked.
//   - A player gets a free seat unless a match is locked, and a spectator gets none.
//   - Each change is told once. All clients have the same status.
//   - The seats of a stored match are those of the next room of the name.
type matchSeats struct {
	h      *gameRoom
	all    *seats.Seats[hand]
	of     map[*seats.Seat[hand]]*sitting
	most   int
	keep   time.Duration // now
	locked bool
	forced bool   // the game frees seats, or changes the time
	sitter string // the player who gets a seat

	dropped map[netloop.ClientID]bool

	changed time.Duration // game time of the last change
	cards   uint16
}

// sitting is the game's own record of a seat.
type sitting struct {
	player string
	status seats.Status
	away   time.Duration // game time since which the player is away
}

// storedMatch is the result of a fetch.
type storedMatch struct {
	Players []string `net:"max=64,each=64"`
}

// loadSeats returns the players of a stored match of the room's name.
func (h *gameRoom) loadSeats(r *netloop.Room) (storedMatch, error) {
	if !h.rules.Seats {
		return storedMatch{}, nil
	}
	return netloop.Fetch(r, func(context.Context) (storedMatch, error) {
		defer h.p.enter()()
		return storedMatch{h.p.stored[h.key.name]}, nil
	})
}

// openSeats makes the seats, before the game registers its own hooks.
func (h *gameRoom) openSeats(r *netloop.Room, old storedMatch) {
	if !h.rules.Seats {
		return
	}
	m := &matchSeats{h: h, of: map[*seats.Seat[hand]]*sitting{}, dropped: map[netloop.ClientID]bool{}, most: int(h.rules.SeatsMost), keep: time.Duration(h.rules.SeatKeep) * time.Second}
	h.seats = m
	m.all = seats.New(r, seats.Config[hand]{
		Class: h.d.hands, Presence: func(s *hand) *seats.Presence { return &s.Presence },
		Most: m.most, Keep: m.keep, Stored: old.Players, Changed: m.told,
	})
	if len(old.Players) > 0 {
		m.locked, m.keep = true, -1
	}
	if m.most == 0 {
		m.most = r.Spec().MaxClients
	}
	r.OnStart(func(*netloop.Tick) {
		defer h.enter()()
		m.restored(old.Players)
	})
	r.On(netloop.Update, "simulation.seats", func(t *netloop.Tick) {
		if t.Number()%16 == 0 {
			m.look(t)
		}
	})
}

// restored compares the first seats with those of a stored match.
func (m *matchSeats) restored(players []string) {
	if !slices.Equal(m.all.Players(), players) {
		m.fail("the seats of %q are of %q", players, m.all.Players())
	}
	for _, s := range m.all.All() {
		m.of[s] = &sitting{player: s.Player(), status: s.Status()}
	}
}

// store keeps the players of a locked match for the next room.
func (m *matchSeats) store() {
	var players []string
	for _, s := range m.all.All() {
		if m.locked && s.Status() != seats.Gone && s.Player() != "" {
			players = append(players, s.Player())
		}
	}
	m.h.p.stored[m.h.key.name] = players
}

func (m *matchSeats) fail(format string, a ...any) {
	m.h.p.fail("match seats", "room %q: %s", m.h.key.name, fmt.Sprintf(format, a...))
}

// playerOf names a player, also one without a subject.
func playerOf(c *netloop.Client) string {
	if c.Join().Subject == "" {
		return fmt.Sprint("client ", c.ID())
	}
	return c.Join().Subject
}

// told is called for each change of a seat.
func (m *matchSeats) told(t *netloop.Tick, s *seats.Seat[hand]) {
	defer m.h.enter()()
	one, known := m.of[s]
	if !known {
		one = &sitting{player: m.sitter, status: seats.Gone}
		m.of[s] = one
	}
	now, free := s.Status(), !slices.Contains(m.all.All(), s)
	gone, named := t.GameTime()-one.away, s.Player() != ""
	switch {
	case !known && m.sitter == "":
		m.fail("%q has a seat without a call of Sit", s.Player())
	case known && now == one.status && !(free && now == seats.Gone), free && now != seats.Gone, free == s.Object.Alive():
		m.fail("%s is %v, after %v; the seat is free: %v, and its object exists: %v", one.player, now, one.status, free, s.Object.Alive())
	case now == seats.Gone && !m.forced && named && (m.keep < 0 || gone < m.keep):
		m.fail("%s is gone after %v, and may return for %v", one.player, gone, m.keep)
	}
	if now == seats.Away && one.status != seats.Away {
		one.away = t.GameTime()
	}
	one.status, m.changed = now, t.GameTime()
	if free {
		delete(m.of, s)
	}
	if now == seats.Here {
		m.cards++
		s.Object.Edit(t).Card = m.cards
	}
	if f := m.h.p.rooms.of(m.h.key); f != nil && now == seats.Here {
		f.unseated = m.h.armed["seat"]
	}
	m.h.panics("seat")
}

// living returns the seat that a player has, or nil.
func (m *matchSeats) living(player string) *seats.Seat[hand] {
	for _, s := range m.all.All() {
		if one := m.of[s]; one != nil && one.player == player && one.status != seats.Gone {
			return s
		}
	}
	return nil
}

// entered is called once a client has joined or resumed.
func (m *matchSeats) entered(c *netloop.Client) {
	delete(m.dropped, c.ID())
	if c.Spectator() {
		return
	}
	s := m.all.Of(c)
	if had := m.living(playerOf(c)); had != s {
		m.fail("%s returns, and has another seat", playerOf(c))
	}
	if s != nil && (!s.Here() || s.Object.Owner() != c.ID()) {
		m.fail("%s returns as client %d, and is %v; the seat belongs to %d", playerOf(c), c.ID(), s.Status(), s.Object.Owner())
	}
}

// sit gives the player of a client a seat.
func (m *matchSeats) sit(t *netloop.Tick, c *netloop.Client) {
	if !c.Connected() && !m.dropped[c.ID()] {
		return // It is kicked.
	}
	player, free := playerOf(c), !m.locked && len(m.all.All()) < m.most
	had := m.living(player)
	m.sitter = player
	s := m.all.Sit(t, c)
	m.sitter = ""
	switch {
	case c.Spectator() && s != nil, !c.Spectator() && had != nil && s != had, !c.Spectator() && had == nil && free != (s != nil):
		m.fail("%s, a spectator: %v, has a seat: %v, and gets one: %v; a seat is free: %v", player, c.Spectator(), had != nil, s != nil, free)
	}
}

// act lets the game free a seat, or begin or end a match.
func (m *matchSeats) act(t *netloop.Tick, o command) {
	m.forced = true
	defer func() { m.forced = false }()
	all := m.all.All()
	switch {
	case o.N%4 == 0 && len(all) > 0:
		m.all.Free(t, all[o.N>>16%uint64(len(all))])
	case m.locked:
		m.locked, m.keep = false, time.Duration(m.h.rules.SeatKeep)*time.Second
		m.all.Unlock(t)
	default:
		keep := []time.Duration{-1, 0, time.Second, 4 * time.Second}[o.N>>8%4]
		m.locked, m.keep = true, keep
		m.all.Lock(t, keep)
	}
}

// look compares the seats with the clients of the room.
func (m *matchSeats) look(t *netloop.Tick) {
	of, held := map[string]*clientsOf{}, map[string]bool{}
	for c := range t.Clients() {
		if c.Spectator() || c.SpectatorFeed() {
			continue
		}
		one := of[playerOf(c)]
		if one == nil {
			one = &clientsOf{}
			of[playerOf(c)] = one
		}
		if !m.dropped[c.ID()] {
			one.present = append(one.present, c.ID())
		}
		one.connected = one.connected || c.Connected()
		one.some = true
	}
	all := m.all.All()
	if n := m.h.d.hands.Len(t); n != len(all) {
		m.fail("%d seats have %d objects", len(all), n)
	}
	for _, s := range all {
		one := m.of[s]
		if one == nil || one.status != s.Status() || s.Object.State().Presence.Status != s.Status() {
			m.fail("%q is %v, and %v for clients, of which nothing was told", s.Player(), s.Status(), s.Object.State().Presence.Status)
			continue
		}
		if s.Status() != seats.Gone && held[one.player] {
			m.fail("%s has two seats", one.player)
		}
		held[one.player] = held[one.player] || s.Status() != seats.Gone
		clients := of[one.player]
		if clients == nil {
			clients = &clientsOf{}
		}
		m.compare(t, s, one, clients)
	}
	if len(m.of) != len(all) {
		m.fail("%d seats are known, and %d exist", len(m.of), len(all))
	}
}

// clientsOf are the clients of a player.
type clientsOf struct {
	present   []netloop.ClientID // those that are not dropped; some of them may be kicked
	connected bool
	some      bool
}

// compare compares a seat with the clients of its player.
func (m *matchSeats) compare(t *netloop.Tick, s *seats.Seat[hand], one *sitting, clients *clientsOf) {
	owner, left := s.Object.Owner(), s.Object.State().Presence.Until.Left(t)
	spec := m.h.room.Spec()
	wrong, away := false, t.GameTime()-one.away
	switch s.Status() {
	case seats.Here:
		wrong = !slices.Contains(clients.present, owner) || left > 0
	case seats.Away:
		wrong = clients.connected || !clients.some && owner != 0 || left > max(m.keep, spec.KeepDropped, 0) ||
			!clients.some && m.keep >= 0 && away > m.keep+2*spec.Rate.Period()
	case seats.Gone:
		wrong = !m.locked || owner != 0
	}
	if wrong {
		m.fail("%s is %v since %v with the clients %+v, and may return for %v, locked %v; the seat belongs to %d, for %v", one.player, s.Status(), away, *clients, m.keep, m.locked, owner, left)
	}
}

// unsettled reports whether clients may not have the last change yet.
func (m *matchSeats) unsettled(t *netloop.Tick) bool {
	spec := m.h.room.Spec()
	return t.GameTime()-m.changed < 3*time.Second+8*time.Duration(spec.SendEvery)*spec.Rate.Period()
}

// items returns the seats as items.
func (m *matchSeats) items() (all []item) {
	for _, s := range m.all.All() {
		all = append(all, &typed[hand]{&m.h.kinds.hands, s.Object, everyone})
	}
	return all
}

// restSeats looks at the seats of all rooms.
func (r *rooms) restSeats() {
	r.inTicks(func(_ string, f *roomFacts, t *netloop.Tick) {
		if m := f.gameRoom.seats; m != nil {
			m.look(t)
		}
	})
}
