package netloop

import (
	"fmt"
	"math"

	"github.com/netloop/netloop/internal/guard"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// ClassOption is an option of [NewClass].
type ClassOption func(*class)

// Weight says how much the objects of a class are needed, from 1/64 to 64; without it they
// weigh 1. When not everything that has changed fits what a client may be sent, the object goes
// first whose weight × time since it was last sent is the largest: one of weight 4 is then sent
// four times as often as one of weight 1, and none waits for ever. The tag priority of a field
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

// prioritize tells the world what the classes say of their priority.
func (r *Room) prioritize() {
	for _, c := range r.schema.classes {
		var every uint64
		if c.minRate > 0 {
			every = uint64(max(1, math.Floor(r.spec.hertz()/c.minRate)))
		}
		r.world.SetPriority(c.nv, c.weight, every)
	}
}

func (s *RoomSpec) hertz() float64 { return float64(s.Rate.Num) / float64(s.Rate.Den) }

// shed makes the world send what an overloaded server keeps of objects that weigh less than 1:
// as often as their class's MinRate says, or once a second.
func (r *Room) shed() {
	if r.Overload() >= OverloadShedding {
		r.world.Shed(uint64(max(1, math.Floor(r.spec.hertz()))))
	} else {
		r.world.Shed(0)
	}
}

// SetWeight gives one object another weight than its class has: see [Weight]. What lies beyond
// the bounds counts as the nearest bound. It panics on a client.
func (o *Object[S]) SetWeight(t *Tick, w float64) {
	t.server("Object.SetWeight").world.SetWeight(o.o, w)
}

// Prioritize lets the game say what an object is worth to a client, by its distance for
// instance: the function returns by what the object's weight is multiplied, from 0 to 1 024. It
// is asked only while not everything that a client is owed fits, and only for what is owed; it
// must change nothing. When it panics, it is not asked again. It belongs into the game's Open.
func (k *Class[S]) Prioritize(r *Room, fn func(c *Client, o *Object[S]) float64) {
	if !r.takes(k.c, "Class.Prioritize") {
		return
	}
	place := guard.Place{Name: "Class.Prioritize", Of: k.Name(), So: "the function is not asked again"}
	stop := func(error) { r.world.SetFactor(k.c.nv, nil) }
	r.world.SetFactor(k.c.nv, func(p *netvar.Peer, o *netvar.Object) (factor float64) {
		factor = 1 //nolint:wastedassign // That remains of a panic.
		defer r.guard.Recover(&place, stop)
		return fn(p.Handle.(*Client), wrap[S](o))
	})
}

// The default budget is what ten packets carry, so that it never holds anything back. The
// bucket holds what comes in during four ticks, or between two snapshots if that is longer,
// those of an overloaded server included: what a client does not use is not saved up for bursts
// that its link could not take.
const (
	defaultClientBudget = transport.MaxStatePackets * transport.MaxStatePacket
	budgetTicks         = 4
)

// SetBudget sets how many bytes of object records the client is sent per tick, on average: up to
// 1 048 576; 0 is the room's [RoomSpec] Budget. What does not fit waits for a later snapshot,
// see [Weight] for what goes first. It panics on a client.
func (c *Client) SetBudget(t *Tick, bytesPerTick int) {
	t.server("Client.SetBudget")
	c.setBudget(bytesPerTick)
}

func (c *Client) setBudget(perTick int) {
	if perTick <= 0 {
		perTick = c.room.spec.Budget
	}
	perTick = min(perTick, netvar.MaxBudget)
	c.peer.SetBudget(netvar.Budget{PerTick: perTick, Burst: perTick * max(budgetTicks, 2*c.room.spec.SendEvery)})
}
