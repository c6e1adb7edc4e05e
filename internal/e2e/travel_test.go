package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/cluster"
)

// fleet is a cluster in memory of servers on loopback.
type fleet struct {
	t         *testing.T
	hub       *cluster.Memory
	ahead     atomic.Int64 // time by which the clock of the cluster is ahead
	duplicate netloop.DuplicatePolicy

	mu  sync.Mutex
	log []string
}

func newFleet(t *testing.T) *fleet {
	began := time.Now()
	f := &fleet{t: t}
	f.hub = cluster.NewMemory(1, func() time.Duration { return time.Since(began) + time.Duration(f.ahead.Load()) })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(cluster.BoardInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			select {
			case <-tick.C:
				f.hub.Settle()
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if t.Failed() {
			t.Logf("the events: %q", f.noted())
		}
	})
	return f
}

func (f *fleet) note(format string, a ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, a...))
}

func (f *fleet) noted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// serve runs a server with a room of the name, besides its lobby.
func (f *fleet) serve(id, name string, more func(*netloop.Room)) (s *netloop.Server, stop func() error) {
	f.t.Helper()
	g := lobbyGame(func(r *netloop.Room) {
		where := r.Spec().Name
		if where == "" {
			where = "lobby of " + id
		}
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			f.note("join %s %s", where, c.Join().Subject)
			return nil
		})
		r.OnResume(func(*netloop.Tick, *netloop.Client) { f.note("resume %s", where) })
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { f.note("leave %s: %v", where, why.Code) })
		told.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m text) error { f.note("%s hears %s", where, m.S); return nil })
		if more != nil {
			more(r)
		}
	})
	s, stop = serveAs(f.t, g, netloop.Config{
		Web: "127.0.0.1:0", Room: netloop.RoomSpec{Rate: netloop.Hz(60)}, Cluster: netloop.Cluster{Via: f.hub.Member(), ID: id, Duplicate: f.duplicate},
	})
	if _, err := s.OpenRoom(f.t.Context(), table(name)); err != nil {
		f.t.Fatal(err)
	}
	return s, stop
}

// until steps a client until it plays in a room.
func (f *fleet) until(c *client.Client, room string) {
	f.t.Helper()
	waitFor(f.t, func() bool {
		c.Step(5 * time.Millisecond)
		if closed := c.Closed(); closed != nil {
			f.t.Fatalf("closed: %v, after %q", closed, f.noted())
		}
		return c.Room() == room && c.State().Phase == client.Playing
	})
}

// wait waits for the events of a test, in any order, while the client plays.
func (f *fleet) wait(c *client.Client, want ...string) {
	f.t.Helper()
	waitFor(f.t, func() bool {
		c.Step(5 * time.Millisecond)
		return len(f.noted()) >= len(want)
	})
	got := slices.Sorted(slices.Values(f.noted()))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		f.t.Errorf("%q, want %q", got, want)
	}
}

// A client moves to another server and back, over each carrier: by the game, or by its own request.
func TestAClientMovesToAnotherServer(t *testing.T) {
	t.Parallel()
	for _, carrier := range []client.Transport{client.QUIC, client.WebTransport, client.WebSocket} {
		t.Run(carrier.String(), func(t *testing.T) {
			f := newFleet(t)
			a, _ := f.serve("a", "elm", nil)
			f.serve("b", "oak", nil)
			addr := a.Addr().String()
			if carrier == client.WebSocket {
				addr = a.WebAddr().String()
			}
			c, err := client.Dial(t.Context(), addr, client.Config{Schema: schema, Transport: carrier})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			f.until(c, "")
			client.Send(c, echo, text{S: "oak"})
			f.until(c, "oak")
			client.Send(c, told, text{S: "hello"})
			f.wait(c, "join lobby of a ", "join oak ", "leave lobby of a: moved to another room", "oak hears hello")
			tickets, err := a.Reserve(t.Context(), "elm", netloop.Reservation{})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Move(tickets[0]); err != nil {
				t.Fatal(err)
			}
			f.until(c, "elm")
			waitFor(t, func() bool {
				c.Step(5 * time.Millisecond)
				return slices.Contains(f.noted(), "leave oak: moved to another room")
			})
			if s := c.Stats(); s.Drops != 0 || s.Malformed != 0 {
				t.Errorf("%d connections broke, %d packets were malformed", s.Drops, s.Malformed)
			}
		})
	}
}

