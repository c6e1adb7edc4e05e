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

// Weight says how much the objects of a class are needed, from 1/64 to 64; without it they
// weigh 1. When not everything that has changed fits what a client may be sent, the object goes
// first whose weight × time since it was last sent is the largest: one of weight 4 is then sent
// four times as often as one of weight 1, and none waits for ever. The tag weight of a field
// multiplies it while a client lacks a change there: see [Class]. Objects that weigh less than
// 1 are what an overloaded server sheds, whatever has changed in them: see [OverloadShedding].
func Weight(w float64) ClassOption {
	if !(w >= netvar.MinWeight && w <= netvar.MaxWeight) {
		panic(fmt.Sprintf("netloop: Weight(%v): use 1/64 to 64", w))
	}
	return func(c *class) { c.weight = w }
}

// MinRate says how often in a second a changed object of the class is sent at least, whatever
// it weighs, from 0.01 to 1 000: one that has waited for longer passes all that have not. It
// holds as long as a client's budget carries the minimum rates of all it sees; beyond that, who
// has waited the longest goes first.
func MinRate(perSecond float64) ClassOption {
	if !(perSecond >= minMinRate && perSecond <= maxMinRate) {
		panic(fmt.Sprintf("netloop: MinRate(%v): use 0.01 to 1000 a second", perSecond))
	}
	return func(c *class) { c.minRate = perSecond }
}

const minMinRate, maxMinRate = 0.01, 1000

// weigh tells the world what the options of the classes say.
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

// SetWeight gives one object another weight than its class has: see [Weight]. What lies beyond
// the bounds counts as the nearest bound. It panics on a client.
func (o *Object[S]) SetWeight(t *Tick, w float64) {
	t.server("Object.SetWeight").e.World().SetWeight(o.o, w)
}

// Weigh lets the game say what an object is worth to a client, by its distance for
// instance: the function returns by what the object's weight is multiplied, from 0 to 1 024. It
// is asked only while not everything that a client is owed fits, and only for what is owed; it
// must change nothing. When it panics, it is not asked again. It belongs into the game's Open.
func (k *Class[S]) Weigh(r *Room, fn func(c *Client, o *Object[S]) float64) {
	if !r.takes(k.c, "Class.Weigh") {
		return
	}
	place := panicguard.Place{Name: "Class.Weigh", Of: k.Name(), So: "the function is not asked again"}
	stop := func(error) { r.e.World().SetFactor(k.c.nv, nil) }
	r.e.World().SetFactor(k.c.nv, func(p *netvar.Peer, o *netvar.Object) (factor float64) {
		factor = 1 //nolint:wastedassign // That remains of a panic.
		defer r.e.Guard().Recover(&place, stop)
		return fn(peerOf(p), wrap[S](o))
	})
}

// defaultClientBudget is what ten packets carry, so that it never holds anything back.
const defaultClientBudget = transport.MaxStatePackets * transport.MaxStatePacket
