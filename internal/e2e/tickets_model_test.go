package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// ticketModel acts at random on rooms that lock, are private and sleep: clients join, show tickets,
// move, break and leave, and rooms send each other messages. It records the joins, resumes and
// leaves, and checks that no seat or ticket is used twice and that no client is in two rooms.
type ticketModel struct {
	t          *testing.T
	rng        *rand.Rand
	w          *netlooptest.World
	parties    []*modelParty
	travellers []*modelTraveller
	members    map[int]map[netloop.ClientID]string // by traveller: the rooms of its clients
	since      map[string]time.Duration            // by room: when it was opened or has ended
	server     *netloop.Server
	words      []*modelWord // sent between rooms, by number
	slept      int          // number of sleeping rooms at the checks
}

// modelParty is a reservation.
type modelParty struct {
	room      string
	tickets   []netloop.Ticket
	until     time.Duration
	spectates bool
	made      time.Duration
	by        *modelTraveller // the last client that has shown one of them
	inside    int             // clients that joined by its tickets
}

// modelTraveller is a client that joins, moves, breaks and leaves.
type modelTraveller struct {
	c       *client.Client
	gone    bool // it left or vanished
	sure    bool // it has shown a valid ticket
	sent    bool // it was moved, or has requested a move
	to      string
	shownAt time.Duration
}

// joinParams is the parameter of a traveller's join.
type joinParams struct{ N int }

func newTicketModel(t *testing.T, seed uint64) *ticketModel {
	m := &ticketModel{
		t: t, rng: rand.New(rand.NewPCG(seed, 17)), members: map[int]map[netloop.ClientID]string{}, since: map[string]time.Duration{},
	}
	m.w = netlooptest.New(t, script(m.open), netlooptest.Seed(seed), netlooptest.MaxRooms(4),
		netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(30), MaxClients: 3, MaxSpectators: 1, Sleep: m.rng.IntN(2) == 0}))
	return m
}

// open sets up a room that reports joins and leaves to the model.
func (m *ticketModel) open(r *netloop.Room) {
	m.server = r.Server()
	r.AllowMoves()
	echo.HandleRoom(r, m.hear)
	of := func(c *netloop.Client) (n int, p *modelParty) {
		var said joinParams
		if err := c.Join().Params(&said); err != nil {
			m.t.Error(err)
		}
		var party joinParams
		if has, err := c.Join().Reservation(&party); err != nil {
			m.t.Error(err)
		} else if has {
			p = m.parties[party.N]
		}
		return said.N, p
	}
	r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
		n, p := of(c)
		if m.members[n] == nil {
			m.members[n] = map[netloop.ClientID]string{}
		}
		m.members[n][c.ID()] = r.Spec().Name
		if p != nil {
			if p.inside++; p.inside > len(p.tickets) || p.room != r.Spec().Name || p.spectates != c.Spectator() {
				m.t.Errorf("%d clients joined by %d tickets for %q, now to %q", p.inside, len(p.tickets), p.room, r.Spec().Name)
			}
		}
		return nil
	})
	// Another program with the same ticket may resume, if the first one has not sent data yet.
	r.OnResume(func(_ *netloop.Tick, c *netloop.Client) {
		n, _ := of(c)
		for _, rooms := range m.members {
			delete(rooms, c.ID())
		}
		if m.members[n] == nil {
			m.members[n] = map[netloop.ClientID]string{}
		}
		m.members[n][c.ID()] = r.Spec().Name
	})
	r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) {
		n, p := of(c)
		if m.members[n][c.ID()] != r.Spec().Name {
			m.t.Errorf("traveller %d leaves %q without a join", n, r.Spec().Name)
		}
		delete(m.members[n], c.ID())
		if p != nil {
			p.inside--
		}
	})
}

