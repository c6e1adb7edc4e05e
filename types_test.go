package netloop_test

import (
	"math"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// toy is a game of one schema and nothing else.
type toy struct{ schema *netloop.Schema }

func (p toy) Schema() *netloop.Schema { return p.schema }

func (p toy) Open(*netloop.Room) error { return nil }

// follow runs a game with one client over a bad link, makes the changes, one per tick, and
// compares what the client then has with what the last one left.
func follow[S any](t *testing.T, first S, changes []func(*S), same func(server, client S) bool) {
	t.Helper()
	schema := netloop.NewSchema("types", 1, 0)
	class := netloop.NewClass[S](schema, "it")
	w := netlooptest.New(t, toy{schema})
	c := w.JoinAs(client.Config{Schema: schema}, bad)
	var o *netloop.Object[S]
	w.Tick(func(tick *netloop.Tick) { o = class.Spawn(tick, first) })
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
	check := func() bool {
		ok := false
		w.Look(c, func(tick *netloop.Tick) {
			for twin := range class.All(tick) {
				ok = same(o.State(), twin.State())
			}
		})
		return ok
	}
	for _, change := range changes {
		w.Tick(func(tick *netloop.Tick) { change(o.Edit(tick)) })
		w.Step(2)
	}
	w.Until(600, check)
}

func TestQuantisedTypesReachTheClient(t *testing.T) {
	type vec3 struct{ X, Y, Z float32 }
	type body struct {
		Pos vec3 `net:"quant=1/8,range=-100:100"`
		Rot struct {
			W float32
			V vec3
		} `net:"quat=12"`
	}
	var changes []func(*body)
	for i := range 20 {
		changes = append(changes, func(b *body) {
			b.Pos.X += 1
			sin, cos := math.Sincos(float64(i) / 10)
			b.Rot.W, b.Rot.V.Z = float32(cos), float32(sin)
		})
	}
	follow(t, body{}, changes, func(s, c body) bool {
		return s.Pos == c.Pos && math.Abs(float64(s.Rot.W-c.Rot.W)) < 1e-3 && math.Abs(float64(s.Rot.V.Z-c.Rot.V.Z)) < 1e-3
	})
	// Out of its range it is the nearest in it.
	follow(t, body{}, []func(*body){func(b *body) { b.Pos.Z = 1000 }}, func(s, c body) bool { return s.Pos.Z == 1000 && c.Pos.Z == 100 })
}
