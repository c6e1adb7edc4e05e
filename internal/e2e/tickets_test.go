package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// reserve reserves seats of a room, or returns the error.
func reserve(t testing.TB, w *netlooptest.World, name string, v netloop.Reservation) (tickets []netloop.Ticket, err error) {
	t.Helper()
	w.Tick(func(tick *netloop.Tick) { tickets, err = tick.Room().Server().Reserve(t.Context(), name, v) })
	return tickets, err
}

// seats is reserve, and fails the test on an error.
func seats(t testing.TB, w *netlooptest.World, name string, v netloop.Reservation) []netloop.Ticket {
	t.Helper()
	tickets, err := reserve(t, w, name, v)
	if err != nil || len(tickets) != max(v.Seats, 1) {
		t.Fatalf("%d tickets for %+v: %v", len(tickets), v, err)
	}
	return tickets
}

// joinBy joins a client by a ticket, or by the code of a private room.
func joinBy(w *netlooptest.World, ticket netloop.Ticket) *client.Client {
	return w.JoinAs(client.Config{Ticket: string(ticket)}, netlooptest.Link{Delay: 5 * time.Millisecond})
}

// wasRefused checks that a client was refused with a code.
func wasRefused(t testing.TB, what string, c *client.Client, code netloop.Code) (text string) {
	t.Helper()
	why := c.Closed()
	if why == nil || why.Code != code {
		t.Errorf("%s: got %v, want %v", what, why, code)
		return ""
	}
	return why.Text
}

func plays(t testing.TB, what string, c *client.Client, room string) {
	t.Helper()
	if c.State().Phase != client.Playing || c.Room() != room {
		t.Errorf("%s: is %v in room %q: %v", what, c.State().Phase, c.Room(), c.Closed())
	}
}

// A reserved seat is kept until its time is over, for the ticket's owner, once. A party gets all
// of its seats or none.
func TestATicketReservesOneSeat(t *testing.T) {
	w := netlooptest.New(t, script(func(*netloop.Room) {}))
	openRoom(t, w, table("a")) // It has five seats.
	var all []netloop.Ticket
	w.Tick(func(tick *netloop.Tick) {
		tick.Reserve("a", netloop.Reservation{Seats: 3, TTL: time.Second}, func(_ *netloop.Tick, tickets []netloop.Ticket, err error) {
			if all = tickets; err != nil {
				t.Error(err)
			}
		})
	})
	w.Step(1)
	w.Settle()
	w.Step(1)
	if len(all) != 3 {
		t.Fatalf("got %d tickets", len(all))
	}
	var full *netloop.Refusal
	if none, err := reserve(t, w, "a", netloop.Reservation{Seats: 3}); len(none) > 0 || !errors.As(err, &full) || full.Code != netloop.CodeFull {
		t.Errorf("three more of five seats: %d tickets, %v", len(none), err)
	}
	late := seats(t, w, "a", netloop.Reservation{Seats: 2, TTL: 100 * time.Millisecond})
	withoutTicket, holder := joinRoom(w, "a"), joinBy(w, all[0])
	w.Step(30)
	wasRefused(t, "a client without a ticket", withoutTicket, netloop.CodeFull)
	plays(t, "a client with a ticket", holder, "a")
	afterExpiry := joinRoom(w, "a") // Two tickets have expired.
	again, expired, unknown := joinBy(w, all[0]), joinBy(w, late[0]), joinBy(w, all[0][1:])
	elsewhere := joinBy(w, all[1]+"?")
	w.Step(30)
	plays(t, "a client after the expiry", afterExpiry, "a")
	texts := map[string]bool{}
	for what, c := range map[string]*client.Client{"used": again, "expired": expired, "unknown": unknown, "of no room": elsewhere} {
		texts[wasRefused(t, what, c, netloop.CodeTicket)] = true
	}
	if len(texts) != 1 {
		t.Errorf("the texts reveal the ticket's fault: %v", texts)
	}
	w.Step(60) // Now the others have expired too.
	var rest []*client.Client
	for range 4 {
		rest = append(rest, joinRoom(w, "a"))
	}
	w.Step(30)
	in := 0
	for _, c := range rest {
		if c.State().Phase == client.Playing {
			in++
		}
	}
	if in != 3 {
		t.Errorf("%d of 4 got the 3 free seats", in)
	}
	if _, err := reserve(t, w, "nowhere", netloop.Reservation{}); err == nil {
		t.Error("a seat of an unknown room")
	}
	for _, wrong := range []netloop.Reservation{{Seats: -1}, {TTL: -1}, {TTL: 2 * time.Hour}, {Params: func() {}}, {Params: make([]byte, 20_000)}} {
		if _, err := reserve(t, w, "a", wrong); err == nil {
			t.Errorf("reserved %d seats for %v", wrong.Seats, wrong.TTL)
		}
	}
}

