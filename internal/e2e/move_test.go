package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/netlooptest"
)

// lobbyGame is a lobby with tables: the game moves a client to the table that it names by echo.
func lobbyGame(open func(*netloop.Room)) script {
	return func(r *netloop.Room) {
		r.AllowMoves()
		r.OnStart(func(tick *netloop.Tick) {
			for range 1 + len(r.Spec().Name) {
				things.Spawn(tick, thing{N: 1})
			}
		})
		echo.Handle(r, func(tick *netloop.Tick, c *netloop.Client, m text) error {
			tick.Reserve(m.S, netloop.Reservation{}, func(tick *netloop.Tick, all []netloop.Ticket, err error) {
				if err == nil {
					c.Move(tick, all[0])
				}
			})
			return nil
		})
		if open != nil {
			open(r)
		}
	}
}

// A client moves between rooms over one connection, by the game or by its own request: it leaves
// one room and joins the other, its objects are those of its current room, and its watchers
// remain.
func TestAClientMoves(t *testing.T) {
	var log []string
	w := netlooptest.New(t, lobbyGame(func(r *netloop.Room) {
		name := r.Spec().Name
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			log = append(log, fmt.Sprintf("join %q %v", name, c.Join().Ticket))
			return nil
		})
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) {
			log = append(log, fmt.Sprintf("leave %q %v", name, why.Code))
		})
		told.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m text) error {
			log = append(log, fmt.Sprintf("%q hears %s", name, m.S))
			return nil
		})
	}))
	openRoom(t, w, table("table"))
	c := w.JoinAs(client.Config{Room: ""}, netlooptest.Link{Delay: 30 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.05, Reorder: 0.1})
	var phases []client.Phase
	c.OnState(func(s client.State) {
		if n := len(phases); s.Phase != client.Loading && (n == 0 || phases[n-1] != s.Phase) {
			phases = append(phases, s.Phase)
		}
	})
	seen := 0
	client.Watch(c, things, client.Watcher[thing]{
		Spawn:   func(*netloop.Tick, *netloop.Object[thing]) { seen++ },
		Despawn: func(*netloop.Tick, *netloop.Object[thing], thing) { seen-- },
	})
	w.Step(60)
	lobbyID := c.ID()
	client.Send(c, echo, text{S: "table"})
	w.Step(20)
	w.Settle()
	w.Step(120)
	plays(t, "a moved client", c, "table")
	if c.ID() == lobbyID || c.Stats().Drops != 0 || seen != 6 {
		t.Errorf("id %d as before, %d breaks, %d objects: want another, none and 6", c.ID(), c.Stats().Drops, seen)
	}
	client.Send(c, told, text{S: "hello"})
	w.Step(60)
	back := seats(t, w, "", netloop.Reservation{})[0]
	if err := c.Move(back); err != nil {
		t.Fatal(err)
	}
	w.Step(120)
	plays(t, "a client moved back", c, "")
	if seen != 1 {
		t.Errorf("%d objects in the lobby", seen)
	}
	want := []string{
		`join "" false`, `leave "" moved to another room`, `join "table" true`, `"table" hears hello`, `leave "table" moved to another room`, `join "" true`,
	}
	if !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
	if want := []client.Phase{client.Playing, client.Moving, client.Playing, client.Moving, client.Playing}; !slices.Equal(phases, want) {
		t.Errorf("phases %v, want %v", phases, want)
	}
	converged := errors.New("not asked")
	c.Verify(func(err error) { converged = err })
	w.Step(60)
	if converged != nil {
		t.Error(converged)
	}
	_ = c.Close()
	if c.Move(back) == nil {
		t.Error("a client that is closed moves")
	}
}

// A room that refuses a moved client closes it with the reason, since it has left the other room.
func TestARefusedMoveClosesTheClient(t *testing.T) {
	for what, code := range map[string]netloop.Code{"unknown": netloop.CodeTicket, "refused": netloop.CodeGame, "gone": netloop.CodeTicket} {
		t.Run(what, func(t *testing.T) {
			left := 0
			w := netlooptest.New(t, script(func(r *netloop.Room) {
				r.AllowMoves()
				r.OnAdmit(func(context.Context, *netloop.Join) error {
					if r.Spec().Name != "" && what == "refused" {
						return netloop.Refuse(netloop.CodeGame, "not you")
					}
					return nil
				})
				r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { left++ })
			}))
			r := openRoom(t, w, table("a"))
			c := joinRoom(w, "")
			w.Step(30)
			ticket := seats(t, w, "a", netloop.Reservation{})[0]
			switch what {
			case "unknown":
				ticket = "x" + ticket
			case "gone":
				r.Drain(0, netloop.CodeGame, "over")
				w.Step(5)
			}
			if err := c.Move(ticket); err != nil {
				t.Fatal(err)
			}
			w.Step(60)
			wasRefused(t, what, c, code)
			if left != 1 {
				t.Errorf("it left %d times", left)
			}
		})
	}
}

