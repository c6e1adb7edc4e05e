package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/match"
)

// matches checks package match. The documents: the comments of match.Rooms, Queue and List.
//
//   - A place is in a room that exists, with a ticket for each seat, and no ticket is given twice,
//     except to a player who asks again meanwhile.
//   - A match has full teams of parties that have waited and are whole. No player is matched twice,
//     and none waits who has left.
//   - At rest a list of rooms has the rooms that are listed with an Info.
type matches struct {
	p       *play
	tickets map[netloop.Ticket]given
}

// given is the room that a ticket was given to.
type given struct {
	to    roomKey
	party bool // it is of several, so no other request may get it
}

func newMatches(p *play) matches { return matches{p: p, tickets: map[netloop.Ticket]given{}} }

// placed checks the answer of a Rooms.
func (m *matches) placed(key roomKey, asked time.Duration, v netloop.Reservation, p match.Place, err error) {
	if m.p.w == nil {
		return
	}
	m.p.note("room %q: %d seats: %q, %v, %v", key.name, max(v.Seats, 1), p.Room, p.Opened, err)
	var refused *netloop.Refusal
	if err != nil {
		if !errors.As(err, &refused) && !errors.Is(err, netloop.ErrTooManyRooms) && !errors.Is(err, netloop.ErrTooMuchWork) && !knownTrouble(err) {
			m.p.fail("matches", "room %q gets no seats: %v", key.name, err)
		}
		return
	}
	if ended, is := m.p.rooms.endedAt(p.Room); !is || ended < asked {
		m.p.fail("matches", "room %q gets seats in room %q, which is no room, at %v", key.name, p.Room, ended)
	}
	if len(p.Tickets) != max(v.Seats, 1) || p.Opened && !strings.HasPrefix(p.Room, tableNames) {
		m.p.fail("matches", "room %q gets %d tickets for %d seats of room %q, opened: %v", key.name, len(p.Tickets), v.Seats, p.Room, p.Opened)
	}
	for _, t := range p.Tickets {
		if g, known := m.tickets[t]; known && (g.party || v.Seats > 1) {
			m.p.fail("matches", "room %q gets a ticket that room %q has", key.name, g.to.name)
		}
		m.tickets[t] = given{key, v.Seats > 1}
	}
	m.p.rights.reserved(p.Room, v)
}

// knownTrouble reports whether an error is of the end of a server or a room, or of the game's Open,
// of which a Rooms keeps the text.
func knownTrouble(err error) bool {
	return strings.Contains(err.Error(), "context canceled") || strings.Contains(err.Error(), "cannot be read") || strings.Contains(err.Error(), netloop.ErrClosing.Error())
}

// found checks a match.
func (m *matches) found(h *gameRoom, t *netloop.Tick, found match.Match[uint64]) {
	seen := map[netloop.ClientID]bool{}
	for _, team := range found.Teams {
		size := 0
		for _, party := range team {
			size += len(party.Players)
			n := h.waiting[party.Players[0]]
			all := 0
			for _, other := range h.waiting {
				if other == n {
					all++
				}
			}
			for _, id := range party.Players {
				if _, here := t.Client(id); n == 0 || h.waiting[id] != n || seen[id] || all != len(party.Players) || !here {
					m.p.fail("matches", "room %q: client %d of party %d is matched in a party of %d of %d, seen %v, here %v", h.key.name, id, n, len(party.Players), all, seen[id], here)
				}
				seen[id] = true
			}
		}
		if size != teamSize {
			m.p.fail("matches", "room %q: a team has %d players", h.key.name, size)
		}
	}
	if len(found.Teams) != matchTeams {
		m.p.fail("matches", "room %q: a match has %d teams", h.key.name, len(found.Teams))
	}
}

// rest looks at queues and lists.
func (m *matches) rest() {
	m.p.rooms.inTicks(func(name string, f *roomFacts, t *netloop.Tick) {
		h := f.gameRoom
		for id := range h.waiting {
			if _, here := t.Client(id); !here {
				m.p.fail("matches", "room %q: client %d has left and waits", name, id)
			}
		}
		if h.queue != nil && h.queue.Len() != len(h.waiting) {
			m.p.fail("matches", "room %q: %d players wait, and the queue has %d", name, len(h.waiting), h.queue.Len())
		}
	})
}

// lists describes how a list of rooms differs from the listing, for the room and for its clients.
func (m *matches) differ() string {
	want := map[string]int{}
	for _, l := range netloop.ListRooms(m.p.server, netloop.RoomFilter[listing]{}) {
		want[l.Name] = l.Players
	}
	rows := func(d *declared, t *netloop.Tick) map[string]int {
		got := map[string]int{}
		for o := range d.rows.All(t) {
			got[o.State().Name] = int(o.State().Players)
		}
		return got
	}
	for _, name := range m.p.rooms.names() {
		f := m.p.rooms.byName[name]
		if f == nil || !f.gameRoom.rules.Tables { // In real time rooms end meanwhile.
			continue
		}
		var got map[string]int
		m.p.w.tick(name, func(t *netloop.Tick) { got = rows(m.p.d, t) })
		if m.p.rooms.of(f.key) == nil {
			continue
		}
		if !maps.Equal(got, want) {
			return fmt.Sprintf("room %q shows the rooms %s, and listed are %s", name, sorted(got), sorted(want))
		}
		for _, id := range slices.Sorted(maps.Keys(f.in)) {
			g := m.p.bots[f.in[id].bot]
			if g == nil || !g.playing() || g.c.Room() != name || g.c.ID() != id || f.spec.SpectatorDelay > 0 {
				continue
			}
			m.p.w.Look(g.c, func(t *netloop.Tick) { got = rows(g.d, t) })
			if !maps.Equal(got, want) {
				return fmt.Sprintf("bot %d of room %q is shown the rooms %s, and listed are %s", g.n, name, sorted(got), sorted(want))
			}
		}
	}
	return ""
}