// Tickets end with their room, and are invalid in a later room of the name.
func TestTicketsExpireWithTheirRoom(t *testing.T) {
	w := netlooptest.New(t, script(func(*netloop.Room) {}))
	r := openRoom(t, w, table("a"))
	tickets := seats(t, w, "a", netloop.Reservation{Seats: 2})
	r.Drain(0, netloop.CodeGame, "over")
	w.Step(5)
	gone := joinBy(w, tickets[0])
	w.Step(30)
	openRoom(t, w, table("a"))
	other := joinBy(w, tickets[1])
	w.Step(30)
	wasRefused(t, "its room has ended", gone, netloop.CodeTicket)
	wasRefused(t, "its room is another", other, netloop.CodeTicket)
}

// A ticket remains valid after a refusal by the game, and until the server has received data of
// the joined client.
func TestATicketIsValidUntilItsClientHasJoined(t *testing.T) {
	refuse := true
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
			var team struct{ Team int }
			if has, err := j.Reservation(&team); err != nil || !has || !j.Ticket || team.Team != 4 {
				t.Errorf("a ticket %v of team %d: %v", has, team.Team, err)
			}
			if refuse {
				return netloop.Refuse(netloop.CodeGame, "not yet")
			}
			return nil
		})
	}))
	ticket := seats(t, w, "", netloop.Reservation{Params: struct{ Team int }{4}, TTL: time.Minute})[0]
	first := joinBy(w, ticket)
	w.Step(30)
	wasRefused(t, "a refused client", first, netloop.CodeGame)
	refuse = false
	far := netlooptest.Link{Delay: 100 * time.Millisecond}
	unacknowledged := w.JoinAs(client.Config{Ticket: string(ticket)}, far)
	w.Step(20) // It has joined, and its welcome is in flight.
	w.Drop(unacknowledged)
	again := joinBy(w, ticket)
	w.Step(60)
	plays(t, "a client with a ticket shown before", again, "")
	w.Tick(func(tick *netloop.Tick) {
		n := 0
		for range tick.Clients() {
			n++
		}
		if n != 1 {
			t.Errorf("%d clients joined by one ticket", n)
		}
	})
	third := joinBy(w, ticket)
	w.Step(30)
	wasRefused(t, "a client with a used ticket", third, netloop.CodeTicket)
}

// A locked room admits clients with a ticket, and returning ones.
func TestALockedRoomAdmitsTicketsAndReturningClients(t *testing.T) {
	w := netlooptest.New(t, script(func(*netloop.Room) {}))
	inside := joinRoom(w, "")
	ticket := seats(t, w, "", netloop.Reservation{TTL: time.Minute})[0]
	w.Step(30)
	lock := func(locked bool) {
		w.Tick(func(tick *netloop.Tick) {
			if tick.Room().Lock(tick, locked); tick.Room().Locked() != locked {
				t.Errorf("locked: %v, want %v", !locked, locked)
			}
		})
	}
	lock(true)
	id := inside.ID()
	w.Break(inside)
	withoutTicket, holder := joinRoom(w, ""), joinBy(w, ticket)
	w.Step(60)
	wasRefused(t, "a client without a ticket", withoutTicket, netloop.CodeRefused)
	plays(t, "a client with a ticket", holder, "")
	plays(t, "a returning client", inside, "")
	if inside.ID() != id {
		t.Error("the returning client is a new one")
	}
	lock(false)
	late := joinRoom(w, "")
	w.Step(30)
	plays(t, "a client after Unlock", late, "")
}

