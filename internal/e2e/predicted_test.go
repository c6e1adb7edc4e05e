package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// drifter has fields that a step changes by less or more than a quantum.
type drifter struct {
	X float32 `net:"quant=1/16"`
}

var (
	predictedSchema = netloop.NewSchema("predicted", 1, 0)
	drifters        = netloop.NewClass[drifter](predictedSchema, "drifter", netloop.Predicted())
	plainDrifters   = netloop.NewClass[drifter](predictedSchema, "plain drifter")
)

// drift moves all objects of a class and returns where they were before.
func drift(t *netloop.Tick, class *netloop.Class[drifter], by float32) (before []float32) {
	for o := range class.All(t) {
		before = append(before, o.State().X)
		o.Edit(t).X += by
	}
	return before
}

// The live state of a predicted class is rounded at the end of each fixed step and at capture, so
// every step begins with a state that a client can have. Other classes are not rounded.
func TestPredictedStateIsRoundedAfterEachStep(t *testing.T) {
	var steps [][]float32
	var plain []float32
	w := netlooptest.New(t, game{predictedSchema, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			drifters.Spawn(tick, drifter{})
			plainDrifters.Spawn(tick, drifter{})
		})
		r.On(netloop.FixedUpdate, "drift", func(tick *netloop.Tick) {
			steps = append(steps, drift(tick, drifters, 0.1)) // 1.6 units
			plain = drift(tick, plainDrifters, 0.1)
		})
		r.On(netloop.Update, "push", func(tick *netloop.Tick) {
			drift(tick, drifters, 0.04) // 0.64 units
		})
	}}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(30), FixedRate: netloop.Hz(60)}))
	w.Step(2)
	if want := [][]float32{{0}, {0.125}, {0.3125}, {0.4375}}; !slices.EqualFunc(steps, want, slices.Equal) {
		t.Errorf("the steps begin with %v, want %v", steps, want)
	}
	if plain[0] != 0.1+0.1+0.1 {
		t.Errorf("the other class is at %v", plain)
	}
}

// The rounding system exists only if a class is predicted.
func TestNothingIsRoundedWithoutAPredictedClass(t *testing.T) {
	for want, schema := range map[bool]*netloop.Schema{true: predictedSchema, false: schema} {
		var tree string
		netlooptest.New(t, game{schema, func(r *netloop.Room) { tree = r.Loop().String() }})
		if got := strings.Contains(tree, "netvar.round"); got != want {
			t.Errorf("%v, want %v:\n%s", got, want, tree)
		}
	}
}
