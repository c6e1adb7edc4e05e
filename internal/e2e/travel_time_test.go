package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/netlooptest"
)

// twoServers are servers of one cluster, in virtual time.
type twoServers struct {
	t    *testing.T
	a, b *netlooptest.World
	left []netloop.Code // of the lobby of a
}

func newTwoServers(t *testing.T, more func(*netloop.Room)) *twoServers {
	s := &twoServers{t: t}
	hub := cluster.NewMemory(1, func() time.Duration {
		if s.b == nil { // It joins while it is made.
			return 0
		}
		return s.b.Now()
	})
	world := func(id string, g netloop.Game) *netlooptest.World {
		w := netlooptest.New(t, g, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(60)}), netlooptest.Configure(func(c *netloop.Config) {
			c.Cluster = netloop.Cluster{Via: hub.Member(), ID: id, Addr: id + ":1"}
		}))
		return w
	}
	s.b = world("b", lobbyGame(more))
	s.a = world("a", lobbyGame(func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { s.left = append(s.left, why.Code) })
	}))
	s.a.Connect("b:1", s.b)
	openRoom(t, s.b, netloop.RoomSpec{Name: "oak", Rate: netloop.Hz(60)})
	return s
}

// advance runs both servers.
func (s *twoServers) advance(d time.Duration) {
	for range d / time.Millisecond {
		s.a.Advance(time.Millisecond)
		s.b.Advance(time.Millisecond)
	}
}

// until runs both servers until done, for at most a minute of virtual time, with all work done in
// each millisecond.
func (s *twoServers) until(done func() bool) {
	s.t.Helper()
	for range time.Minute / time.Millisecond {
		if done() {
			return
		}
		s.advance(time.Millisecond)
		s.a.Settle()
	}
	s.t.Fatal("not done within a minute")
}

// A client that moves to another server is without a room for one round trip and two ticks at most.
func TestAMoveToAnotherServerTakesARoundTrip(t *testing.T) {
	const delay = 40 * time.Millisecond
	const tick = time.Second / 60
	s := newTwoServers(t, nil)
	for n := range 20 {
		c := s.a.JoinAs(client.Config{}, netlooptest.Link{Delay: delay})
		s.until(func() bool { return c.State().Phase == client.Playing })
		s.advance(time.Duration(n) * time.Millisecond) // The frames of both rooms have any phase.
		var left, entered time.Duration
		c.OnState(func(now client.State) {
			switch {
			case now.Phase == client.Moving:
				left = s.a.Now()
			case left > 0 && entered == 0:
				entered = s.a.Now()
			}
		})
		client.Send(c, echo, text{S: "oak"})
		s.until(func() bool { return entered > 0 && c.State().Phase == client.Playing })
		if gap := entered - left; gap > 2*delay+2*tick+time.Millisecond || c.Room() != "oak" || c.Stats().Drops != 0 {
			t.Errorf("client %d is in %q after %v without a room, want %v and two ticks", n, c.Room(), gap, 2*delay)
		}
		_ = c.Close()
	}
	waitFor(t, func() bool { s.advance(tick); return len(s.left) == 20 })
	for _, code := range s.left {
		if code != netloop.CodeMoved {
			t.Errorf("a client has left with %v", code)
		}
	}
}

// A server that vanishes after the client has left for it costs as much as a lost connection.
func TestTheOtherServerVanishes(t *testing.T) {
	s := newTwoServers(t, nil)
	c := s.a.JoinAs(client.Config{}, netlooptest.Link{Delay: 20 * time.Millisecond})
	s.until(func() bool { return c.State().Phase == client.Playing })
	id := c.ID()
	client.Send(c, echo, text{S: "oak"})
	s.until(func() bool { return c.State().Phase == client.Moving })
	s.a.Cut(c) // The newest connection: that to the other server.
	s.until(func() bool { return c.State().Phase == client.Reconnecting })
	s.a.Heal(c)
	s.until(func() bool { return c.State().Phase == client.Playing })
	if c.ID() != id || c.Room() != "" || c.Stats().Resumes != 1 || len(s.left) != 0 {
		t.Errorf("it is %d in %q after %d resumes", c.ID(), c.Room(), c.Stats().Resumes)
	}
	converged := false
	c.Verify(func(err error) { converged = err == nil })
	s.until(func() bool { return converged })
}

// If another program of the player takes its seat over while a client is on the way, that program
// has the seat, and the client is closed when it arrives. The player is known there by its ticket.
func TestASeatIsTakenOverWhileItsClientIsOnTheWay(t *testing.T) {
	var joined []string
	s := newTwoServers(t, func(r *netloop.Room) {
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			joined = append(joined, c.Join().Subject)
			return nil
		})
	})
	first := s.a.JoinAs(client.Config{Token: "ann"}, netlooptest.Link{Delay: 100 * time.Millisecond})
	s.until(func() bool { return first.State().Phase == client.Playing })
	client.Send(first, echo, text{S: "oak"})
	s.until(func() bool { return first.State().Phase == client.Moving })
	second := s.a.JoinAs(client.Config{Token: "ann"}, netlooptest.Link{})
	s.until(func() bool { return second.State().Phase == client.Playing })
	waitFor(t, func() bool { s.advance(10 * time.Millisecond); return first.Closed() != nil })
	if why := first.Closed(); why.Code != netloop.CodeReplaced || second.Closed() != nil || second.ID() == 0 || len(s.left) != 0 {
		t.Errorf("the first program is closed with %v, the second with %v; %d clients left", why, second.Closed(), len(s.left))
	}
	if len(joined) != 1 || joined[0] != "ann" {
		t.Errorf("joined at the other server: %q", joined)
	}
}
