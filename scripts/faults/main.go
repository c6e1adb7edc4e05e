// Command faults is a server of a game whose players cause faults on command, for the tests of the
// inspector and for trying it out: slow systems, slow messages, panics, stalls, many rooms.
//
//	go run ./scripts/faults run --faults.bots 40
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/client"
)

// Ship is the state of a player.
type Ship struct {
	X, Y   float32 `net:"quant=1/64"`
	Name   string  `net:"max=64"`
	Shield uint8
	Cargo  uint16 `net:"read=owner"`
}

// Steer is the input of a player.
type Steer struct{ Turn int8 }

// Fault is a fault of a kind, with a duration in milliseconds for some.
type Fault struct {
	Kind  string `net:"max=16"`
	Milli uint16
}

var (
	schema = netloop.NewSchema("faults", 1, 0)
	ships  = netloop.NewClass[Ship](schema, "ship", netloop.OnMap("X", "Y"))
	steers = netloop.NewInput(schema, func(last Steer, _ int) Steer { return last })
	faults = netloop.NewRPC[Fault](schema, "fault")
	chat   = netloop.NewRPC[Fault](schema, "chat", netloop.AtStage(netloop.PreUpdate))
	login  = netloop.NewRPC[Fault](schema, "login", netloop.Secret())
)

type config struct {
	Bots    int `name:"bots" help:"bots of the server's own process"`
	Rooms   int `name:"rooms" help:"further rooms, the second of which is private with the code hideout"`
	Systems int `name:"systems" help:"further systems without work"`
	Work    int `name:"work" help:"time of a tick, in microseconds, that four systems use together" default:"1500"`
}

// game implements netloop.Game.
type game struct{ cfg config }

func (g *game) Config() any             { return &g.cfg }
func (g *game) Schema() *netloop.Schema { return schema }

// RoomDefaults implements netloop.RoomDefaulter.
func (g *game) RoomDefaults() netloop.RoomSpec {
	return netloop.RoomSpec{MaxClients: 1000, KeepDropped: 5 * time.Second}
}

// world is the state of a room.
type world struct {
	slow  time.Duration // of the next tick's world.pathfinding
	stall time.Duration // of the next tick's world.save
	panic int           // further panics of ai.think
}

func (g *game) Open(r *netloop.Room) error {
	w := &world{}
	sight := netloop.NewGrid(r, netloop.GridSpec{Radius: 280, Cell: 70, Margin: 140})
	ships.PlaceOn(sight, func(s *Ship) (x, y, z float64) { return float64(s.X), float64(s.Y), 0 })
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		if j.Token == "stranger" {
			return netloop.Refuse(netloop.CodeRefused, "strangers may not join")
		}
		j.Subject = cmp.Or(j.Subject, j.Token) // A client that moves here has no token.
		return nil
	})
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		s := ships.Spawn(t, Ship{Name: netloop.Truncate(c.Join().Subject, 64), Shield: 100, Cargo: 42}, netloop.OwnedBy(c.ID()))
		sight.SetView(t, c, netloop.ViewFrom(s))
		return nil
	})
	faults.Handle(r, w.cause)
	chat.Handle(r, func(*netloop.Tick, *netloop.Client, Fault) error { return nil })
	login.Handle(r, func(*netloop.Tick, *netloop.Client, Fault) error { return nil })
	steers.Handle(r, func(t *netloop.Tick, from *netloop.Client, in Steer) {
		for s := range ships.Owned(t, from.ID()) {
			at := float64(t.FixedStep())/60 + float64(from.ID())
			e := s.Edit(t)
			e.X, e.Y = float32(500+400*math.Cos(at)), float32(500+400*math.Sin(at*float64(1+in.Turn)))
		}
	})
	r.Group("world")
	work := time.Duration(g.cfg.Work) * time.Microsecond / 4
	r.On(netloop.FixedUpdate, "world.physics", func(*netloop.Tick) { spin(work) }, netloop.InSystemGroup("world"))
	r.On(netloop.Update, "world.pathfinding", func(*netloop.Tick) { spin(work + w.slow); w.slow = 0 }, netloop.InSystemGroup("world"))
	r.On(netloop.Update, "ai.think", func(*netloop.Tick) { w.think(work) }, netloop.After("world.pathfinding"))
	r.On(netloop.PostLateUpdate, "world.save", func(*netloop.Tick) { time.Sleep(w.stall); w.stall = 0; spin(work) }, netloop.InSystemGroup("world"))
	for i := range g.cfg.Systems {
		r.On(netloop.AllStages()[2+i%4], fmt.Sprintf("feature-%03d.a-long-name-of-a-system-that-does-little", i), func(*netloop.Tick) {})
	}
	if r.Spec().Name == "" {
		r.AllowMoves()
		var running sync.WaitGroup
		ctx, stop := context.WithCancel(context.Background())
		r.OnStart(func(*netloop.Tick) { running.Go(func() { g.fill(ctx, r.Server()) }) })
		r.OnClose(func(context.Context, *netloop.Closed) error { stop(); running.Wait(); return nil })
	}
	return nil
}

// think is the system ai.think.
func (w *world) think(work time.Duration) {
	if w.panic > 0 {
		w.panic--
		panic(errors.New("ai.think has no target"))
	}
	spin(work)
}

// cause handles a fault.
func (w *world) cause(t *netloop.Tick, _ *netloop.Client, f Fault) error {
	d := time.Duration(f.Milli) * time.Millisecond
	switch f.Kind {
	case "message":
		spin(d)
	case "system":
		w.slow = d
	case "stall":
		w.stall = d
	case "panic":
		w.panic = int(f.Milli)
	case "close":
		t.Room().Close(t, netloop.CodeClosing, "the round is over")
	default:
		return fmt.Errorf("unknown fault %q", f.Kind)
	}
	return nil
}

// spin uses a core for a time.
func spin(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

// fill opens the rooms and runs the bots.
func (g *game) fill(ctx context.Context, s *netloop.Server) {
	for i := range g.cfg.Rooms {
		spec := netloop.RoomSpec{Name: fmt.Sprintf("match-%03d", i), Kind: "match", Rate: netloop.Hz(10), MaxClients: 8, CloseEmpty: netloop.NeverClose}
		if i == 0 {
			spec.Name = "a match with a name that is much longer than the names of other matches"
		}
		if i == 1 {
			spec.Private, spec.Code = true, "hideout"
		}
		if _, err := s.OpenRoom(ctx, spec); err != nil {
			return
		}
	}
	var bots sync.WaitGroup
	for i := range g.cfg.Bots {
		bots.Go(func() { bot(ctx, s, i) })
	}
	bots.Wait()
}

// bot plays until ctx ends.
func bot(ctx context.Context, s *netloop.Server, i int) {
	name := fmt.Sprintf("bot-%d", i)
	if i%50 == 7 {
		name = fmt.Sprintf("a player with a very long name, number %d of a long list", i)
	}
	c, err := client.Dial(ctx, "", client.Config{Schema: schema, Local: s, Token: name})
	if err != nil {
		return
	}
	client.Inputs(c, steers, func(*netloop.Tick) Steer { return Steer{Turn: int8(i % 3)} })
	c.On(netloop.Update, "bot.chat", func(*netloop.Tick) { _ = client.Send(c, chat, Fault{}) }, netloop.Every(time.Second))
	_ = c.Run(ctx)
	_ = c.Close()
}

func main() { app.Main(&game{}) }
