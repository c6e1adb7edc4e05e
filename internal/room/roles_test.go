package room_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// comes admits a player by its name, as a player or spectator; its connection enters in the next
// step.
func (w *returns) comes(player string, watch bool, ticket string) (*testConn, *netloopv1.Welcome, error) {
	h := hello(bareSchema)
	h.Token, h.Spectate, h.Resume, h.Ticket = player, watch, newcomer(), ticket
	adm, err := w.server.Handler.Admit(context.Background(), h, "10.1.2.3:1")
	if err != nil {
		return nil, nil, err
	}
	return newTestConn(adm), adm.Welcome, nil
}

func (w *returns) mustCome(player string, watch bool, ticket string) (*testConn, *netloopv1.Welcome) {
	w.t.Helper()
	g, welcome, err := w.comes(player, watch, ticket)
	if err != nil {
		w.t.Fatal(err)
	}
	w.step()
	w.speak(g)
	w.step()
	return g, welcome
}

// leftReplaced is the game's record of a client that leaves because its player has joined in
// another role.
var leftReplaced = "leave: " + netloop.CodeReplaced.String()

// wantPlaces checks the numbers of players, spectators and reserved seats.
func (w *returns) wantPlaces(players, spectators, reserved int) {
	w.t.Helper()
	p, s, r := w.room.Admission.Count()
	if p != players || s != spectators || r != reserved {
		w.t.Errorf("%d play, %d watch and %d seats are reserved, want %d, %d and %d", p, s, r, players, spectators, reserved)
	}
}

// A player that joins again as a spectator, or the reverse, is reported to the game as a client
// that leaves and another that joins: the role known from OnJoin never changes.
func TestAChangeOfRoleIsALeaveAndAJoin(t *testing.T) {
	for name, lost := range map[string]bool{"connected": false, "dropped": true} {
		t.Run(name, func(t *testing.T) {
			w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 1, MaxSpectators: 1}})
			player, first := w.mustCome("ann", false, "")
			w.wantTold("join")
			before := w.client()
			var want []string
			if lost {
				player.End(lostLink)
				w.step()
				want = append(want, "drop")
			}
			watcher, second := w.mustCome("ann", true, "")
			w.wantTold(append(want, leftReplaced, "join", "role")...)
			if why, ok := player.Cause(); !lost && (!ok || why.Code != transport.CodeReplaced) {
				t.Errorf("the older connection is told %v", why)
			}
			if c := w.client(); c == before || !c.Join().Spectator || !second.GetSpectator() || second.GetResumed() || first.GetClientId() != second.GetClientId() {
				t.Errorf("the newer one is client %+v, welcomed by %v", c.Join(), second)
			}
			if before.Join().Spectator {
				t.Error("the role of the older client has changed")
			}
			w.wantPlaces(0, 1, 0)
			watcher.End(lostLink)
			w.step()
			w.mustCome("ann", true, "")
			w.wantTold("drop", "resume") // The same role is the same client.
			w.mustCome("ann", false, "")
			w.wantTold(leftReplaced, "join", "role")
			w.wantPlaces(1, 0, 0)
		})
	}
}

// Of two simultaneous connections of a player the newer one decides the role, for each order of
// entering the room.
func TestTheNewestConnectionDecidesTheRole(t *testing.T) {
	for name, swap := range map[string]bool{"in order": false, "overtaken": true} {
		t.Run(name, func(t *testing.T) {
			w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 1, MaxSpectators: 1}})
			w.mustCome("ann", false, "")
			watcher, _, err := w.comes("ann", true, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err = w.comes("ann", false, ""); err != nil {
				t.Fatal(err)
			}
			w.wantPlaces(1, 1, 0)
			want := []string{"join", leftReplaced, "join", "role", leftReplaced, "join", "role"}
			if swap {
				way := w.room.Inbox().Swap(nil)
				for i := range way {
					w.room.Inbox().Push(way[len(way)-1-i])
				}
				want = []string{"join", "resume"}
			}
			w.step()
			w.wantTold(want...)
			w.wantPlaces(1, 0, 0)
			if why, ok := watcher.Cause(); !ok || why.Code != transport.CodeReplaced {
				t.Errorf("the older of both is told %v", why)
			}
		})
	}
}

// A kicked client does not resume in the tick of its removal: the connection is told the reason,
// and the game is not called.
func TestAClientThatWasKickedDoesNotComeBack(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	_, welcome := w.arrive("ann", newcomer())
	w.wantTold("join")
	w.client().Kick(netloop.CodeGame, "cheats")
	back, _, err := w.ask("ann", with(welcome, 0))
	if err != nil {
		t.Fatal(err)
	}
	w.step()
	wasTold(t, "the connection that comes back", back, netloop.CodeGame, "cheats")
	w.wantTold()
	if w.scraped(`netloop_resumes_total{kind="kept"} 1`) {
		t.Error("it is counted as a return")
	}
}

