package room

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/testing/seeds"
)

// Connections are admitted, enter in any order, take over, change their role, show tickets and
// leave. At no moment are more seats of a kind used than exist, and each counted seat has an owner:
// a client, a connection being admitted, or a ticket. When all have left, all seats are free.
func TestEverySeatHasAnOwner(t *testing.T) {
	changed, full := 0, 0
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		m := &seatModel{
			T: t, rng: rand.New(rand.NewPCG(seed, 3)), clients: map[*seat]*Join{},
			s: seats{playing: seatCount{most: 3}, watching: seatCount{most: 2}},
		}
		for range 200 {
			m.act()
			m.check()
		}
		for len(m.way) > 0 {
			m.enter(0)
			m.check()
		}
		for at := range m.clients {
			m.leave(at)
		}
		m.check()
		if p, w, held := m.s.count(time.Hour); p != 0 || w != 0 || held != 0 || len(m.s.tickets) != 0 || len(m.s.players) != 0 || len(m.s.secrets) != 0 || len(m.s.awaited) != 0 {
			t.Errorf("in the end %d play, %d watch, %d are reserved, with %d tickets, %d players, %d secrets, %d awaited",
				p, w, held, len(m.s.tickets), len(m.s.players), len(m.s.secrets), len(m.s.awaited))
		}
		changed += m.changed
		full += m.full
	})
	if changed == 0 || full == 0 {
		t.Errorf("%d changes of role, %d refused because it was full", changed, full)
	}
}

// seatModel simulates admissions and a room with their seats.
type seatModel struct {
	*testing.T
	rng           *rand.Rand
	s             seats
	now           time.Duration
	ids           uint64
	way           []*admitted // admitted, and not entered yet
	clients       map[*seat]*Join
	tickets       []string
	changed, full int
}

func (m *seatModel) act() {
	m.now += time.Duration(m.rng.IntN(3))
	switch m.rng.IntN(6) {
	case 0:
		m.reserve()
	case 1, 2:
		m.admit()
	case 3, 4:
		if len(m.way) > 0 {
			m.enter(m.rng.IntN(len(m.way)))
		}
	default:
		all := slices.SortedFunc(maps.Keys(m.clients), func(a, b *seat) int { return cmp.Compare(a.id, b.id) })
		if len(all) == 0 {
			return
		}
		if at := all[m.rng.IntN(len(all))]; m.rng.IntN(2) == 0 {
			m.s.heard(at, at.conns)
		} else {
			m.leave(at)
		}
	}
}

func (m *seatModel) reserve() {
	name := fmt.Sprint("ticket ", len(m.tickets))
	t := &ticket{id: sha256.Sum256([]byte(name)), until: m.now + time.Duration(m.rng.IntN(40)), spectator: m.rng.IntN(3) == 0}
	if m.s.reserve([]*ticket{t}, m.now) == nil {
		m.tickets = append(m.tickets, name)
	}
}

func (m *seatModel) admit() {
	who := &Join{Subject: []string{"", "ann", "bob", "eve"}[m.rng.IntN(4)], Spectator: m.rng.IntN(2) == 0}
	q := &request{who: who, policy: TakeOver, nextID: func() uint64 { m.ids++; return m.ids }}
	if len(m.tickets) > 0 && m.rng.IntN(2) == 0 {
		t, err := m.s.show(m.tickets[m.rng.IntN(len(m.tickets))], m.now)
		if err != nil {
			return
		}
		defer m.s.putBack(t)
		q.ticket, who.Spectator = t, t.spectator
	}
	at, _, err := m.s.sit(q)
	if err != nil {
		m.full++
		return
	}
	m.s.issue(at)
	m.way = append(m.way, &admitted{seat: at, join: who})
}

// enter simulates the room for a connection that enters.
func (m *seatModel) enter(i int) {
	e := m.way[i]
	m.way = slices.Delete(m.way, i, i+1)
	defer m.s.entered(e.seat)
	if m.rng.IntN(4) == 0 {
		return // The room rejects it.
	}
	if c, ok := m.clients[e.seat]; ok && c.Spectator == e.join.Spectator {
		return
	} else if ok {
		m.changed++
		m.leave(e.seat)
	}
	m.clients[e.seat] = e.join
	m.s.take(e.seat, e.join.Spectator)
}

func (m *seatModel) leave(at *seat) {
	delete(m.clients, at)
	m.s.leave(at)
}

func (m *seatModel) check() {
	m.Helper()
	players, spectators, _ := m.s.count(m.now)
	if p, w := m.s.playing, m.s.watching; p.taken+p.held > p.most || w.taken+w.held > w.most || p.held < 0 || w.held < 0 {
		m.Fatalf("of %d and %d seats are given away: %+v, %+v", p.most, w.most, p, w)
	}
	owned := map[*seat]bool{}
	for at := range m.clients {
		owned[at] = true
	}
	for _, e := range m.way {
		owned[e.seat] = true
	}
	plays, watches := 0, 0
	for at := range owned {
		if at.plays {
			plays++
		}
		if at.watches {
			watches++
		}
		if c := m.clients[at]; c != nil && !*at.counted(c.Spectator) {
			m.Fatalf("the seat of a client is not counted: %+v", at)
		}
	}
	if plays != players || watches != spectators {
		m.Fatalf("%d and %d seats are counted, and %d and %d have owners", players, spectators, plays, watches)
	}
}
