package client

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netvar"
)

// Spawn makes an object that the server is about to spawn, so that a shot appears as it is fired:
// in a step function of [Predict], or elsewhere in FixedUpdate. Its class is predicted too, and its
// state has a field of the type [netloop.Born], in which the server stores [netloop.FromInput].
//
//	type Shot struct {
//		Pos, Vel Vec
//		Born     netloop.Born `net:"read=owner"`
//	}
//
//	client.Predict(c, Ships, Controls, func(s *Ship, t *netloop.Tick, in Control) {
//		if s.Steer(t, in) { // It fires.
//			client.Spawn(c, Shots, s.Shot())
//		}
//	})
//	client.Predict(c, Shots, Controls, func(s *Shot, t *netloop.Tick, _ Control) { s.Fly(t) })
//
// The object is the client's own, has no [netloop.Object.Ref] yet, and is found by Class.All,
// [Watch] and [View] like any other. The server's object that was spawned for the same input, and
// in the same place among those of that input, takes it over: it is the same *Object, and watchers
// hear nothing. If the server has spawned none in that step, the object despawns. When the step
// runs again, Spawn returns the same object as before, with the state that it is given now.
//
// A step that spawns an object of a class that was given to Predict behind its own runs that
// object's first step as well, as a system behind the inputs does on the server.
//
// Spawn panics outside of FixedUpdate, with a class that is not predicted or has no such field, and
// when 256 of a client's objects wait for the server's.
func Spawn[S any](c *Client, k *netloop.Class[S], init S) *netloop.Object[S] {
	p, class := &c.prediction, bridge.Netloop.Class(k)
	by := p.of(class.State)
	switch {
	case by == nil:
		panic(fmt.Sprintf("client: Spawn: class %q is not predicted: call Predict for it", k.Name()))
	case by.born < 0:
		panic(fmt.Sprintf("client: Spawn: class %q needs a field of the type netloop.Born, which the server sets to netloop.FromInput", k.Name()))
	case c.now.Stage != netloop.FixedUpdate:
		panic("client: Spawn works in FixedUpdate only, where steps have inputs")
	}
	b := birth{step: c.now.FixedStep, n: p.spawned, awaited: true, inStep: p.running > 0}
	p.spawned++
	*(*netloop.Born)(unsafe.Add(unsafe.Pointer(&init), by.born)) = netloop.Born{Step: b.step, N: b.n}
	return class.Wrap(c.spawn(by, b, unsafe.Pointer(&init)).o).(*netloop.Object[S])
}

// maxAwaited bounds the objects of Spawn for which the server's have not come: a second of 256
// shots.
const maxAwaited = 256

// birth is where an object of Spawn comes from. The zero value is that of all others.
type birth struct {
	step    uint64
	n       uint8 // among those of the step
	awaited bool  // the server's has not come
	inStep  bool  // of a step function, which makes it again when its step runs again
	unborn  bool  // which has not happened yet
}

// bornField finds the field that says by which input an object was spawned, or -1.
func bornField[S any]() int {
	t := reflect.TypeFor[S]()
	for i := range t.NumField() {
		if f := t.Field(i); f.Type == reflect.TypeFor[netloop.Born]() {
			return int(f.Offset)
		}
	}
	return -1
}

// spawn makes an object, or finds the one that a step has made which runs again.
func (c *Client) spawn(by *predictor, b birth, init unsafe.Pointer) *predicted {
	p := &c.prediction
	d := by.find(b.step, b.n)
	switch {
	case d == nil:
		if p.awaited >= maxAwaited {
			panic(fmt.Sprintf("client: Spawn: %d objects wait for the server's: is netloop.FromInput stored there?", p.awaited))
		}
		live := newState(by.class.State)
		by.copy(live, init)
		d = newPredicted(by, c.replica.AddLocal(by.class.State, live, uint64(c.id)), c.prediction.kept)
		d.birth = b
		by.insert(d)
		p.objects[d.o] = d
		p.awaited++
		by.copy(d.live, init)
		d.begin(c.eve(by, b))
		c.tell(&netvar.Event{Kind: netvar.Spawn, Object: d.o})
	case d.birth.unborn:
		d.birth.unborn = false
		by.copy(d.live, init)
		d.begin(c.eve(by, b))
	}
	return d
}

// eve is the last step that an object does not run: if the turn of its class is still to come, that
// before its birth.
func (c *Client) eve(by *predictor, b birth) uint64 {
	if p := &c.prediction; b.inStep && slices.Index(p.classes, by) >= p.turn {
		return b.step - 1
	}
	return b.step
}

// begin makes the live state all that is known, as of a step.
func (d *predicted) begin(step uint64) {
	d.newest, d.base = 0, step
	d.keep(step)
}

// find returns the object of Spawn with this birth, or nil.
func (by *predictor) find(step uint64, n uint8) *predicted {
	for _, d := range by.objects {
		if d.birth.step == step && d.birth.n == n && step > 0 {
			return d
		}
	}
	return nil
}

// met takes an object that has come in a packet of a tick. It reports whether that is one that the
// client has spawned already, and then the one takes over the other.
func (c *Client) met(o *netvar.Object, tick uint64) bool {
	p := &c.prediction
	by := p.of(o.Class())
	if by == nil || by.born < 0 || o.Owner() != uint64(c.id) {
		return false
	}
	born := (*netloop.Born)(unsafe.Add(o.Live(), by.born))
	d := by.find(born.Step, born.N)
	if d == nil || !d.birth.awaited {
		return false
	}
	delete(p.objects, d.o)
	c.replica.RemoveLocal(d.o)
	bridge.Netloop.Repoint(d.o.Handle, o)
	d.o, d.birth.awaited = o, false
	d.version, d.known = o.Changed(), tick
	p.objects[o] = d
	p.awaited--
	p.stats.SpawnsMatched++
	by.objects = slices.DeleteFunc(by.objects, func(other *predicted) bool { return other == d })
	by.insert(d)
	return true
}

// withdraw despawns what was spawned up to a step and what the server has not spawned.
func (c *Client) withdraw(upTo uint64) {
	c.withdrawIf(func(b *birth) bool { return b.step <= upTo })
}

// timeOut despawns what has been awaited for so long that nothing can be said of it any more, and
// what was spawned in steps that are not there any more.
func (c *Client) timeOut() {
	last, kept := c.prediction.last, c.prediction.kept
	c.withdrawIf(func(b *birth) bool { return b.step > last || b.step+kept <= last })
}

func (c *Client) withdrawIf(gone func(*birth) bool) {
	p := &c.prediction
	if p.awaited == 0 {
		return
	}
	for _, by := range p.classes {
		for _, d := range slices.Clone(by.objects) {
			if d.birth.awaited && gone(&d.birth) {
				c.replica.RemoveLocal(d.o)
				delete(p.objects, d.o)
				by.objects = slices.DeleteFunc(by.objects, func(other *predicted) bool { return other == d })
				p.awaited--
				p.stats.SpawnsWithdrawn++
				c.tell(&netvar.Event{Kind: netvar.Despawn, Object: d.o, Old: d.o.Live()})
			}
		}
	}
}
