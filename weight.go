package netloop

import (
	"fmt"
	"math"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/transport"
)

// ClassOption is an option of [NewClass].
type ClassOption struct{ apply func(*class) }

// Weight sets the weight of the objects of a class, from 1/64 to 64; the default is 1. While a
// client's pending changes fit into its budget ([Client.SetBudget]), all of them are sent and
// weights have no effect. Otherwise the objects with the largest product are sent first:
//
//	Weight × weight= × WeightFor × ticks since the object was last sent
//
// Weight belongs to the class. weight= is the largest of these tags among the fields with a change
// that the client lacks (see [Class]). [Class.WeightFor] depends on the object and the client. An
// object of weight 4 is therefore sent four times as often as an object of weight 1, and each is
// sent eventually. An object that has waited longer than [MinRate] permits is sent before all
// others.
//
// An overloaded server sheds objects with a Weight less than 1; the other factors do not count
// here: see [OverloadShedding].
func Weight(w float64) ClassOption {
	if !(w >= state.MinWeight && w <= state.MaxWeight) {
		panic(fmt.Sprintf("netloop: Weight(%v): use 1/64 to 64", w))
	}
	return ClassOption{func(c *class) { c.weight = w }}
}

// MinRate sets the lowest rate, per second, at which a changed object of the class is sent, even
// with a low weight, from 0.01 to 1 000. An object that has waited longer is sent before all
// others. If a client's budget does not suffice for the minimum rates of all its visible objects,
// the object that has waited the longest is sent first.
func MinRate(perSecond float64) ClassOption {
	if !(perSecond >= minMinRate && perSecond <= maxMinRate) {
		panic(fmt.Sprintf("netloop: MinRate(%v): use 0.01 to 1000 a second", perSecond))
	}
	return ClassOption{func(c *class) { c.minRate = perSecond }}
}

const minMinRate, maxMinRate = 0.01, 1000

// applyClassOptions applies the options of the classes to the world.
func (r *Room) applyClassOptions() {
	engine := r.e.Spec()
	hertz := engine.Hertz()
	for _, c := range r.schema.classes {
		var every uint64
		if c.minRate > 0 {
			every = uint64(max(1, math.Floor(hertz/c.minRate)))
		}
		r.e.World().SetClassWeight(c.nv, c.weight, every)
		if c.predicted {
			r.e.World().SetRounded(c.nv)
		}
	}
}

// WeightFor registers a function that returns a factor for an object's [Weight] for one client,
// from 0 to 1 024, for instance by the object's distance. The function is called only while a
// client's pending changes exceed its budget, and only for objects with pending changes. It must
// change no state. If it panics, it is not called again. Call WeightFor in the game's Open.
func (k *Class[S]) WeightFor(r *Room, fn func(c *Client, o *Object[S]) float64) {
	if !r.takes(k.c, "Class.WeightFor") {
		return
	}
	place := panicguard.Func{Name: "Class.WeightFor", Class: k.Name(), Effect: "the function is not called again"}
	stop := func(error) { r.e.World().SetFactor(k.c.nv, nil) }
	r.e.World().SetFactor(k.c.nv, func(p *netvar.Peer, o *state.Object) (factor float64) {
		factor = 1 //nolint:wastedassign // The result if fn panics.
		defer r.e.Guard().Recover(&place, stop)
		return fn(peerOf(&p.Viewer), wrap[S](o))
	})
}

// defaultClientBudget is the capacity of a snapshot's packets, so that it never delays a change.
const defaultClientBudget = transport.MaxStatePackets * transport.MaxStatePacket
