package e2e_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/net/inproc"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/netlooptest"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// gated is a server with tokens, the rooms "a" and "b", which clients may leave, the private room
// "den" with the code HIDDEN, and an Opener that opens any room. It records joins.
type gated struct {
	t       *testing.T
	server  *netloop.Server
	service *token.Signer
	scope   string // the room of the tokens that enters uses; empty: all rooms

	mu    sync.Mutex
	asked []string          // names of rooms that the game was asked to open
	in    map[string]string // the newest client of each room
}

func newGated(t *testing.T) *gated {
	g := &gated{t: t, scope: "a", in: map[string]string{}}
	var auth netloop.Auth
	g.service, auth = login(t)
	game := roomsGame{script: func(r *netloop.Room) {
		r.AllowMoves()
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.in[r.Spec().Name] = fmt.Sprintf("%s, role %d, watches %v", c.Join().Subject, c.Join().Role(), c.Spectator())
			return nil
		})
	}, asked: func(name string) (netloop.RoomSpec, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked = append(g.asked, name)
		return netloop.RoomSpec{}, nil
	}}
	g.server, _ = supervised(t.Context(), t, netloop.Config{Offline: true, Auth: auth}, game)
	for _, spec := range []netloop.RoomSpec{{Name: "a"}, {Name: "b"}, {Name: "c", MaxSpectators: 4}, {Name: "den", Private: true, Code: "HIDDEN"}} {
		if _, err := g.server.OpenRoom(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func (g *gated) token(room string) string {
	return signedToken(g.t, g.service, token.Grant{Subject: "ann", Room: room, Role: 3, From: time.Now(), For: time.Minute})
}

func (g *gated) ticket(room string, v netloop.Reservation) string {
	g.t.Helper()
	all, err := g.server.Reserve(g.t.Context(), room, v)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(all[0])
}

// enters joins a client to room a.
func (g *gated) enters() (*nettest.Owner, *transport.Session, *netloopv1.Welcome) {
	g.t.Helper()
	d := &inproc.Dialer{Host: bridge.Netloop.Server(g.server).Local}
	g.t.Cleanup(d.Close)
	owner := nettest.NewOwner(nil)
	hello := bridge.Netloop.Schema(schema).Hello()
	hello.Room, hello.Token, hello.Moves, hello.Resume = "a", g.token(g.scope), true, &netloopv1.Resume{}
	s, w, err := d.Dial(g.t.Context(), transport.Greeting{Hello: hello}, transport.SessionConfig{
		Inbox: owner.Arrivals, Limits: transport.DefaultLimits, Clock: func() time.Duration { return 0 },
	})
	if err != nil {
		g.t.Fatal(err)
	}
	owner.Find(g.t, "the room", nettest.Kind(transport.Accepted))
	return owner, s, w
}

// moves lets a client ask for a move, and then send any hello. It returns the server's refusal.
func (g *gated) moves(ask string, say func(hello *netloopv1.Hello, w *netloopv1.Welcome)) error {
	g.t.Helper()
	owner, s, w := g.enters()
	s.AskMove(ask)
	s.Flush(0)
	owner.Find(g.t, "moved", nettest.Kind(transport.MoveTold))
	hello := bridge.Netloop.Schema(schema).Hello()
	hello.Moves = true
	say(hello, w)
	done := make(chan error, 1)
	s.Follow(transport.Next{
		Hello: hello, Session: transport.SessionConfig{Inbox: owner.Arrivals, Limits: transport.DefaultLimits},
		Done: func(_ *transport.Session, _ *netloopv1.Welcome, err error) { done <- err },
	})
	select {
	case err := <-done:
		return err
	case <-time.After(nettest.Patience):
		g.t.Fatal("the server does not answer the hello")
		return nil
	}
}

// Only the ticket of moved identifies a client that moves. Any other hello on its connection is
// checked like that of a new client: a token for one room is refused in others, and no Opener
// runs.
func TestATokenForOneRoomIsRefusedInOthers(t *testing.T) {
	g := newGated(t)
	for what, c := range map[string]struct {
		ask  string
		say  func(*netloopv1.Hello, *netloopv1.Welcome)
		code netloop.Code
	}{
		"another room by its name":        {"anything", func(h *netloopv1.Hello, _ *netloopv1.Welcome) { h.Room = "b" }, netloop.CodeUnauthenticated},
		"a room that the game would open": {"anything", func(h *netloopv1.Hello, _ *netloopv1.Welcome) { h.Room = "made up" }, netloop.CodeUnauthenticated},
		"with an unknown secret": {"anything", func(h *netloopv1.Hello, _ *netloopv1.Welcome) {
			h.Room, h.Resume = "b", &netloopv1.Resume{Token: make([]byte, 32)}
		}, netloop.CodeUnauthenticated},
		"with such a secret and the ticket of moved": {"anything", func(h *netloopv1.Hello, _ *netloopv1.Welcome) {
			h.Room, h.Ticket, h.Resume = "b", "anything", &netloopv1.Resume{Token: make([]byte, 32)}
		}, netloop.CodeUnauthenticated},
		"with the secret of its place in the first room": {"anything", func(h *netloopv1.Hello, w *netloopv1.Welcome) {
			h.Room, h.Resume = "b", &netloopv1.Resume{Token: w.GetResumeToken()}
		}, netloop.CodeUnauthenticated},
		"a room to open, with a secret": {"anything", func(h *netloopv1.Hello, _ *netloopv1.Welcome) {
			h.Room, h.Ticket, h.Resume = "made up", "anything", &netloopv1.Resume{Token: make([]byte, 32)}
		}, netloop.CodeUnauthenticated},
		"with a ticket other than that of moved": {"anything", func(h *netloopv1.Hello, _ *netloopv1.Welcome) {
			h.Ticket = g.ticket("b", netloop.Reservation{})
		}, netloop.CodeUnauthenticated},
		"with a ticket that opens nothing": {"anything", func(h *netloopv1.Hello, _ *netloopv1.Welcome) { h.Ticket = "anything" }, netloop.CodeTicket},
		"by the code of a private room":    {"HIDDEN", func(h *netloopv1.Hello, _ *netloopv1.Welcome) { h.Ticket = "HIDDEN" }, netloop.CodeUnauthenticated},
		"with a token for that room": {"anything", func(h *netloopv1.Hello, _ *netloopv1.Welcome) {
			h.Room, h.Token = "b", g.token("a")
		}, netloop.CodeUnauthenticated},
	} {
		var refused *transport.Refusal
		if err := g.moves(c.ask, c.say); !errors.As(err, &refused) || refused.Code != c.code {
			t.Errorf("%s: %v, want a refusal with %v", what, err, c.code)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) > 0 || len(g.in) != 1 {
		t.Errorf("the game was asked to open %q, and the rooms have %v: want clients in a only", g.asked, g.in)
	}
}

// A token for all rooms is used once: a client that moves needs exactly the ticket of moved, or
// another token.
func TestATokenForAllRoomsIsUsedOnce(t *testing.T) {
	g := newGated(t)
	g.scope = ""
	for what, say := range map[string]func(*netloopv1.Hello){
		"another room by its name":          func(h *netloopv1.Hello) { h.Room = "b" },
		"a room that the game would open":   func(h *netloopv1.Hello) { h.Room = "made up" },
		"the ticket of moved, and a secret": func(h *netloopv1.Hello) { h.Ticket, h.Resume = "anything", &netloopv1.Resume{Token: make([]byte, 32)} },
		"such a secret and another room": func(h *netloopv1.Hello) {
			h.Room, h.Ticket, h.Resume = "b", "anything", &netloopv1.Resume{Token: make([]byte, 32)}
		},
	} {
		var refused *transport.Refusal
		err := g.moves("anything", func(h *netloopv1.Hello, _ *netloopv1.Welcome) { say(h) })
		if !errors.As(err, &refused) || refused.Code != netloop.CodeUnauthenticated {
			t.Errorf("%s: %v, want a refusal because of the missing token", what, err)
		}
	}
}

// A ticket from the server moves a client even if its token is for another room. The client
// remains the same player and gets the reserved kind of seat. A new token admits it to any room,
// once.
func TestAMoveByATicketKeepsThePlayer(t *testing.T) {
	g := newGated(t)
	enters := func(what, room, want string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		nettest.Eventually(t, what, func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.in[room] == want
		})
	}
	plays := g.ticket("b", netloop.Reservation{})
	enters("a seat to play", "b", "ann, role 3, watches false",
		g.moves(plays, func(h *netloopv1.Hello, _ *netloopv1.Welcome) { h.Ticket, h.Spectate = plays, true }))
	watches := g.ticket("c", netloop.Reservation{Spectator: true})
	enters("a seat to watch from", "c", "ann, role 3, watches true",
		g.moves(watches, func(h *netloopv1.Hello, _ *netloopv1.Welcome) { h.Ticket = watches }))
	once := signedToken(t, g.service, token.Grant{Subject: "bob", Room: "b", From: time.Now(), For: time.Minute})
	say := func(h *netloopv1.Hello, _ *netloopv1.Welcome) { h.Room, h.Token = "b", once }
	enters("a token for that room", "b", "bob, role 0, watches false", g.moves("anything", say))
	var refused *transport.Refusal
	if err := g.moves("anything", say); !errors.As(err, &refused) || refused.Code != netloop.CodeUnauthenticated {
		t.Errorf("a token that was used: %v", err)
	}
}

// A client asks for a move only if the game has allowed it. Otherwise Move returns an error, and
// a client that asks nevertheless violates the protocol. The game itself may move the client.
func TestClientsMoveOnlyWhereTheGameAllowsIt(t *testing.T) {
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		if r.Spec().Name == "open" {
			r.AllowMoves()
		}
	}))
	openRoom(t, w, table("open"))
	openRoom(t, w, table("shut"))
	c := joinRoom(w, "shut")
	w.Step(30)
	if c.Move(seats(t, w, "open", netloop.Reservation{})[0]) == nil {
		t.Error("a client may ask for a move without AllowMoves")
	}
	w.Room("shut").Tick(func(tick *netloop.Tick) {
		for other := range tick.Clients() {
			other.Move(tick, seats(t, w, "open", netloop.Reservation{})[0])
		}
	})
	w.Step(60)
	plays(t, "a client that the game sends on", c, "open")
	if err := c.Move(seats(t, w, "shut", netloop.Reservation{})[0]); err != nil {
		t.Error(err)
	}
	w.Step(60)
	plays(t, "a client that asks to move", c, "shut")

	s, _ := supervised(t.Context(), t, netloop.Config{Offline: true}, script(func(r *netloop.Room) {}))
	d := &inproc.Dialer{Host: bridge.Netloop.Server(s).Local}
	defer d.Close()
	owner := nettest.NewOwner(nil)
	session, welcome, err := d.Dial(t.Context(), transport.Greeting{Hello: bridge.Netloop.Schema(schema).Hello()}, transport.SessionConfig{
		Inbox: owner.Arrivals, Limits: transport.DefaultLimits, Clock: func() time.Duration { return 0 },
	})
	if err != nil || welcome.GetMoves() {
		t.Fatal("it may move: ", welcome.GetMoves(), err)
	}
	session.AskMove("anything")
	session.Flush(0)
	if a := owner.Find(t, "the end", nettest.Kind(transport.Gone)); a.Closed.Code != netloop.CodeProtocol {
		t.Errorf("a client that asks nevertheless is closed with %v", a.Closed)
	}
}
