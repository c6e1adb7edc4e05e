package e2e_test

import (
	"context"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// Clients of other builds on the server of one build. What the server declares:
type (
	harbour struct {
		schema  *netloop.Schema
		crafts  *netloop.Class[craft]
		buoys   *netloop.Class[buoy]
		shout   *netloop.RPC[shout]
		flare   *netloop.RPC[flare]
		muster  *netloop.Call[muster, roll]
		started func(*netloop.Tick)
		heard   []shout
		minor   int // in force for who was admitted last
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

func newHarbour() *harbour {
	h := &harbour{schema: netloop.NewSchema("harbour", 3, 5)}
	h.crafts = netloop.NewClass[craft](h.schema, "craft")
	h.buoys = netloop.NewClass[buoy](h.schema, "buoy")
	h.flare = netloop.NewRPC[flare](h.schema, "flare")
	h.shout = netloop.NewRPC[shout](h.schema, "shout", netloop.AtStage(netloop.PreUpdate))
	h.muster = netloop.NewCall[muster, roll](h.schema, "muster")
	return h
}

func (h *harbour) Schema() *netloop.Schema { return h.schema }

// Open hears every shout and shouts back, and answers musters.
func (h *harbour) Open(r *netloop.Room) error {
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		h.minor = j.Minor
		return nil
	})
	if h.started != nil {
		r.OnStart(h.started)
	}
	h.shout.Handle(r, func(t *netloop.Tick, from *netloop.Client, m shout) error {
		h.heard = append(h.heard, m)
		h.flare.Send(t, netloop.To(from.ID()), flare{1})
		h.shout.Send(t, netloop.To(from.ID()), shout{Loud: 9, Text: "back: " + m.Text, By: sailor{2, "cook"}})
		return nil
	})
	h.muster.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, q muster) (roll, error) {
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

// agree asks for the digest of the server, whose layout it is of.
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

// fleet is what the tests start with.
func (h *harbour) fleet() *harbour {
	h.started = func(t *netloop.Tick) {
		home := h.buoys.Spawn(t, buoy{7})
		h.crafts.Spawn(t, craft{Fuel: 80, X: 2.5, Name: "anna", Crew: []sailor{{1, "bo"}, {2, "cy"}}, Home: home.Ref(), Moods: [3]int8{1, 2, 3}})
	}
	return h
}

// whole is a shout of the server's build, where a test has one of its own.
func whole(text string, loud int8, rank uint8) shout {
	return shout{Loud: loud, Text: text, By: sailor{Rank: rank}}
}

// admits is a game that says when it is asked to admit somebody.
type admits struct {
	*harbour
	asked func()
}

func (g admits) Open(r *netloop.Room) error {
	r.OnAdmit(func(context.Context, *netloop.Join) error { g.asked(); return nil })
	return g.harbour.Open(r)
}