// A break during a move does not end it: the client reconnects with the same ticket.
func TestAMoveSurvivesABreak(t *testing.T) {
	for after := range 12 {
		joins := 0
		w := netlooptest.New(t, lobbyGame(func(r *netloop.Room) {
			r.OnJoin(func(*netloop.Tick, *netloop.Client) error {
				if r.Spec().Name == "a" {
					joins++
				}
				return nil
			})
		}))
		openRoom(t, w, table("a"))
		c := w.JoinAs(client.Config{}, netlooptest.Link{Delay: 20 * time.Millisecond})
		w.Step(30)
		if err := c.Move(seats(t, w, "a", netloop.Reservation{})[0]); err != nil {
			t.Fatal(err)
		}
		w.Step(after)
		w.Break(c)
		w.Step(180)
		if c.State().Phase != client.Playing {
			t.Errorf("broken after %d ticks: %v: %v", after, c.State().Phase, c.Closed())
		}
		clients := 0
		for _, name := range []string{"", "a"} {
			w.Room(name).Tick(func(tick *netloop.Tick) {
				for other := range tick.Clients() {
					if clients++; other.Connected() && (c.Room() != name || c.ID() != other.ID()) {
						t.Errorf("broken after %d ticks: room %q has client %d, which is %d in %q", after, name, other.ID(), c.ID(), c.Room())
					}
				}
			})
		}
		if clients > 2 || c.Room() == "a" && joins == 0 {
			t.Errorf("broken after %d ticks: %d clients, %d joins", after, clients, joins)
		}
	}
}

// A crash of the server during a move does not end the client: its ticket is unknown to the next
// server, so the client joins the room again from which it came.
func TestAMovingClientOutlivesACrash(t *testing.T) {
	moving := 0
	for after := range 12 {
		w := netlooptest.New(t, lobbyGame(nil))
		openRoom(t, w, table("a"))
		c := w.JoinAs(client.Config{}, netlooptest.Link{Delay: 20 * time.Millisecond})
		w.Step(30)
		if err := c.Move(seats(t, w, "a", netloop.Reservation{})[0]); err != nil {
			t.Fatal(err)
		}
		w.Step(after)
		if c.Room() == "a" {
			break // It has arrived: this room is gone too.
		}
		if c.State().Phase == client.Moving {
			moving++
		}
		w.Restart(lobbyGame(nil))
		w.Step(300)
		if c.State().Phase != client.Playing || c.Room() != "" {
			t.Errorf("crash after %d ticks: %v in room %q: %v", after, c.State().Phase, c.Room(), c.Closed())
		}
		if s := c.Stats(); s.Drops != 1 || s.Resumes != 0 { // Messages of the old seat are lost.
			t.Errorf("crash after %d ticks: %d drops and %d resumes are counted", after, s.Drops, s.Resumes)
		}
	}
	if moving < 2 {
		t.Errorf("%d clients were moving", moving)
	}
}

// A client without a connection moves once it has reconnected. A room that ends right after it
// has moved its clients does not close them.
func TestAMovedClientOutlivesTheRoom(t *testing.T) {
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		told.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, m text) error {
			for c := range tick.Clients() {
				c.Move(tick, netloop.Ticket(m.S))
			}
			r.Close(tick, netloop.CodeGame, "over")
			return nil
		})
	}))
	openRoom(t, w, table("a"))
	openRoom(t, w, table("b"))
	c, away := joinRoom(w, "a"), joinRoom(w, "")
	w.Step(60)
	client.Send(c, told, text{S: string(seats(t, w, "b", netloop.Reservation{})[0])})
	w.Step(60)
	if w.Room("a").Ended() == nil {
		t.Error("the room has not ended")
	}
	plays(t, "a moved client", c, "b")

	ticket := seats(t, w, "b", netloop.Reservation{TTL: time.Minute})[0]
	w.Cut(away)
	w.Step(6 * 60) // Now its room has noticed.
	w.Tick(func(tick *netloop.Tick) {
		for c := range tick.Clients() {
			c.Move(tick, ticket)
		}
	})
	w.Heal(away)
	w.Step(6 * 60)
	plays(t, "a reconnected client", away, "b")
}

// A moved client needs no new token, and is the same player.
func TestAMovedClientIsTheSamePlayer(t *testing.T) {
	subjects := map[string]string{}
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		r.AllowMoves()
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
			if r.Spec().Name == "" {
				j.Subject, j.Claims = "ann", map[string]any{netloop.RoleClaim: 1}
			}
			return nil
		})
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			subjects[r.Spec().Name] = fmt.Sprint(c.Join().Subject, c.Join().Role())
			return nil
		})
	}))
	openRoom(t, w, table("a"))
	openRoom(t, w, table("b"))
	c := joinRoom(w, "")
	w.Step(30)
	for _, name := range []string{"a", "b"} {
		if err := c.Move(seats(t, w, name, netloop.Reservation{})[0]); err != nil {
			t.Fatal(err)
		}
		w.Step(60)
		plays(t, "a moved client", c, name)
	}
	if want := map[string]string{"": "ann1", "a": "ann1", "b": "ann1"}; fmt.Sprint(subjects) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", subjects, want)
	}
}

