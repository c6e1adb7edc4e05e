package client

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Spawn makes an object that the server is about to spawn, so that, for example, a shot appears
// when it is fired. Call it in a step function of [Predict], or elsewhere in FixedUpdate. Its class
// is predicted too, and its state has a field of the type [netloop.SpawnKey], in which the server
// stores [netloop.Tick.SpawnKey].
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
// [Watch] and [View] like any other. The server's object with the same input, and the same index
// among the objects of that input, replaces it: the *Object remains the same, and watchers are not
// called. If the server has spawned no such object in that step, the object despawns. When the step
// runs again, Spawn returns the same object as before, with the new state.
//
// If a step function spawns an object of its own class, or of a class that was passed to Predict
// later, the object runs its first step in the same step, like an object of a system that runs
// after the inputs on the server.
//
// Spawn panics outside of FixedUpdate, with a class that is not predicted or has no field of type
// SpawnKey, and if the server has not yet confirmed 256 spawned objects.
func Spawn[S any](c *Client, k *netloop.Class[S], init S) *netloop.Object[S] {
	p, class := &c.prediction, bridge.Netloop.Class(k)
	by := p.of(class.State)
	switch {
	case by == nil:
		panic(fmt.Sprintf("client: Spawn: class %q is not predicted: call Predict for it", k.Name()))
	case by.spawnKeyOffset < 0:
		panic(fmt.Sprintf("client: Spawn: class %q needs a field of the type netloop.SpawnKey, which the server sets to Tick.SpawnKey", k.Name()))
	case p.now.Stage != netloop.FixedUpdate:
		panic("client: Spawn works in FixedUpdate only, where steps have inputs")
	}
	b := spawnInfo{step: p.now.FixedStep, n: p.stepSpawns, unconfirmed: true, inStep: p.running > 0}
	p.stepSpawns++
	*(*netloop.SpawnKey)(unsafe.Add(unsafe.Pointer(&init), by.spawnKeyOffset)) = netloop.SpawnKey{Step: b.step, N: b.n}
	return class.Wrap(p.spawn(by, b, unsafe.Pointer(&init)).o).(*netloop.Object[S])
}

// maxUnconfirmed limits the objects of Spawn that the server has not confirmed.
const maxUnconfirmed = 256

// spawnInfo identifies an object of Spawn by its step. All other objects have the zero value.
type spawnInfo struct {
	step        uint64
	n           uint8 // index among the objects of the step
	unconfirmed bool  // the server has not confirmed it
	inStep      bool  // made in a step function, and made again when its step runs again
	pending     bool  // the replay has not spawned it again yet
}

// spawnKeyField returns the offset of the field of type netloop.SpawnKey, or -1.
func spawnKeyField[S any]() int {
	t := reflect.TypeFor[S]()
	for i := range t.NumField() {
		if f := t.Field(i); f.Type == reflect.TypeFor[netloop.SpawnKey]() {
			return int(f.Offset)
		}
	}
	return -1
}

// spawn makes an object, or returns the object that an earlier run of the same step has made.
func (p *prediction) spawn(by *predictor, b spawnInfo, init unsafe.Pointer) *predicted {
	d := by.find(b.step, b.n)
	switch {
	case d == nil:
		if p.unconfirmed >= maxUnconfirmed {
			panic(fmt.Sprintf("client: Spawn: %d objects are unconfirmed: does the server store Tick.SpawnKey?", p.unconfirmed))
		}
		live := newState(by.class.State)
		by.copy(live, init)
		d = newPredicted(by, p.replica.AddLocal(by.class.State, live, uint64(p.conn.id)), p.window)
		d.spawn = b
		by.insert(d)
		p.objects[d.o] = d
		p.unconfirmed++
		by.copy(d.live, init)
		d.begin(p.lastStepWithout(by, b))
		p.watchers.notify(&replica.Event{Kind: replica.Spawn, Object: d.o})
	case d.spawn.pending:
		d.spawn.pending = false
		by.copy(d.live, init)
		d.begin(p.lastStepWithout(by, b))
	}
	return d
}

// lastStepWithout returns the last step that does not run the object: the step before its spawn if
// its class still runs in the step of the spawn, and otherwise the step of its spawn.
func (p *prediction) lastStepWithout(by *predictor, b spawnInfo) uint64 {
	if b.inStep && slices.Index(p.classes, by) >= p.classIndex {
		return b.step - 1
	}
	return b.step
}

// begin makes the live state the object's only stored prediction, as of a step.
func (d *predicted) begin(step uint64) {
	d.newest, d.base = 0, step
	d.keep(step)
}

// find returns the object of Spawn with this step and index, or nil.
func (by *predictor) find(step uint64, n uint8) *predicted {
	for _, d := range by.objects {
		if d.spawn.step == step && d.spawn.n == n && step > 0 {
			return d
		}
	}
	return nil
}

// confirm handles an object that arrived in a packet of a tick. It reports whether the client has
// already spawned that object; the predicted object then becomes the server's object.
func (p *prediction) confirm(o *state.Object, tick uint64) bool {
	by := p.of(o.Class())
	if by == nil || by.spawnKeyOffset < 0 || o.Owner() != uint64(p.conn.id) {
		return false
	}
	key := (*netloop.SpawnKey)(unsafe.Add(o.Live(), by.spawnKeyOffset))
	d := by.find(key.Step, key.N)
	if d == nil || !d.spawn.unconfirmed {
		return false
	}
	delete(p.objects, d.o)
	p.replica.RemoveLocal(d.o)
	bridge.Netloop.Repoint(d.o.Handle, o)
	d.o, d.spawn.unconfirmed = o, false
	d.version, d.known = o.Changed(), tick
	p.objects[o] = d
	p.unconfirmed--
	p.stats.Prediction.SpawnsMatched++
	by.objects = slices.DeleteFunc(by.objects, func(other *predicted) bool { return other == d })
	by.insert(d)
	return true
}

// expireSpawns despawns unconfirmed objects that are too old to be confirmed, and objects spawned
// in steps that were dropped.
func (p *prediction) expireSpawns() {
	last, window := p.last, p.window
	p.withdrawIf(func(b *spawnInfo) bool { return b.step > last || b.step+window <= last })
}

// withdrawIf despawns unconfirmed objects that match.
func (p *prediction) withdrawIf(match func(*spawnInfo) bool) {
	if p.unconfirmed == 0 {
		return
	}
	for _, by := range p.classes {
		for _, d := range slices.Clone(by.objects) {
			if d.spawn.unconfirmed && match(&d.spawn) {
				p.replica.RemoveLocal(d.o)
				delete(p.objects, d.o)
				by.objects = slices.DeleteFunc(by.objects, func(other *predicted) bool { return other == d })
				p.unconfirmed--
				p.stats.Prediction.SpawnsWithdrawn++
				p.watchers.notify(&replica.Event{Kind: replica.Despawn, Object: d.o, Old: d.o.Live()})
			}
		}
	}
}
