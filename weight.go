package netloop

import (
	"fmt"
	"math"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/transport"
)

// ClassOption is an option of [NewClass].
type ClassOption func(*class)

// Weight sets the priority of the objects of a class, from 1/64 to 64; the default is 1. When a
// client's changes exceed its budget, the object with the largest weight × time since it was last
// sent is sent first: an object of weight 4 is then sent four times as often as one of weight 1,
// and each object is sent eventually. The tag weight of a field multiplies the weight while a
// client lacks a change of that field: see [Class]. An overloaded server sheds objects that weigh
// less than 1, whichever fields have changed: see [OverloadShedding].
func Weight(w float64) ClassOption {
	if !(w >= netvar.MinWeight && w <= netvar.MaxWeight) {
		panic(fmt.Sprintf("netloop: Weight(%v): use 1/64 to 64", w))
	}
	return func(c *class) { c.weight = w }
}

// MinRate sets how often in a second a changed object of the class is sent at least, even with a
// low weight, from 0.01 to 1 000: an object that has waited longer than that is sent before all
// others. It holds as long as a client's budget suffices for the minimum rates of all its visible
// objects; beyond that, the object that has waited the longest is sent first.
func MinRate(perSecond float64) ClassOption {
	if !(perSecond >= minMinRate && perSecond <= maxMinRate) {
		panic(fmt.Sprintf("netloop: MinRate(%v): use 0.01 to 1000 a second", perSecond))
	}
	return func(c *class) { c.minRate = perSecond }
}

const minMinRate, maxMinRate = 0.01, 1000

// weigh applies the options of the classes to the world.
func (r *Room) weigh() {
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

// SetWeight overrides the weight of the class for one object: see [Weight]. A weight out of bounds
// is clamped. It panics on a client.
func (o *Object[S]) SetWeight(t *Tick, w float64) {
	t.server("Object.SetWeight").e.World().SetWeight(o.o, w)
}

// Weigh registers a function that multiplies the weight of an object for one client, by its
// distance for instance. The factor is from 0 to 1 024. The function is called only while a
// client's pending changes exceed its budget, and only for objects with pending changes; it must
// change no state. If it panics, it is not called again. Call Weigh in the game's Open.
func (k *Class[S]) Weigh(r *Room, fn func(c *Client, o *Object[S]) float64) {
	if !r.takes(k.c, "Class.Weigh") {
		return
	}
	place := panicguard.Place{Name: "Class.Weigh", Of: k.Name(), So: "the function is not asked again"}
	stop := func(error) { r.e.World().SetFactor(k.c.nv, nil) }
	r.e.World().SetFactor(k.c.nv, func(p *netvar.Peer, o *netvar.Object) (factor float64) {
		factor = 1 //nolint:wastedassign // The result if fn panics.
		defer r.e.Guard().Recover(&place, stop)
		return fn(peerOf(p), wrap[S](o))
	})
}

// defaultClientBudget is the capacity of ten packets, so that it never delays a change.
const defaultClientBudget = transport.MaxStatePackets * transport.MaxStatePacket
