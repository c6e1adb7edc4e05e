package e2e_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/netlooptest"
)

// placeBed is two servers on which a player has one place.
type placeBed struct {
	*fleet
	a, b *netloop.Server
}

// named makes the token of a client its player.
func named(r *netloop.Room) {
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		if j.Subject == "" {
			j.Subject = j.Token
		}
		return nil
	})
}

func newPlaceBed(t *testing.T, policy netloop.DuplicatePolicy) *placeBed {
	p := &placeBed{fleet: newFleet(t)}
	p.duplicate = policy
	p.a, _ = p.serve("a", "elm", named)
	p.b, _ = p.serve("b", "oak", named)
	waitFor(t, func() bool { _, ok := p.a.RoomServer("oak"); return ok })
	return p
}

// dial connects anna to a room.
func (p *placeBed) dial(s *netloop.Server, cfg client.Config) (*client.Client, error) {
	p.t.Helper()
	cfg.Token, cfg.Schema = "anna", schema
	c, err := client.Dial(p.t.Context(), s.Addr().String(), cfg)
	if err == nil {
		p.t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func (p *placeBed) join(s *netloop.Server, room string) *client.Client {
	p.t.Helper()
	c, err := p.dial(s, client.Config{Room: room})
	if err != nil {
		p.t.Fatal(err)
	}
	p.until(c, room)
	return c
}

// replaced waits until a client learns that its player has joined another room.
func (p *placeBed) replaced(c *client.Client) {
	p.t.Helper()
	waitFor(p.t, func() bool { c.Step(5 * time.Millisecond); return c.Closed() != nil })
	if code := c.Closed().Code; code != netloop.CodeReplaced {
		p.t.Errorf("the older client is closed with %v", c.Closed())
	}
}

func (p *placeBed) refused(s *netloop.Server, cfg client.Config, want netloop.Code) {
	p.t.Helper()
	_, err := p.dial(s, cfg)
	if refused := (*netloop.Refusal)(nil); !errors.As(err, &refused) || refused.Code != want {
		p.t.Errorf("%q: %v, want %v", cfg.Room, err, want)
	}
}

// saw waits until a room has noted an event.
func (p *placeBed) saw(event string) {
	p.t.Helper()
	waitFor(p.t, func() bool { return slices.Contains(p.noted(), event) })
}

// The newest join of a player has the place: the client in the other room, of this server or of
// another one, leaves before.
func TestAPlayerTakesItsPlaceOverInACluster(t *testing.T) {
	p := newPlaceBed(t, netloop.DuplicateTakeOver)
	first := p.join(p.a, "elm")
	second := p.join(p.b, "oak")
	p.replaced(first)
	third := p.join(p.b, "")
	p.replaced(second)
	fourth := p.join(p.b, "elm") // It is sent to the other server.
	p.replaced(third)
	want := []string{
		"join elm anna", "leave elm: replaced by another connection", "join oak anna", "leave oak: replaced by another connection",
		"join lobby of b anna", "leave lobby of b: replaced by another connection", "join elm anna",
	}
	p.until(fourth, "elm")
	if got := p.noted(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	full := table("ash")
	full.MaxClients = 1
	if _, err := p.b.OpenRoom(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	if _, err := p.b.Reserve(t.Context(), "ash", netloop.Reservation{}); err != nil {
		t.Fatal(err)
	}
	p.refused(p.b, client.Config{Room: "ash"}, netloop.CodeFull)
	p.until(fourth, "elm") // A room that refuses the player takes no place.
}

// A player with a place in another room is refused until it has left.
func TestAPlayerIsRefusedInAnotherRoomOfACluster(t *testing.T) {
	p := newPlaceBed(t, netloop.DuplicateRefuse)
	first := p.join(p.a, "elm")
	p.refused(p.b, client.Config{Room: "oak"}, netloop.CodeRefused)
	p.refused(p.a, client.Config{}, netloop.CodeRefused)
	p.until(first, "elm")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	p.saw("leave elm: left")
	p.join(p.b, "oak")
}

// A move passes the place on, to another server and within one; a client that is refused there has
// it again.
func TestAMovePassesThePlaceOn(t *testing.T) {
	t.Parallel()
	for _, policy := range []netloop.DuplicatePolicy{netloop.DuplicateTakeOver, netloop.DuplicateRefuse} {
		p := newPlaceBed(t, policy)
		c := p.join(p.a, "")
		for _, room := range []string{"elm", "oak", "elm", "oak"} {
			client.Send(c, echo, text{S: room})
			p.until(c, room)
		}
		p.saw("leave elm: moved to another room")
		if policy == netloop.DuplicateRefuse {
			p.refused(p.a, client.Config{}, netloop.CodeRefused)
			p.until(c, "oak")
			continue
		}
		next := p.join(p.a, "")
		p.replaced(c)
		p.until(next, "")
	}
}

// A client that the other server refuses, or that dies, is back in its room, which is its place
// again.
func TestAReturningClientHasItsPlaceAgain(t *testing.T) {
	p := newPlaceBed(t, netloop.DuplicateRefuse)
	asked, answer := make(chan struct{}), make(chan struct{})
	_, _ = p.serve("c", "ash", func(r *netloop.Room) {
		r.OnJoin(func(*netloop.Tick, *netloop.Client) error {
			close(asked)
			<-answer
			return netloop.Refuse(netloop.CodeRefused, "not now")
		})
	})
	waitFor(t, func() bool { _, ok := p.a.RoomServer("ash"); return ok })
	c := p.join(p.a, "elm")
	client.Send(c, echo, text{S: "ash"})
	stepUntilClosed(t, c, asked)
	close(answer)
	p.until(c, "elm")
	p.saw("resume elm")
	p.refused(p.b, client.Config{Room: "oak"}, netloop.CodeRefused)
	p.until(c, "elm")
}

// The place on a killed or frozen server is free when its lease ends. If the server returns, its
// client learns of the newer place.
func TestThePlaceOnALostServerExpires(t *testing.T) {
	p := newPlaceBed(t, netloop.DuplicateRefuse)
	first := p.join(p.a, "elm")
	p.hub.Partition("a", 1)
	p.ahead.Add(int64(4 * time.Second))
	p.hub.Settle()
	p.refused(p.b, client.Config{Room: "oak"}, netloop.CodeBusy)
	p.ahead.Add(int64(cluster.LeaseBeats * cluster.Beat))
	p.join(p.b, "oak")
	p.until(first, "elm") // Both sides of a partition play.
	p.hub.Partition("a", 0)
	p.replaced(first)
	p.refused(p.a, client.Config{}, netloop.CodeRefused)
}

// While the store is gone, players keep their places, also between rooms of their server, and
// players without a place are refused.
func TestPlacesWithoutTheStore(t *testing.T) {
	p := newPlaceBed(t, netloop.DuplicateTakeOver)
	c := p.join(p.a, "")
	p.hub.StoreGone(true)
	client.Send(c, echo, text{S: "elm"})
	p.until(c, "elm")
	other, err := client.Dial(t.Context(), p.b.Addr().String(), client.Config{Token: "bob", Schema: schema})
	if refused := (*netloop.Refusal)(nil); !errors.As(err, &refused) || refused.Code != netloop.CodeBusy {
		t.Errorf("a newcomer: %v, %v", other, err)
	}
	p.refused(p.b, client.Config{}, netloop.CodeBusy)
	p.until(c, "elm")
	p.hub.StoreGone(false)
	p.join(p.b, "oak")
	p.replaced(c)
}

// A room that is handed over takes the places of its players along.
func TestAHandOverPassesPlacesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, policy := range []netloop.DuplicatePolicy{netloop.DuplicateTakeOver, netloop.DuplicateRefuse} {
			b := newHandOverBed(t, netlooptest.Configure(func(c *netloop.Config) { c.Cluster.Duplicate = policy }))
			b.open(bookRoom("oak"))
			all := b.join("oak", "ann", "bob")
			if got := b.handOver("oak", netloop.Place{}); got != "<nil>" {
				t.Fatal(got)
			}
			b.until("all play on y", func() bool { return b.noted("y oak: ") == 2 })
			b.advance(time.Second)
			for _, c := range all {
				if s := c.State(); s.Phase != client.Playing || c.Room() != "oak" || c.Stats().Drops > 0 {
					t.Errorf("policy %v: a player is %v in %q: %v, after %q", policy, s.Phase, c.Room(), c.Closed(), b.events)
				}
			}
		}
	})
}