// A client that requests a room of another server is sent there.
func TestAClientIsSentToTheServerOfItsRoom(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a, _ := f.serve("a", "elm", nil)
	b, _ := f.serve("b", "oak", nil)
	waitFor(t, func() bool { _, ok := a.RoomServer("oak"); return ok })
	tickets, err := b.Reserve(t.Context(), "oak", netloop.Reservation{})
	if err != nil {
		t.Fatal(err)
	}
	for what, cfg := range map[string]client.Config{"name": {Room: "oak"}, "ticket": {Ticket: string(tickets[0])}} {
		cfg.Schema = schema
		c, err := client.Dial(t.Context(), a.Addr().String(), cfg)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		f.until(c, "oak")
		_ = c.Close()
	}
	hidden := table("ash")
	hidden.Private = true
	private, err := b.OpenRoom(t.Context(), hidden)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { _, ok := a.RoomServer("ash"); return ok })
	code := private.Spec().Code
	for _, joins := range []bool{true, false} { // By the code, at once or from another room.
		cfg := client.Config{Schema: schema}
		if joins {
			cfg.Ticket = code
		}
		c, err := client.Dial(t.Context(), a.Addr().String(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !joins {
			f.until(c, "")
			if err := c.Move(netloop.Ticket("X" + code)); err != nil {
				t.Fatal(err)
			}
			f.until(c, "") // A move by an unknown code has no effect.
			waitFor(t, func() bool {
				_ = c.Move(netloop.Ticket(code)) // Not more often than the server accepts.
				c.Step(5 * time.Millisecond)
				return c.Room() == "ash"
			})
		}
		f.until(c, "ash")
		_ = c.Close()
	}
	for _, r := range []struct {
		want netloop.Code
		cfg  client.Config
	}{
		{netloop.CodeTicket, client.Config{Ticket: "made up@oak"}},
		{netloop.CodeTicket, client.Config{Ticket: "X" + code}},
		{netloop.CodeRoomUnknown, client.Config{Room: "ash"}},
	} {
		r.cfg.Schema = schema
		_, err = client.Dial(t.Context(), a.Addr().String(), r.cfg)
		if refused := (*netloop.Refusal)(nil); !errors.As(err, &refused) || refused.Code != r.want {
			t.Errorf("%+v: %v, want %v", r.cfg, err, r.want)
		}
	}
}

// If the other server ends after the client has left for it, the client is back in its old room,
// and its messages continue.
func TestAClientReturnsIfTheOtherServerEnds(t *testing.T) {
	f := newFleet(t)
	a, _ := f.serve("a", "elm", nil)
	var stop func() error
	asked := make(chan struct{})
	_, stop = f.serve("b", "oak", func(r *netloop.Room) {
		r.OnAdmit(func(ctx context.Context, _ *netloop.Join) error {
			close(asked)
			<-ctx.Done()
			return ctx.Err()
		})
	})
	c := connect(t, a.Addr().String())
	f.until(c, "")
	client.Send(c, echo, text{S: "oak"})
	stepUntilClosed(t, c, asked)
	client.Send(c, told, text{S: "on the way"})
	if c.State().Phase != client.Moving {
		t.Errorf("the client is %v", c.State().Phase)
	}
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	f.until(c, "")
	client.Send(c, told, text{S: "hello"})
	f.wait(c, "join lobby of a ", "resume lobby of a", "lobby of a hears on the way", "lobby of a hears hello")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// openingGame lets a client open a room by its name, which another server opens meanwhile.
type openingGame struct {
	script
	meanwhile func(name string)
}

func (g openingGame) OpenFor(_ context.Context, name string, _ *netloop.Join) (netloop.RoomSpec, error) {
	g.meanwhile(name)
	return table(name), nil
}

// A client for which a server opens a room is sent to another server that has opened it meanwhile.
func TestAClientIsSentToTheRoomThatAnotherServerOpens(t *testing.T) {
	f := newFleet(t)
	b, _ := f.serve("b", "oak", nil)
	meanwhile := func(name string) {
		if _, err := b.OpenRoom(t.Context(), table(name)); err != nil {
			t.Error(err)
		}
	}
	a, _ := serveAs(t, openingGame{lobbyGame(nil), meanwhile}, netloop.Config{Cluster: netloop.Cluster{Via: f.hub.Member(), ID: "a"}})
	c, err := client.Dial(t.Context(), a.Addr().String(), client.Config{Schema: schema, Room: "elm"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	f.until(c, "elm")
	f.wait(c, "join elm ")
}

// placingGame lets a client open a private room, on the server of its choice.
type placingGame struct{ script }

func (g placingGame) OpenFor(_ context.Context, name string, j *netloop.Join) (netloop.RoomSpec, error) {
	spec := table(name)
	spec.Private, spec.Place = true, netloop.Place{Server: j.Token}
	return spec, nil
}

// A room that a client opens is on the server of its Place, and the client is sent there. So is a
// room that this Place leaves here. For a server that does not exist the client is refused as
// busy.
func TestAClientOpensARoomOnTheServerOfItsPlace(t *testing.T) {
	f := newFleet(t)
	b, _ := f.serve("b", "oak", nil)
	a, _ := serveAs(t, placingGame{lobbyGame(nil)}, netloop.Config{Cluster: netloop.Cluster{Via: f.hub.Member(), ID: "a"}})
	for name, s := range map[string]*netloop.Server{"elm": b, "ash": a} {
		c, err := client.Dial(t.Context(), a.Addr().String(), client.Config{Schema: schema, Room: name, Token: s.ID()})
		if err != nil {
			t.Fatal(err)
		}
		f.until(c, name)
		if !slices.ContainsFunc(slices.Collect(s.Rooms()), func(info netloop.RoomInfo) bool { return info.Spec.Name == name && info.Clients == 1 }) {
			t.Errorf("server %s has no room %s with the client", s.ID(), name)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := client.Dial(t.Context(), a.Addr().String(), client.Config{Schema: schema, Room: "fir", Token: "nowhere"})
	if refused := (*netloop.Refusal)(nil); !errors.As(err, &refused) || refused.Code != netloop.CodeBusy {
		t.Errorf("a room of a server that does not exist: %v", err)
	}
}

// stepUntilClosed runs the client's frames until a channel is closed.
func stepUntilClosed(t *testing.T, c *client.Client, closed <-chan struct{}) {
	t.Helper()
	waitFor(t, func() bool {
		c.Step(5 * time.Millisecond)
		select {
		case <-closed:
			return true
		default:
			return false
		}
	})
}
