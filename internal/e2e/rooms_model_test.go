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

// roomsModel opens, joins, closes and drains the rooms of a server at random, and keeps the
// expected result: rooms by name, and the room of each client.
type roomsModel struct {
	t      *testing.T
	rng    *rand.Rand
	w      *netlooptest.World
	rooms  map[string]*modelRoom
	guests []*modelGuest
	ids    map[netloop.ClientID]string // the room of each client, as rooms say it
	opened int
}

type modelRoom struct {
	played *netlooptest.PlayedRoom
	most   int
	ends   bool // it drains
}

type modelGuest struct {
	c     *client.Client
	asked string
	left  bool
}

var roomNames = []string{"", "a", "b", "c", "d"}

// Clients join rooms by name and leave them, while rooms are opened, closed, drained and left empty
// in any order. No room has more clients than seats, no client is in two, and each hears of
// the end of its room, with the room's code and text, or why it got into none.
func TestRoomsFollowTheModel(t *testing.T) {
	seeds.Each(t, 200, func(t *testing.T, seed uint64) {
		m := &roomsModel{t: t, rng: rand.New(rand.NewPCG(seed, 16)), rooms: map[string]*modelRoom{}}
		m.w = netlooptest.New(t, script(func(r *netloop.Room) {
			r.On(netloop.Update, "close", func(tick *netloop.Tick) {
				if r.Spec().Name != "" && tick.Rand().IntN(3000) == 0 {
					r.Close(tick, netloop.CodeGame, "the game is over")
				}
			})
		}), netlooptest.Seed(seed), netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(30), MaxClients: 4}), netlooptest.MaxRooms(4))
		m.rooms[""] = &modelRoom{played: m.w.Room(""), most: 4}
		for range 40 {
			m.act()
			m.w.Step(m.rng.IntN(4))
			m.check()
		}
		m.w.Step(60)
		m.checkSettled()
		m.w.Drain(time.Duration(m.rng.IntN(2)) * time.Second)
		m.w.Step(30)
		for i, g := range m.guests {
			if !g.left && g.c.Closed() == nil {
				t.Errorf("client %d got no reason at the end of the server", i)
			}
		}
	})
}

// act does one thing at random.
func (m *roomsModel) act() {
	name := roomNames[m.rng.IntN(len(roomNames))]
	known := m.rooms[name]
	switch m.rng.IntN(8) {
	case 0, 1:
		m.open(name)
	case 2:
		if name != "" && known != nil {
			m.w.Tick(func(tick *netloop.Tick) {
				if err := tick.Room().Server().CloseRoom(name, 0, netloop.CodeGame+1, "closed "+name); err != nil {
					m.t.Errorf("closing %q: %v", name, err)
				}
			})
			known.ends = true
		}
	case 3:
		if name != "" && known != nil {
			known.played.Drain(time.Duration(m.rng.IntN(1500))*time.Millisecond, netloop.CodeGame+2, "drained "+name)
			known.ends = true
		}
	case 4:
		if len(m.guests) > 0 {
			if g := m.guests[m.rng.IntN(len(m.guests))]; !g.left && g.c.State().Phase == client.Playing {
				g.left = true
				_ = g.c.Close() // Its room may have ended just now.
			}
		}
	default:
		if len(m.guests) < 24 {
			link := netlooptest.Link{Delay: time.Duration(m.rng.IntN(40)) * time.Millisecond}
			m.guests = append(m.guests, &modelGuest{c: m.w.JoinAs(client.Config{Room: name}, link), asked: name})
		}
	}
}

// open opens a room, or is refused as the list says.
func (m *roomsModel) open(name string) {
	m.opened++
	spec := netloop.RoomSpec{
		Name: name, Rate: netloop.Hz(uint64(10 + m.rng.IntN(50))), MaxClients: 1 + m.rng.IntN(3),
		CloseEmpty: []time.Duration{netloop.NeverClose, time.Second, 2 * time.Second}[m.rng.IntN(3)], KeepDropped: -1,
	}
	r, err := m.w.OpenRoom(spec)
	switch known := m.rooms[name]; {
	case known != nil:
		if err == nil {
			m.t.Errorf("a second room %q was opened", name)
		}
	case len(m.rooms) == 4:
		if err == nil {
			m.t.Error("a fifth room was opened")
		}
	case err != nil:
		m.t.Errorf("opening %q: %v", name, err)
	default:
		m.rooms[name] = &modelRoom{played: r, most: spec.MaxClients}
	}
}

// check compares what there is with the list, at any moment.
func (m *roomsModel) check() {
	m.ids = map[netloop.ClientID]string{}
	for name, r := range m.rooms {
		if r.played.Ended() != nil {
			delete(m.rooms, name)
			continue
		}
		r.played.Tick(func(tick *netloop.Tick) {
			n := 0
			for c := range tick.Clients() {
				n++
				if other, twice := m.ids[c.ID()]; twice {
					m.t.Errorf("client %d is in the rooms %q and %q", c.ID(), name, other)
				}
				m.ids[c.ID()] = name
			}
			if n > r.most {
				m.t.Errorf("room %q has %d clients on %d seats", name, n, r.most)
			}
		})
	}
	listed := 0
	m.w.Tick(func(tick *netloop.Tick) {
		for info := range tick.Room().Server().Rooms() {
			listed++
			if r := m.rooms[info.Spec.Name]; r == nil || info.Clients > r.most || info.Spec.MaxClients != r.most {
				m.t.Errorf("the server lists %+v", info)
			}
		}
	})
	if listed != len(m.rooms) {
		m.t.Errorf("the server lists %d rooms of %d", listed, len(m.rooms))
	}
}

// checkSettled compares once all data in flight has arrived: a client without an error is in the
// room that it requested.
func (m *roomsModel) checkSettled() {
	m.check()
	for i, g := range m.guests {
		in, there := m.ids[g.c.ID()]
		why := g.c.Closed()
		switch {
		case g.left:
			if there {
				m.t.Errorf("client %d has left and is in room %q", i, in)
			}
		case why == nil && (!there || in != g.asked):
			m.t.Errorf("client %d got no error, and requested %q: it is in %q, %v", i, g.asked, in, there)
		case why != nil && there:
			m.t.Errorf("client %d got %v and is in room %q", i, why, in)
		case why != nil && !isPossibleReason(why, g.asked):
			m.t.Errorf("client %d of room %q got %v", i, g.asked, why)
		}
	}
}

// isPossibleReason reports whether a client of a room may get a reason.
func isPossibleReason(why *netloop.Closed, room string) bool {
	texts := map[netloop.Code]string{
		netloop.CodeGame: "the game is over", netloop.CodeGame + 1: "closed " + room, netloop.CodeGame + 2: "drained " + room,
		netloop.CodeClosing: "nobody is in the room", netloop.CodeRoomUnknown: fmt.Sprintf("there is no room %q", room),
	}
	text, ok := texts[why.Code]
	return ok && why.Text == text || why.Code == netloop.CodeFull
}
