package seats

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
// leave. At no moment are more seats of a kind used than exist, and each counted seat has an
// owner: a client, a connection being admitted, or a ticket. When all have left, all seats are
// free.
func TestEverySeatHasAnOwner(t *testing.T) {
	changed, full := 0, 0
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		m := &seatModel{
			T: t, rng: rand.New(rand.NewPCG(seed, 3)), clients: map[*Seat]*Join{},
			s: Seats{Playing: Count{Most: 3}, Watching: Count{Most: 2}},
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
		if p, w, held := m.s.Count(time.Hour); p != 0 || w != 0 || held != 0 || len(m.s.tickets) != 0 || len(m.s.players) != 0 || len(m.s.secrets) != 0 || len(m.s.awaited) != 0 {
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
	s             Seats
	now           time.Duration
	ids           uint64
	way           []*entry // admitted, and not entered yet
	clients       map[*Seat]*Join
	tickets       []string
	changed, full int
}

// entry is an admitted connection.
type entry struct {
	seat *Seat
	join *Join
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
		all := slices.SortedFunc(maps.Keys(m.clients), func(a, b *Seat) int { return cmp.Compare(a.ID, b.ID) })
		if len(all) == 0 {
			return
		}
		if at := all[m.rng.IntN(len(all))]; m.rng.IntN(2) == 0 {
			m.s.Heard(at, at.conns)
		} else {
			m.leave(at)
		}
	}
}

func (m *seatModel) reserve() {
	name := fmt.Sprint("ticket ", len(m.tickets))
	t := &Ticket{id: sha256.Sum256([]byte(name)), until: m.now + time.Duration(m.rng.IntN(40)), Spectator: m.rng.IntN(3) == 0}
	if m.s.reserve([]*Ticket{t}, m.now) == nil {
		m.tickets = append(m.tickets, name)
	}
}

func (m *seatModel) admit() {
	who := &Join{Subject: []string{"", "ann", "bob", "eve"}[m.rng.IntN(4)], Spectator: m.rng.IntN(2) == 0}
	q := &Request{Who: who, Policy: TakeOver, NextID: func() uint64 { m.ids++; return m.ids }}
	if len(m.tickets) > 0 && m.rng.IntN(2) == 0 {
		t, err := m.s.Show(m.tickets[m.rng.IntN(len(m.tickets))], m.now)
		if err != nil {
			return
		}
		defer m.s.PutBack(t)
		q.Ticket, who.Spectator = t, t.Spectator
	}
	at, _, err := m.s.Assign(q)
	if err != nil {
		m.full++
		return
	}
	m.s.Issue(at)
	m.way = append(m.way, &entry{seat: at, join: who})
}

// enter simulates the room for a connection that enters.
func (m *seatModel) enter(i int) {
	e := m.way[i]
	m.way = slices.Delete(m.way, i, i+1)
	defer m.s.Entered(e.seat)
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
	m.s.Take(e.seat, e.join.Spectator)
}

func (m *seatModel) leave(at *Seat) {
	delete(m.clients, at)
	m.s.Leave(at)
}

func (m *seatModel) check() {
	m.Helper()
	players, spectators, _ := m.s.Count(m.now)
	if p, w := m.s.Playing, m.s.Watching; p.taken+p.held > p.Most || w.taken+w.held > w.Most || p.held < 0 || w.held < 0 {
		m.Fatalf("of %d and %d seats are given away: %+v, %+v", p.Most, w.Most, p, w)
	}
	owned := map[*Seat]bool{}
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