// Recordings of rooms replay after clients moved in and out.
func TestMovesReplay(t *testing.T) {
	g := lobbyGame(func(r *netloop.Room) {
		r.OnLeave(func(tick *netloop.Tick, _ *netloop.Client, why *netloop.Closed) {
			things.Spawn(tick, thing{N: int32(why.Code)})
		})
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			things.Spawn(tick, thing{N: int32(c.ID())})
			return nil
		})
	})
	var lobby bytes.Buffer
	tables := new(memoryFile)
	w := netlooptest.New(t, g, netlooptest.Record(&lobby), netlooptest.RecordRoom(func(netloop.RoomInfo) (io.WriteCloser, error) { return tables, nil }))
	if _, err := w.OpenRoom(table("a")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c := joinRoom(w, "")
		w.Step(30)
		client.Send(c, echo, text{S: "a"})
		w.Step(10)
		w.Settle()
		w.Step(40)
		plays(t, "a moved client", c, "a")
	}
	w.Room("a").Drain(0, netloop.CodeGame, "over")
	w.Step(30)
	for name, file := range map[string]io.Reader{"lobby": &lobby, "table": &tables.Buffer} {
		p, err := netloop.NewReplay(netloop.Config{}, g, file)
		for err == nil {
			_, err = p.Step()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A connection breaks in a move. A client without Reconnect ends. Other clients show the ticket
// again over the next connection, and a temporary refusal there does not end them.
func TestAMoveContinuesOnANewConnection(t *testing.T) {
	for off, want := range map[bool]netloop.Code{true: netloop.CodeLost, false: 0} {
		asked := 0
		w := netlooptest.New(t, lobbyGame(func(r *netloop.Room) {
			r.OnAdmit(func(context.Context, *netloop.Join) error {
				if r.Spec().Name != "a" {
					return nil
				}
				if asked++; asked == 1 {
					return netloop.Refuse(netloop.CodeBusy, "in a moment")
				}
				return nil
			})
		}))
		openRoom(t, w, table("a"))
		c := w.JoinAs(client.Config{Reconnect: client.Reconnect{Off: off}}, netlooptest.Link{Delay: 50 * time.Millisecond})
		w.Step(30)
		if err := c.Move(seats(t, w, "a", netloop.Reservation{})[0]); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			if w.Step(1); c.State().Phase == client.Moving {
				break
			}
		}
		w.Break(c)
		w.Step(180)
		if off {
			wasRefused(t, "a client that does not reconnect", c, want)
		} else {
			plays(t, "a client that reconnects", c, "a")
		}
		if off != (asked == 0) {
			t.Errorf("without another connection %v: the room was asked %d times", off, asked)
		}
	}
}

// A program requests a move, and in the same tick another program of the player takes its seat.
// The request ends with the program that made it.
func TestATakenOverProgramMovesNoOther(t *testing.T) {
	service, auth := login(t)
	w := netlooptest.New(t, lobbyGame(nil), netlooptest.Auth(auth),
		netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(1), Duplicate: netloop.DuplicateTakeOver}))
	openRoom(t, w, table("oak"))
	w.Step(1)
	join := func() *client.Client {
		return w.Join(signedToken(t, service, token.Grant{Subject: "ann", From: now(w), For: time.Minute}), nil, perfect, netlooptest.FPS(60))
	}
	first := join()
	w.Until(20, func() bool { return first.State().Phase == client.Playing })
	tickets, err := serverOf(w).Reserve(t.Context(), "oak", netloop.Reservation{})
	if err == nil {
		err = first.Move(tickets[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Advance(100 * time.Millisecond) // The request is sent; the room's tick comes later.
	second := join()
	w.Until(20, func() bool { return second.State().Phase == client.Playing })
	w.Step(3)
	if why := first.Closed(); why == nil || why.Code != netloop.CodeReplaced || second.Room() != "" {
		t.Errorf("the first program is closed with %v, the second is in room %q", why, second.Room())
	}
}

// A move over a connection that works is no attempt to reconnect: Reconnect.GiveUp does not count,
// also if the other room has one tick a second.
func TestAMoveIntoASlowRoomIsNotGivenUp(t *testing.T) {
	w := netlooptest.New(t, lobbyGame(nil))
	slow := table("slow")
	slow.Rate = netloop.Hz(1)
	openRoom(t, w, slow)
	c := w.JoinAs(client.Config{Reconnect: client.Reconnect{GiveUp: time.Second}}, netlooptest.Link{Delay: 50 * time.Millisecond})
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
	client.Send(c, echo, text{S: "slow"})
	w.Until(600, func() bool { return c.Room() == "slow" && c.State().Phase == client.Playing })
}