// A ticket that a player of the room shows is used up.
func TestATicketOfATakeOverIsUsedUp(t *testing.T) {
	w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 2, MaxSpectators: 1}})
	w.mustCome("ann", false, "")
	tickets, err := w.s.Reserve(t.Context(), "", netloop.Reservation{})
	if err != nil {
		t.Fatal(err)
	}
	w.wantPlaces(1, 0, 1)
	w.mustCome("ann", false, string(tickets[0]))
	w.wantTold("join", "resume")
	w.wantPlaces(1, 0, 0)
	if _, _, err := w.comes("eve", false, string(tickets[0])); err == nil {
		t.Error("somebody else comes in by the ticket")
	}
	w.mustCome("bob", false, "") // The seat that the ticket held is free.
}

// Another player with the ticket of a client that never sent data gets the seat as a separate
// client.
func TestAnotherPlayerWithATicketIsAnotherClient(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	tickets, err := w.s.Reserve(t.Context(), "", netloop.Reservation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.comes("ann", false, string(tickets[0])); err != nil {
		t.Fatal(err)
	}
	w.step()
	w.mustCome("bob", false, string(tickets[0]))
	w.wantTold("join", leftReplaced, "join")
	w.wantPlaces(1, 0, 0)
	if got := w.client().Join().Subject; got != "bob" {
		t.Errorf("the client is %q", got)
	}
}

// wantRefused checks the code of a refusal.
func wantRefused(t *testing.T, what string, err error, code transport.Code) {
	t.Helper()
	var refused *transport.Refusal
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("%s: %v, want the code %v", what, err, code)
	}
}

// A player's new program, without secret and ticket, takes its client over in a private room and
// in a locked one. A stranger is told that the room does not exist.
func TestAPlayerReturnsToAPrivateRoom(t *testing.T) {
	w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{Private: true, Code: "code"}})
	_, _, err := w.comes("ann", false, "")
	wantRefused(t, "a player who is not there", err, netloop.CodeRoomUnknown)
	w.mustCome("ann", false, "code")
	w.room.Admission.Lock(true)
	w.mustCome("ann", false, "")
	w.wantTold("join", "resume")
	_, _, err = w.comes("eve", false, "")
	wantRefused(t, "a stranger", err, netloop.CodeRoomUnknown)
	w.wantPlaces(1, 0, 0)
}

// A refusal by the game does not reveal to a stranger that a private room exists.
func TestAPrivateRoomHidesItsAdmission(t *testing.T) {
	b := newBareAs(t, netloop.Config{Room: netloop.RoomSpec{Private: true, Code: "code"}}, func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
			if j.Subject = j.Token; j.Token == "eve" {
				return netloop.Refuse(netloop.CodeRefused, "not you")
			}
			return nil
		})
	})
	w := &returns{bare: b}
	w.mustCome("ann", false, "code")
	_, _, err := w.comes("eve", false, "")
	wantRefused(t, "a stranger", err, netloop.CodeRoomUnknown)
	_, _, err = w.comes("eve", false, "code")
	wantRefused(t, "who has the code", err, netloop.CodeRefused)
}

// A player without connection and secret can return to a room that refuses newcomers because it is
// overloaded.
func TestAPlayerReturnsToAnOverloadedRoom(t *testing.T) {
	w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{KeepDropped: time.Hour}})
	g, _ := w.mustCome("ann", false, "")
	overloaded := func() {
		t.Helper()
		w.tick++
		in := w.room.Timeline().Input(w.tick)
		in.Overload = uint8(overload.Refusing)
		in.Epoch, in.Start = loop.Epoch{Tick: 1}, w.room.Timeline().GameTime(w.tick)
		if err := w.room.Step(in); err != nil {
			t.Fatal(err)
		}
	}
	overloaded()
	_, _, err := w.comes("ann", false, "")
	wantRefused(t, "a player whose connection is up", err, netloop.CodeBusy)
	g.End(lostLink)
	overloaded()
	_, _, err = w.comes("bob", false, "")
	wantRefused(t, "a newcomer", err, netloop.CodeBusy)
	if _, _, err = w.comes("ann", false, ""); err != nil {
		t.Error("a player who has lost the connection:", err)
	}
	overloaded()
	w.wantTold("join", "drop", "resume")
}
