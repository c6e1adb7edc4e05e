package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/netlooptest"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// during runs a function while room oak moves from x to y: after it has stored its state, or while
// the other server opens it.
func (b *handOverBed) during(opens bool, fn func()) {
	if opens {
		b.y.during = fn
	} else {
		b.x.stored = fn
	}
}

// moved waits until room oak runs on y, with these players.
func (b *handOverBed) moved(players ...string) {
	b.Helper()
	b.until(fmt.Sprint(players, " play on y"), func() bool {
		return !slices.ContainsFunc(players, func(name string) bool { return b.noted("y oak: "+name+" joins") == 0 })
	})
}

// seatProbe is a server's member that asks for a newcomer's seat of room oak before and after the
// server has asked for the seats of its players.
type seatProbe struct {
	cluster.Cluster
	answers []transport.Code
}

func (p *seatProbe) Call(ctx context.Context, c cluster.Call) ([]byte, error) {
	if c.Method != "seat" {
		return p.Cluster.Call(ctx, c)
	}
	ask := func() {
		q, _ := proto.Marshal(&clusterv1.Bind{Room: []byte("oak")})
		answer, err := p.Cluster.Call(ctx, cluster.Call{To: c.To, Method: "bind", Body: q, Timeout: c.Timeout})
		var reply clusterv1.Reply
		if err == nil && proto.Unmarshal(answer, &reply) == nil {
			p.answers = append(p.answers, transport.Code(reply.GetCode()))
		}
	}
	ask()
	defer ask()
	return p.Cluster.Call(ctx, c)
}

// The players of a full room keep their seats in a move: newcomers that try to join all the time,
// at both servers, get none of them.
func TestNewcomersTakeNoSeatOfAMovingRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probe := new(seatProbe)
		b := newHandOverBed(t, netlooptest.Configure(func(c *netloop.Config) {
			if c.Cluster.ID == "x" {
				probe.Cluster = c.Cluster.Via
				c.Cluster.Via = probe
			}
		}))
		spec := bookRoom("oak")
		spec.MaxClients = 2
		b.open(spec)
		all := b.join("oak", "ann", "bob")
		var others []*client.Client
		knock := func() {
			for _, s := range []*bookServer{b.x, b.y} {
				others = append(others, s.JoinAs(client.Config{Room: "oak", Token: fmt.Sprint("fan", len(others))}, netlooptest.Link{}))
			}
		}
		b.during(true, func() { knock() })
		b.x.Room("oak").Tick(func(t *netloop.Tick) { t.Room().HandOver(t, netloop.Place{}, nil) })
		for range 300 {
			knock()
			b.advance(time.Millisecond)
		}
		b.moved("ann", "bob")
		if want := []transport.Code{netloop.CodeBusy, netloop.CodeFull}; !slices.Equal(probe.answers, want) {
			t.Errorf("before and after its players have seats, a newcomer gets %v, want %v", probe.answers, want)
		}
		for i, c := range all {
			if c.Closed() != nil || c.State().Phase != client.Playing {
				t.Errorf("player %d: %v, %v", i, c.State(), c.Closed())
			}
		}
		if n := b.noted("fan"); n > 0 {
			t.Errorf("%d newcomers have joined the full room: %q", n, b.events)
		}
		_ = all[0].Close()
		b.until("a newcomer gets the free seat", func() bool { knock(); return b.noted("y oak: fan") > 0 })
	})
}

// A room that was told to close while it moved ends on the other server, with the reason.
func TestARoomIsClosedWhileItMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, opens := range []bool{false, true} {
			b := newHandOverBed(t)
			b.open(bookRoom("oak"))
			c := b.join("oak", "ann")[0]
			b.during(opens, func() {
				if err := serverOf(b.x.World).CloseRoom("oak", 0, netloop.CodeGame+1, "over"); err != nil {
					t.Error(err)
				}
			})
			b.x.Room("oak").Tick(func(t *netloop.Tick) { t.Room().HandOver(t, netloop.Place{}, nil) })
			b.until("ann is closed", func() bool { return c.Closed() != nil })
			if why := c.Closed(); why.Code != netloop.CodeGame+1 || why.Text != "over" {
				t.Errorf("while it opens %v: %v, events %q", opens, why, b.events)
			}
			b.until("no server has the room", func() bool {
				_, at := serverOf(b.x.World).RoomServer("oak")
				_, too := serverOf(b.y.World).RoomServer("oak")
				return !at && !too
			})
		}
	})
}

