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
// state has a field of the type [netloop.SpawnKey], in which the server stores
// [netloop.Tick.SpawnKey].
//
//	type Shot struct {
//		Pos, Vel Vec
//		Key      netloop.SpawnKey `net:"read=owner"`
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
// [Watch] and [View] like any other. The server's object with the same input and the same index
// among the objects of that input takes it over: the *Object remains the same, and watchers are not
// called. If the server has spawned none in that step, the object despawns. When the step runs
// again, Spawn returns the same object as before, with the new state.
//
// A step that spawns an object of a class that was given to Predict after its own runs that
// object's first step as well, as a system after the inputs does on the server.
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
		panic(fmt.Sprintf("client: Spawn: class %q needs a field of the type netloop.SpawnKey, which the server sets to Tick.SpawnKey", k.Name()))
	case c.now.Stage != netloop.FixedUpdate:
		panic("client: Spawn works in FixedUpdate only, where steps have inputs")
	}
	b := birth{step: c.now.FixedStep, n: p.spawned, awaited: true, inStep: p.running > 0}
	p.spawned++
	*(*netloop.SpawnKey)(unsafe.Add(unsafe.Pointer(&init), by.born)) = netloop.SpawnKey{Step: b.step, N: b.n}
	return class.Wrap(c.spawn(by, b, unsafe.Pointer(&init)).o).(*netloop.Object[S])
}

// maxAwaited limits the objects of Spawn that the server has not confirmed: a second of 256 shots.
const maxAwaited = 256

// birth identifies an object of Spawn by its step. The zero value is that of all other objects.
type birth struct {
	step    uint64
	n       uint8 // index among the objects of the step
	awaited bool  // the server has not confirmed it
	inStep  bool  // made in a step function, and made again when its step runs again
	unborn  bool  // the replay has not spawned it again yet
}

// bornField returns the offset of the field of type netloop.SpawnKey, or -1.
func bornField[S any]() int {
	t := reflect.TypeFor[S]()
	for i := range t.NumField() {
		if f := t.Field(i); f.Type == reflect.TypeFor[netloop.SpawnKey]() {
			return int(f.Offset)
		}
	}
	return -1
}

// spawn makes an object, or returns the object that an earlier run of the same step has made.
func (c *Client) spawn(by *predictor, b birth, init unsafe.Pointer) *predicted {
	p := &c.prediction
	d := by.find(b.step, b.n)
	switch {
	case d == nil:
		if p.awaited >= maxAwaited {
			panic(fmt.Sprintf("client: Spawn: %d objects wait for the server's: is Tick.SpawnKey stored there?", p.awaited))
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

// eve returns the last step that does not run the object: the step before its birth if its class
// still runs in the birth's step, else that step.
func (c *Client) eve(by *predictor, b birth) uint64 {
	if p := &c.prediction; b.inStep && slices.Index(p.classes, by) >= p.turn {
		return b.step - 1
	}
	return b.step
}

// begin makes the live state the object's only stored prediction, as of a step.
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

// met handles an object that arrived in a packet of a tick. It reports whether the client has
// already spawned that object; the predicted object then takes over the server's.
func (c *Client) met(o *netvar.Object, tick uint64) bool {
	p := &c.prediction
	by := p.of(o.Class())
	if by == nil || by.born < 0 || o.Owner() != uint64(c.id) {
		return false
	}
	born := (*netloop.SpawnKey)(unsafe.Add(o.Live(), by.born))
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

// withdraw despawns objects spawned up to a step that the server has not spawned.
func (c *Client) withdraw(upTo uint64) {
	c.withdrawIf(func(b *birth) bool { return b.step <= upTo })
}

// timeOut despawns unconfirmed objects that are too old to be matched, and objects spawned in steps
// that were dropped.
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
