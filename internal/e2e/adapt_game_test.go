package e2e_test

import (
	"context"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// Clients of other builds on the server of one build. The server declares:
type (
	serverBuild struct {
		schema  *netloop.Schema
		crafts  *netloop.Class[craft]
		buoys   *netloop.Class[buoy]
		shout   *netloop.RPC[shout]
		flare   *netloop.RPC[flare]
		muster  *netloop.Call[muster, roll]
		started func(*netloop.Tick)
		heard   []shout
		minor   int // minor version of the last admitted client
	}
	craft struct {
		Fuel  int32
		X     float32 `net:"quant=1/16"`
		Name  string  `net:"max=16"`
		Crew  []sailor
		Home  netloop.Ref[buoy]
		Moods [3]int8
	}
	sailor struct {
		Rank uint8
		Name string `net:"max=8"`
	}
	buoy  struct{ N int32 }
	shout struct {
		Loud int8
		Text string `net:"max=32"`
		By   sailor
	}
	flare  struct{ Colour uint8 }
	muster struct {
		Least int64
		Watch string `net:"max=8"`
	}
	roll struct {
		Present int64
		Names   []string
	}
)

func newServerBuild() *serverBuild {
	b := &serverBuild{schema: netloop.NewSchema("builds", 3, 5)}
	b.crafts = netloop.NewClass[craft](b.schema, "craft")
	b.buoys = netloop.NewClass[buoy](b.schema, "buoy")
	b.flare = netloop.NewRPC[flare](b.schema, "flare")
	b.shout = netloop.NewRPC[shout](b.schema, "shout", netloop.AtStage(netloop.PreUpdate))
	b.muster = netloop.NewCall[muster, roll](b.schema, "muster")
	return b
}

func (b *serverBuild) Schema() *netloop.Schema { return b.schema }

// Open records every shout, sends one back, and answers musters.
func (b *serverBuild) Open(r *netloop.Room) error {
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		b.minor = j.Minor
		return nil
	})
	if b.started != nil {
		r.OnStart(b.started)
	}
	b.shout.Handle(r, func(t *netloop.Tick, from *netloop.Client, m shout) error {
		b.heard = append(b.heard, m)
		b.flare.Send(t, netloop.To(from.ID()), flare{1})
		b.shout.Send(t, netloop.To(from.ID()), shout{Loud: 9, Text: "back: " + m.Text, By: sailor{2, "cook"}})
		return nil
	})
	b.muster.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, q muster) (roll, error) {
		if q.Watch == "none" {
			return roll{}, netloop.Refuse(netloop.CodeRefused, "no such watch")
		}
		return roll{Present: q.Least + 1, Names: []string{"ann", q.Watch}}, nil
	})
	return nil
}

// enter lets a client of another build play.
func enter(t *testing.T, w *netlooptest.World, s *netloop.Schema, l netlooptest.Link) *client.Client {
	t.Helper()
	c := w.JoinAs(client.Config{Schema: s}, l)
	w.Until(600, func() bool {
		if closed := c.Closed(); closed != nil {
			t.Fatalf("the client was closed: %v", closed)
		}
		return c.State().Phase == client.Playing
	})
	return c
}

// agree compares the client's state with the server's by digest, in the server's layout.
func agree(t *testing.T, w *netlooptest.World, c *client.Client) {
	t.Helper()
	var verdict error
	done := false
	c.Verify(func(err error) { verdict, done = err, true })
	w.Until(900, func() bool { return done })
	if verdict != nil {
		t.Errorf("the states differ: %v", verdict)
	}
}

// withCrafts spawns a craft and its home in OnStart.
func (b *serverBuild) withCrafts() *serverBuild {
	b.started = func(t *netloop.Tick) {
		home := b.buoys.Spawn(t, buoy{7})
		b.crafts.Spawn(t, craft{Fuel: 80, X: 2.5, Name: "anna", Crew: []sailor{{1, "bo"}, {2, "cy"}}, Home: home.Ref(), Moods: [3]int8{1, 2, 3}})
	}
	return b
}

// whole returns a shout of the server's build, for tests with a shout type of their own.
func whole(text string, loud int8, rank uint8) shout {
	return shout{Loud: loud, Text: text, By: sailor{Rank: rank}}
}

// admitReporter is a game that reports each OnAdmit call.
type admitReporter struct {
	*serverBuild
	asked func()
}

func (g admitReporter) Open(r *netloop.Room) error {
	r.OnAdmit(func(context.Context, *netloop.Join) error { g.asked(); return nil })
	return g.serverBuild.Open(r)
}