// Without its code or a ticket, a private room looks like an unknown one.
func TestAPrivateRoomIsHiddenWithoutItsCode(t *testing.T) {
	w := netlooptest.New(t, script(func(*netloop.Room) {}))
	spec := table("a")
	spec.Private = true
	openRoom(t, w, spec)
	var code string
	w.Room("a").Tick(func(tick *netloop.Tick) { code = tick.Room().Spec().Code })
	if len(code) != 6 {
		t.Errorf("its code is %q", code)
	}
	spec.Name, spec.Code = "b", code
	if _, err := w.OpenRoom(spec); err == nil {
		t.Error("two rooms have one code")
	}
	spec.Code = "friends"
	openRoom(t, w, spec)
	byName, nowhere, byCode, wrong := joinRoom(w, "a"), joinRoom(w, "c"), joinBy(w, netloop.Ticket(code)), joinBy(w, "AAAAAA")
	byTicket, chosen := joinBy(w, seats(t, w, "a", netloop.Reservation{})[0]), joinBy(w, "friends")
	w.Step(30)
	a, c := wasRefused(t, "by name", byName, netloop.CodeRoomUnknown), wasRefused(t, "of no room", nowhere, netloop.CodeRoomUnknown)
	if want := fmt.Sprintf("there is no room %q", "a"); a != want || c == "" {
		t.Errorf("%q and %q differ", a, c)
	}
	plays(t, "by its code", byCode, "a")
	plays(t, "by a ticket", byTicket, "a")
	plays(t, "by a code that the game has chosen", chosen, "b")
	wasRefused(t, "by a wrong code", wrong, netloop.CodeTicket)
	w.Room("a").Drain(0, netloop.CodeGame, "over")
	w.Step(5)
	spec.Name, spec.Code = "again", code
	openRoom(t, w, spec) // Its code is free too.
	for _, wrong := range []netloop.RoomSpec{{Name: "x", Code: "x"}, {Name: "x", Private: true, Code: "a@b"}, {Name: "x", MaxSpectators: -1}} {
		if _, err := w.OpenRoom(wrong); err == nil {
			t.Errorf("opened %+v", wrong)
		}
	}
}

// A client that guesses tickets is soon limited, and then even the right ticket is refused.
func TestGuessedTicketsAreRateLimited(t *testing.T) {
	w := netlooptest.New(t, script(func(*netloop.Room) {}), netlooptest.Room(netloop.RoomSpec{MaxClients: 200}))
	ticket := seats(t, w, "", netloop.Reservation{TTL: time.Minute})[0]
	var guesses []*client.Client
	for i := range 40 {
		guesses = append(guesses, joinBy(w, netloop.Ticket(fmt.Sprintf("guess%d@", i))))
	}
	w.Step(10)
	right := joinBy(w, ticket)
	w.Step(30)
	busy := 0
	for _, c := range guesses {
		if why := c.Closed(); why != nil && why.Code == netloop.CodeBusy {
			busy++
		}
	}
	if busy < 6 || busy > 8 {
		t.Errorf("%d of 40 guesses were not checked, want those beyond 32", busy)
	}
	wasRefused(t, "the right ticket after many guesses", right, netloop.CodeBusy)
	w.Step(150)
	later := joinBy(w, ticket)
	w.Step(30)
	plays(t, "the right ticket when they are forgotten", later, "")
}