// act makes one random change.
func (m *ticketModel) act() {
	name := roomNames[m.rng.IntN(len(roomNames))]
	switch m.rng.IntN(14) {
	case 0:
		spec := netloop.RoomSpec{
			Name: name, Rate: netloop.Hz(uint64(10 + m.rng.IntN(50))), MaxClients: 1 + m.rng.IntN(4),
			MaxSpectators: m.rng.IntN(2), Private: m.rng.IntN(3) == 0, Sleep: m.rng.IntN(2) == 0,
		}
		if _, err := m.w.OpenRoom(spec); err == nil {
			m.since[name] = m.w.Now()
		}
	case 1:
		if r := m.running(name); r != nil && name != "" {
			m.since[name] = m.w.Now()
			r.Drain(time.Duration(m.rng.IntN(1000))*time.Millisecond, netloop.CodeGame, "over")
		}
	case 2:
		if r := m.running(name); r != nil {
			r.Tick(func(tick *netloop.Tick) { tick.Room().Lock(tick, !tick.Room().Locked()) })
		}
	case 3, 4:
		m.reserve(name)
	case 5, 6:
		m.come(client.Config{Room: name, Spectate: m.rng.IntN(4) == 0}, nil)
	case 7:
		if p := m.party(); p != nil {
			m.come(client.Config{Ticket: string(p.tickets[m.rng.IntN(len(p.tickets))])}, p)
		}
	case 12, 13:
		m.talk(name)
	default:
		m.disturb()
	}
}

func (m *ticketModel) running(name string) *netlooptest.PlayedRoom {
	if _, known := m.since[name]; name != "" && !known {
		return nil
	}
	if r := m.w.Room(name); r.Ended() == nil {
		return r
	}
	return nil
}

func (m *ticketModel) party() *modelParty {
	if len(m.parties) == 0 {
		return nil
	}
	return m.parties[m.rng.IntN(len(m.parties))]
}

// reserve reserves seats: all or none.
func (m *ticketModel) reserve(name string) {
	p := &modelParty{room: name, spectates: m.rng.IntN(4) == 0, made: m.w.Now()}
	ttl := time.Duration(200+m.rng.IntN(4000)) * time.Millisecond
	seats := 1 + m.rng.IntN(3)
	v := netloop.Reservation{Seats: seats, TTL: ttl, Spectator: p.spectates, Params: joinParams{len(m.parties)}}
	all, err := reserve(m.t, m.w, name, v)
	if (err == nil) != (len(all) == seats) || err != nil && len(all) > 0 {
		m.t.Errorf("%d tickets for %d seats: %v", len(all), seats, err)
	}
	if err == nil {
		p.tickets, p.until = all, m.w.Now()+ttl
		m.parties = append(m.parties, p)
	}
}

// come joins a client, by a ticket of a party if there is one.
func (m *ticketModel) come(cfg client.Config, p *modelParty) {
	if len(m.travellers) >= 30 {
		return
	}
	cfg.Join = joinParams{len(m.travellers)}
	g := &modelTraveller{}
	if p != nil {
		m.show(g, p)
	}
	g.c = m.w.JoinAs(cfg, netlooptest.Link{Delay: time.Duration(m.rng.IntN(40)) * time.Millisecond})
	m.travellers = append(m.travellers, g)
}

// show records whether a ticket must be valid: of a party of one, not about to expire, and not
// shown before.
func (m *ticketModel) show(g *modelTraveller, p *modelParty) {
	g.sure = len(p.tickets) == 1 && p.by == nil && p.until > m.w.Now()+time.Second && p.made > m.since[p.room]
	if p.by != nil {
		p.by.sure = false // Whichever is faster.
	}
	p.by = g
	g.to, g.shownAt = string(p.tickets[0]), m.w.Now()
}

// disturb lets a client move, break, drop or leave.
func (m *ticketModel) disturb() {
	if len(m.travellers) == 0 {
		return
	}
	g := m.travellers[m.rng.IntN(len(m.travellers))]
	if g.gone || g.c.Closed() != nil {
		return
	}
	switch m.rng.IntN(6) {
	case 0, 1:
		if p := m.party(); p != nil && g.c.State().Phase == client.Playing {
			m.show(g, p)
			g.sure = g.sure && !g.sent // Otherwise the other ticket may be first.
			g.sent = true
			if err := g.c.Move(p.tickets[0]); err != nil {
				m.t.Errorf("a client that plays cannot move: %v", err)
			}
		}
	case 2:
		m.sendOn(g)
	case 3:
		g.sure = false // A client that has not joined yet gives up.
		m.w.Break(g.c)
	case 4:
		g.gone = true
		m.w.Drop(g.c)
	default:
		g.gone = true
		_ = g.c.Close()
	}
}