// Only one of two hand-overs moves the room, and a room that ends does not move.
func TestARoomMovesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHandOverBed(t)
		b.open(bookRoom("oak"))
		b.join("oak", "ann")
		b.x.Room("oak").Tick(func(t *netloop.Tick) {
			for range 2 {
				t.Room().HandOver(t, netloop.Place{}, func(_ *netloop.Tick, err error) { b.told = append(b.told, fmt.Sprint(err)) })
			}
		})
		b.moved("ann")
		b.advance(time.Second)
		if b.noted("ann joins") != 2 || len(b.told) > 2 {
			t.Errorf("events %q, told %q", b.events, b.told)
		}
		b.y.Room("oak").Tick(func(t *netloop.Tick) {
			_ = t.Room().Server().CloseRoom("oak", time.Second, netloop.CodeClosing, "over")
			t.Room().HandOver(t, netloop.Place{}, nil)
		})
		b.until("the end", func() bool { return b.y.Room("oak").Ended() != nil })
		b.advance(time.Second)
		if b.noted("ann joins") != 2 {
			t.Errorf("a room that ends has moved: %q", b.events)
		}
	})
}

// During a move one player has no connection, a second program of another player takes its client
// over, a third moves to another room of the server, and a fourth to a room of the other server.
// Afterwards each player is in one room.
func TestClientsOnTheirWayWhileARoomMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, opens := range []bool{false, true} {
			b := newHandOverBed(t)
			b.open(bookRoom("oak"))
			b.open(bookRoom("elm"))
			openRoom(b.T, b.y.World, bookRoom("ash"))
			all := b.join("oak", "ann", "bob", "cid", "dan")
			ann, bob, cid, dan := all[0], all[1], all[2], all[3]
			b.x.Cut(ann)
			b.until("ann has no connection", func() bool { return ann.State().Phase == client.Reconnecting })
			var again *client.Client
			b.during(opens, func() {
				again = b.x.JoinAs(client.Config{Room: "oak", Token: "bob"}, netlooptest.Link{})
				b.x.Heal(ann)
			})
			elm, err := serverOf(b.x.World).Reserve(t.Context(), "elm", netloop.Reservation{})
			if err != nil {
				t.Fatal(err)
			}
			ash, err := serverOf(b.y.World).Reserve(t.Context(), "ash", netloop.Reservation{})
			if err != nil {
				t.Fatal(err)
			}
			b.x.Room("oak").Tick(func(t *netloop.Tick) {
				for c := range t.Clients() {
					switch c.Join().Subject {
					case "cid":
						c.Move(t, elm[0])
					case "dan":
						c.Move(t, ash[0])
					}
				}
				t.Room().HandOver(t, netloop.Place{}, nil)
			})
			b.moved("ann")
			b.until("all play, bob with one program", func() bool {
				if why := again.Closed(); why != nil && why.Code == netloop.CodeBusy { // It moves.
					again = b.x.JoinAs(client.Config{Room: "oak", Token: "bob"}, netlooptest.Link{})
				}
				first, second := bob.State().Phase == client.Playing, again.State().Phase == client.Playing
				return ann.State().Phase == client.Playing && first != second && cid.State().Phase == client.Playing && dan.State().Phase == client.Playing
			})
			b.advance(5 * time.Second)
			gone := bob
			if gone.Closed() == nil {
				gone = again
			}
			if ann.Room() != "oak" || cid.Room() != "elm" || dan.Room() != "ash" || gone.Closed() == nil || gone.Closed().Code != netloop.CodeReplaced {
				t.Errorf("while it opens %v: rooms %q, %q and %q; %v", opens, ann.Room(), cid.Room(), dan.Room(), gone.Closed())
			}
			for room, want := range map[*netloop.Room]int{b.y.rooms["oak"]: 2, b.x.rooms["elm"]: 1, b.y.rooms["ash"]: 1} {
				if got := len(clientsOf(b, room)); got != want {
					t.Errorf("while it opens %v: %d clients in %s, want %d; events %q", opens, got, room.Spec().Name, want, b.events)
				}
			}
		}
	})
}

// clientsOf returns the players in a room.
func clientsOf(b *handOverBed, r *netloop.Room) (names []string) {
	for _, s := range []*bookServer{b.x, b.y} {
		if s.rooms[r.Spec().Name] == r {
			s.Room(r.Spec().Name).Tick(func(t *netloop.Tick) {
				for c := range t.Clients() {
					names = append(names, c.Join().Subject)
				}
			})
		}
	}
	return names
}

