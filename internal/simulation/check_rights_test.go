package simulation

import (
	"time"

	"github.com/netloop/netloop"
)

// rights_ checks that clients have no access beyond their rights. The documents: SECURITY.md,
// "Permission" in ARCHITECTURE.md, and the comments of netloop.Auth, Ticket and Class.Reads.
//
//   - A bot is in a room only with a token that is genuine, valid at its time, for that room
//     unless a ticket brings it, and used by no other bot.
//   - A reservation admits as many clients as it has tickets, into its room, and to watch if it is
//     for spectators.
//   - A private room has only bots with a ticket, with its code, or for which it was opened.
//   - No client reads a field of its owner alone, of a group or guild that it was never in.
type rights_ struct {
	p      *play
	events map[int]*Event // by bot
	used   map[string]int // bots by token
	groups map[reader]bool

	reservations map[uint64]*reservation // by their Params
}

// reservation are the facts about the tickets that were issued at once.
type reservation struct {
	room      roomKey
	seats     int
	spectates bool
	inside    int // clients
}

// reader is a right that a client has had.
type reader struct {
	key  roomKey
	id   netloop.ClientID
	what int // a side, or guildRight
}

const guildRight = 2

func (r *rights_) granted(g *bot, e *Event) {
	if r.events == nil {
		r.events, r.used = map[int]*Event{}, map[string]int{}
	}
	r.events[g.n] = e
}

// reserved notes a reservation.
func (r *rights_) reserved(room string, v netloop.Reservation) {
	if r.reservations == nil {
		r.reservations = map[uint64]*reservation{}
	}
	r.reservations[v.Params.(uint64)] = &reservation{room: r.p.rooms.current(room), seats: max(v.Seats, 1), spectates: v.Spectator}
}

// of returns the reservation of the ticket with which a client has joined, or nil.
func (r *rights_) of(c *netloop.Client) *reservation {
	var n uint64
	if has, err := c.Join().Reservation(&n); err != nil || !has {
		return nil
	}
	return r.reservations[n]
}

// admitted counts the clients of a reservation.
func (r *rights_) admitted(key roomKey, c *netloop.Client) {
	v := r.of(c)
	if v == nil {
		return
	}
	if v.inside++; v.inside > v.seats || v.room != key || v.spectates != c.Spectator() {
		r.p.fail("rights", "client %d, spectator %v, of room %q is the %d. by %d tickets for %q, spectators %v", c.ID(), c.Spectator(), key.name, v.inside, v.seats, v.room.name, v.spectates)
	}
}

func (r *rights_) left(c *netloop.Client) {
	if v := r.of(c); v != nil {
		v.inside--
	}
}

func (r *rights_) joined(key roomKey, c *netloop.Client, bot int) {
	r.admitted(key, c)
	e := r.events[bot]
	if e == nil {
		return // A replay.
	}
	join := c.Join()
	if r.p.story.Server.Auth {
		switch kind := e.Join.Token; {
		case kind == "forged" || kind == "expired":
			r.p.fail("rights", "bot %d is in room %q with a token that is %s", bot, key.name, kind)
		case join.Ticket: // It is issued by the server, for its room.
		case kind == "own" && e.Room == "": // It is for all rooms.
		case kind == "elsewhere" && key.name != elsewhere, kind == "own" && key.name != e.Room:
			r.p.fail("rights", "bot %d is in room %q with a token for another room", bot, key.name)
		}
		if by, ok := r.used[join.Token]; ok && by != bot {
			r.p.fail("rights", "bot %d is in room %q with the token of bot %d", bot, key.name, by)
		}
		r.used[join.Token] = bot
	}
	f := r.p.rooms.of(key)
	if f == nil || !f.spec.Private || join.Ticket || e.Join.Code || r.p.bots[bot].codes {
		return
	}
	if left, was := f.left[join.Subject]; was && r.p.rooms.now()-left <= time.Second+8*f.spec.Rate.Period() {
		return // It was admitted as the same player, in another role.
	}
	for _, s := range f.in {
		if s.subject == join.Subject && s.subject != "" && s.bot != bot {
			return
		}
	}
	r.p.fail("rights", "bot %d is in the private room %q without a ticket or the code", bot, key.name)
}

// allow notes a right of a client.
func (r *rights_) allow(key roomKey, id netloop.ClientID, what int) {
	if r.groups == nil {
		r.groups = map[reader]bool{}
	}
	r.groups[reader{key, id, what}] = true
	delete(r.p.secrets.lost, reader{key, id, what})
}

// deny notes that a client has lost a right.
func (r *rights_) deny(key roomKey, id netloop.ClientID, what int) {
	if r.p.w != nil {
		r.p.secrets.lost[reader{key, id, what}] = r.p.w.Now()
	}
}

// saw checks a vault that a bot has.
func (r *rights_) saw(g *bot, owner netloop.ClientID, s vault) {
	key, id := r.p.rooms.current(g.c.Room()), g.c.ID()
	f := r.p.rooms.of(key)
	if f == nil || f.spec.SpectatorDelay > 0 || f.in[id] == nil || f.in[id].bot != g.n {
		return // It has the rights of the camera, or the room is another after a crash.
	}
	switch {
	case s.Gold != 0 && owner != id:
		r.p.fail("rights", "bot %d reads the gold of client %d", g.n, owner)
	case s.Plan != "" && !r.groups[reader{key, id, int(s.Side)}] && !r.groups[reader{key, id, 1 - int(s.Side)}]:
		r.p.fail("rights", "bot %d reads %q of a side that it was never on", g.n, s.Plan)
	case s.Code != 0 && !r.groups[reader{key, id, guildRight}]:
		r.p.fail("rights", "bot %d reads a code of a guild that it was never in", g.n)
	}
}