// sendOn lets the room of a client move it.
func (m *ticketModel) sendOn(g *modelTraveller) {
	p, r := m.party(), m.running(g.c.Room())
	if p == nil || r == nil || g.c.State().Phase != client.Playing {
		return
	}
	r.Tick(func(tick *netloop.Tick) {
		for c := range tick.Clients() {
			if c.ID() == g.c.ID() {
				m.show(g, p)
				g.sure, g.sent = false, true
				c.Move(tick, p.tickets[0])
			}
		}
	})
}

// check checks the invariants.
func (m *ticketModel) check() {
	m.checkWords()
	m.w.Tick(func(tick *netloop.Tick) {
		for info := range tick.Room().Server().Rooms() {
			if players := info.Clients - info.Spectators; players > info.Spec.MaxClients || info.Spectators > info.Spec.MaxSpectators {
				m.t.Errorf("room %q of %d and %d seats has %d players and %d spectators", info.Spec.Name, info.Spec.MaxClients, info.Spec.MaxSpectators, players, info.Spectators)
			}
			if info.Clients+info.Reserved > info.Spec.MaxClients+info.Spec.MaxSpectators {
				m.t.Errorf("room %q has %d clients and %d reserved seats: %+v", info.Spec.Name, info.Clients, info.Reserved, info.Spec)
			}
		}
	})
	for n, rooms := range m.members {
		if len(rooms) > 1 {
			m.t.Errorf("traveller %d is in %v", n, rooms)
		}
	}
	for n, g := range m.travellers {
		why := g.c.Closed()
		if !g.sure || g.gone || why == nil || m.since[roomOfTicket(g.to)] >= g.shownAt {
			continue
		}
		if why.Code == netloop.CodeTicket || why.Code == netloop.CodeFull || why.Code == netloop.CodeRefused {
			m.t.Errorf("traveller %d had a valid ticket for %q: %v", n, roomOfTicket(g.to), why)
			g.sure = false
		}
	}
}

func roomOfTicket(ticket string) string {
	var name string
	for i := range ticket {
		if ticket[i] == '@' {
			name = ticket[i+1:]
		}
	}
	return name
}

// Whatever clients, parties and rooms do, awake and asleep, no seat is used twice, no ticket
// admits two clients, a valid ticket admits one, no client is in two rooms, each client gets its
// close reason, and each message between rooms runs once or is counted as lost.
func TestTicketsAndMovesFollowTheModel(t *testing.T) {
	played, in, slept, heard := 0, 0, 0, 0
	seeds.Each(t, 200, func(t *testing.T, seed uint64) {
		m := newTicketModel(t, seed)
		for range 50 {
			m.act()
			m.w.Step(m.rng.IntN(5))
			m.check()
		}
		m.w.Step(60)
		m.check()
		m.checkSleep()
		for _, p := range m.parties {
			in += p.inside
		}
		m.w.Drain(time.Duration(m.rng.IntN(2)) * time.Second)
		m.w.Step(200)
		for n, g := range m.travellers {
			// A client without a connection gets refusals, and tries for a minute.
			if !g.gone && g.c.Closed() == nil && g.c.State().Phase != client.Reconnecting {
				t.Errorf("traveller %d got no close reason: %v in %q", n, g.c.State().Phase, g.c.Room())
			}
			if len(m.members[n]) > 0 {
				t.Errorf("traveller %d did not leave %v", n, fmt.Sprint(m.members[n]))
			}
		}
		heard += m.checkHeard()
		slept += m.slept
		played++
	})
	// With the race detector there are too few seeds to reach every case.
	if played >= 20 && (in == 0 || slept == 0 || heard == 0) {
		t.Errorf("%d joined by a ticket, %d rooms slept, %d messages ran", in, slept, heard)
	}
}