// Delayed spectators see the end of a room that moves, and watch it on the other server afterwards.
// A ticket that was not used before the move is refused, and then the room is joined without it.
func TestSpectatorsAndTicketsOfAMovingRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHandOverBed(t)
		spec := bookRoom("oak")
		spec.SpectatorDelay = 2 * time.Second
		b.open(spec)
		b.join("oak", "ann")
		watcher := b.x.JoinAs(client.Config{Room: "oak", Token: "eve", Spectate: true}, netlooptest.Link{})
		b.until("eve watches", func() bool { return watcher.State().Phase == client.Playing })
		tickets, err := serverOf(b.x.World).Reserve(t.Context(), "oak", netloop.Reservation{})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.handOver("oak", netloop.Place{}); got != "<nil>" {
			t.Fatal(got)
		}
		b.moved("ann")
		b.until("eve is closed", func() bool { return watcher.Closed() != nil })
		if why := watcher.Closed(); why.Code != netloop.CodeClosing || why.Text != "the room continues on another server, which has no seat for you: join it again by its name" {
			t.Errorf("eve: %v", why)
		}
		late := b.x.JoinAs(client.Config{Ticket: string(tickets[0]), Token: "dan"}, netlooptest.Link{})
		b.until("dan is refused", func() bool { return late.Closed() != nil })
		if late.Closed().Code != netloop.CodeTicket {
			t.Errorf("dan: %v", late.Closed())
		}
		watcher = b.x.JoinAs(client.Config{Room: "oak", Token: "eve", Spectate: true}, netlooptest.Link{})
		late = b.x.JoinAs(client.Config{Room: "oak", Token: "dan"}, netlooptest.Link{})
		b.moved("dan")
		b.until("eve watches on y", func() bool { return watcher.State().Phase == client.Playing })
	})
}

// A room loses its name while its own hand-over waits for a client's move, and the newer room has
// loaded its state: its clients move to the newer room, and it ends.
func TestARoomLosesItsNameWhileItsHandOverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHandOverBed(t)
		old := b.open(bookRoom("oak"))
		openRoom(t, b.y.World, bookRoom("ash"))
		all := b.join("oak", "ann", "dan")
		ash, err := serverOf(b.y.World).Reserve(t.Context(), "ash", netloop.Reservation{})
		if err != nil {
			t.Fatal(err)
		}
		b.hub.Partition("x", 1)
		b.advance((cluster.LeaseBeats + 1) * cluster.Beat)
		openRoom(t, b.y.World, bookRoom("oak"))
		old.Tick(func(t *netloop.Tick) {
			for c := range t.Clients() {
				if c.Join().Subject == "dan" {
					c.Move(t, ash[0])
				}
			}
			t.Room().HandOver(t, netloop.Place{Server: "y"}, func(_ *netloop.Tick, err error) { b.told = append(b.told, fmt.Sprint(err)) })
		})
		b.advance(100 * time.Millisecond)
		b.hub.Partition("x", 0)
		b.until("the end of the older room", func() bool { return old.Ended() != nil })
		if len(b.told) > 1 || b.noted("x oak: duplicate") != 1 {
			t.Errorf("told %q, events %q", b.told, b.events)
		}
		b.until("ann plays on y", func() bool {
			return b.noted("y oak: ann joins as 3") == 1 && all[0].State().Phase == client.Playing
		})
	})
}

// A hand-over waits for moves of clients for cluster.StoreTime at most, also if a move is asked for
// again and again.
func TestAHandOverWaitsForMovesForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHandOverBed(t)
		old := b.open(bookRoom("oak"))
		openRoom(t, b.y.World, bookRoom("ash"))
		b.join("oak", "ann")
		ash, err := serverOf(b.y.World).Reserve(t.Context(), "ash", netloop.Reservation{})
		if err != nil {
			t.Fatal(err)
		}
		b.hub.Partition("x", 1)
		began := b.x.Now()
		old.Tick(func(t *netloop.Tick) {
			t.Room().HandOver(t, netloop.Place{Server: "y"}, func(_ *netloop.Tick, err error) { b.told = append(b.told, fmt.Sprint(err)) })
		})
		for len(b.told) == 0 && b.x.Now()-began < 6*cluster.StoreTime {
			old.Tick(func(t *netloop.Tick) {
				for c := range t.Clients() {
					c.Move(t, ash[0])
				}
			})
			b.advance(time.Millisecond)
		}
		if took := b.x.Now() - began; len(b.told) != 1 || took < cluster.StoreTime || took > 3*cluster.StoreTime {
			t.Errorf("after %v, told %q", took, b.told)
		}
	})
}