// Spectators have their own seats, and no player's rights.
func TestSpectatorsOnlyWatch(t *testing.T) {
	heard := map[string]int{}
	spectators := 0
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { things.Spawn(tick, thing{N: 1}) })
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			if c.Spectator() {
				spectators++
			}
			if c.Spectator() != c.Join().Spectator {
				t.Error("client and join differ")
			}
			return nil
		})
		for _, m := range []*netloop.RPC[text]{echo, cheer} {
			m.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m text) error { heard[m.S]++; return nil })
		}
	}), netlooptest.Room(netloop.RoomSpec{MaxClients: 1, MaxSpectators: 2}))
	link := netlooptest.Link{Delay: 5 * time.Millisecond}
	watch := func() *client.Client { return w.JoinAs(client.Config{Spectate: true}, link) }
	player, one := joinRoom(w, ""), watch()
	two := joinBy(w, seats(t, w, "", netloop.Reservation{Spectator: true})[0])
	w.Step(30)
	second, third := joinRoom(w, ""), watch()
	w.Step(30)
	for what, c := range map[string]*client.Client{"the player": player, "a spectator": one, "one with a ticket": two} {
		plays(t, what, c, "")
		client.Send(c, echo, text{S: what})
		client.Send(c, cheer, text{S: what})
		w.Look(c, func(tick *netloop.Tick) {
			if things.Len(tick) != 1 {
				t.Errorf("%s sees %d objects", what, things.Len(tick))
			}
		})
	}
	wasRefused(t, "a second player", second, netloop.CodeFull)
	wasRefused(t, "a third spectator", third, netloop.CodeFull)
	w.Step(30)
	if want := fmt.Sprint(map[string]int{"the player": 2, "a spectator": 1, "one with a ticket": 1}); fmt.Sprint(heard) != want || spectators != 2 {
		t.Errorf("got %v of %d spectators, want %s", heard, spectators, want)
	}
	w.Tick(func(tick *netloop.Tick) {
		for info := range tick.Room().Server().Rooms() {
			if info.Clients != 3 || info.Spectators != 2 || info.Reserved != 0 || info.Locked {
				t.Errorf("the room is listed as %+v", info)
			}
		}
	})
	id := one.ID()
	w.Break(one)
	w.Step(60)
	client.Send(one, echo, text{S: "back"})
	w.Step(10)
	if one.ID() != id || heard["back"] != 0 {
		t.Error("a returning spectator is a player")
	}
}

// Reservations are part of a recording, and a replay has the same results.
func TestReservationsReplay(t *testing.T) {
	g := script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			for seats := range 6 {
				tick.Reserve("a", netloop.Reservation{Seats: 1 + seats}, func(tick *netloop.Tick, all []netloop.Ticket, err error) {
					n := int32(len(all))
					if refused := (*netloop.Refusal)(nil); errors.As(err, &refused) && refused.Code == netloop.CodeFull {
						n = -1
					}
					o := things.Spawn(tick, thing{N: n})
					for _, ticket := range all {
						o.Edit(tick).X += float32(ticket[0])
					}
				})
			}
		})
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			if c.Spectator() && c.Join().Ticket {
				things.Spawn(tick, thing{N: 99})
			}
			return nil
		})
	})
	var file bytes.Buffer
	w := netlooptest.New(t, g, netlooptest.Record(&file), netlooptest.Room(netloop.RoomSpec{MaxSpectators: 1}))
	room, err := w.OpenRoom(table("a"))
	if err != nil {
		t.Fatal(err)
	}
	w.Step(2)
	w.Settle()
	var tickets []netloop.Ticket
	room.Tick(func(tick *netloop.Tick) {
		tickets, err = tick.Room().Server().Reserve(t.Context(), "", netloop.Reservation{Spectator: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	c := joinBy(w, tickets[0])
	w.Step(60)
	w.Look(c, func(tick *netloop.Tick) {
		if things.Len(tick) != 7 {
			t.Errorf("%d objects, want one for each reservation and one for the spectator", things.Len(tick))
		}
	})
	p, err := netloop.NewReplay(netloop.Config{}, g, &file)
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
