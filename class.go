package netloop

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Class declares a kind of replicated object with a state of type S: a plain struct of network
// variables, its fields. [Class.Spawn] makes objects, [Class.All] and [Class.Owned] iterate over
// them, and [Ref.Get] finds an object by its id.
//
// # Tags
//
// The tags of a field control its encoding and sending. The list below is complete. For fields of a
// message key, interval, threshold, lerp, teleport and weight have no effect, and read is an error.
//
//	X    float32 `net:"quant=1/256"` // in steps of 1/256
//	Heat float32 `net:"quant=0.1,range=20:90"` // and within a range
//	Rot  [4]float32 `net:"quat=10"`  // a rotation: three times 10 bits
//	Name string  `net:"max=16"`      // at most 16 bytes
//	Bag  []Item  `net:"max=20,key=ID"` // at most 20, told apart by their field ID
//	Ammo map[string]int32 `net:"max=8,each=12"` // at most 8, by names of at most 12 bytes
//	Memo string  `net:"-"`           // not at all
//	Pace float32 `net:"name=Speed"`  // under the name that it had before
//	Mood int32   `net:"interval=500ms"` // at most twice a second
//	Fuel float32 `net:"threshold=0.5"` // only when it has changed by half a unit
//	Yaw  float32 `net:"lerp=angle"`  // drawn the short way round: see [Lerp]
//	Hops uint8   `net:"teleport"`    // when it has changed, all of the object steps: see below
//	Life int32   `net:"weight=8"`  // a change of it is sent before others: see below
//	Hand []Card  `net:"read=owner"`  // to the object's owner alone
//	Plan Plan    `net:"read=team"`   // to clients that the rule "team" names, see [Class.Reads]
//
// The values of each tag ([NewClass] panics for any other value):
//
//	quant      the field's unit, as a decimal or a fraction: 1 to 2²⁰−1 over 1 to 2⁴⁰−1 in lowest
//	           terms; a value is at most 2³¹−1 steps from 0 in a float32, 2⁵³ in a float64
//	range      the field's unit, the smaller end first, within those steps; needs quant
//	quat       3 to 20 bits for a component: 9 are a quarter of a degree off at worst
//	max        1 to 65 536: bytes of a string, of a byte slice or of a protobuf message, elements
//	           of a slice or map
//	each       1 to 65 536: bytes of each string or protobuf message in a slice or map
//	key        a field of the elements of a slice
//	name       letters, digits and underscores, the first no digit, at most 64 bytes
//	read       all, owner, or a rule of the class, which is written as a name is
//	interval   game time as time.ParseDuration reads it, above 0 and up to 1m
//	threshold  the field's unit, above 0; degrees of a quaternion
//	lerp       none, linear, angle or degrees: see [Lerp]
//	teleport   no value
//	weight     1/64 to 64, as a decimal or a fraction
//
// quant, range, threshold, lerp, teleport, weight and read on a struct or array apply to the fields
// inside, unless these have their own tags.
//
// A state takes at most 15 KiB on the wire. A state larger than a packet, about 1 kB, is sent over
// the client's stream. Until it has arrived, no other change of its object is sent to that client:
// declare fields that change often in another class than a long list.
//
// Fields may be booleans, integers and named integers, floats, strings, byte slices, arrays, nested
// structs, slices, maps by integers, strings and Refs, sets (map[K]struct{}), pointers to generated
// protobuf messages, [Ref] and [Deadline]. The default max is 128 bytes for a string, 256 bytes for
// a byte slice or a protobuf message, and 64 elements for a slice or map; the default each is 128
// bytes for strings and 256 bytes for protobuf messages. A value that is too long is cut and
// counted; a protobuf message that is too long, or that cannot be encoded, is sent as nil and
// counted. A protobuf message that is stored in a field may be changed in place, after Edit.
// Without quant a float is sent exactly. NaN becomes 0; with quant, infinities and values out of
// range are clamped, counted, and named in the log once. A range that is not a whole number of
// steps is extended to the next step outside. docs/GUIDE.md has a table of all values that do not
// fit.
//
// On a client, fields that it may not read are zero, and changes of these fields are not sent to
// it. read= on a struct or array applies to the fields inside, except those with read=all; a slice
// or map is readable as a whole. All clients know the owner of an object.
//
// quat is for four float32, as an array or a struct of them, in any order. The decoded value has
// length 1 and a positive largest component; all zeros stay zeros.
//
// interval and threshold delay changes, for all clients alike; they are not for messages. An
// interval is game time, up to a minute: a change is sent once the interval has passed since the
// last sent change of the field, even if the field was not edited in between. The fields of a
// struct or array with an interval are sent together, as far as the same clients may read them. A
// threshold is in the field's own unit, for a quaternion in degrees; on a struct or array it
// applies to each number inside but not to booleans and other types without a size. A change is
// measured from the value sent last, so that a slow drift is sent when it reaches the threshold. A
// smaller change is never sent: clients may permanently differ from the server by less than the
// threshold.
//
// weight, from 1/64 to 64 and 1 by default, is a factor of the object's priority when a client's
// changes exceed its budget: see [Weight]. An object counts with the largest weight among
// the readable fields with an unacknowledged last change, or among all readable fields if the
// client does not have the object yet; a change of owner counts as 1. The object's other changed
// fields are sent with it. On a struct or array the weight applies to the fields inside without
// their own weight; a slice or map has one weight. Only the server uses it, and it is not for
// messages. The weight cannot be 0: each change is sent when the budget permits.
//
// teleport makes the whole object jump when the field changes: between two states in which the
// field differs, no field is interpolated, and the older state is drawn until the newer one is
// reached. A counter is suitable, and costs a bit while it does not change: s.Pos, s.Hops = there,
// s.Hops+1. So is any field that sets the frame of reference of others, such as the id of a map, or
// a Ref to the ship that carries a passenger. Several fields may have the tag. Like lerp it is not
// sent.
type Class[S any] struct{ c *class }

// class is a Class with its type erased.
type class struct {
	schema *schema.Schema
	nv     *state.Class
	wrap   func(*state.Object) any // returns the *Object[S] of an object

	weight  float64
	minRate float64 // per second; 0: none

	predicted bool
}

// NewClass declares a class. The fields of S are the network variables. Their tags, which [Class]
// lists, control their encoding. It panics if S has a field that cannot be sent, and the panic
// names the field and the remedy.
func NewClass[S any](sc *Schema, name string, o ...ClassOption) *Class[S] {
	sc.s.Claim("class", name)
	nv, err := state.NewClass(name, reflect.TypeFor[S](), schema.ProtoFields)
	if err != nil {
		panic(fmt.Sprintf("netloop: class %q: %v", name, err))
	}
	c := &class{schema: sc.s, nv: nv, wrap: func(o *state.Object) any { return wrap[S](o) }, weight: 1}
	for _, one := range o {
		one.apply(c)
	}
	sc.s.AddClass(nv, c.predicted)
	sc.classes = append(sc.classes, c)
	return &Class[S]{c}
}

// Name returns the name with which the class was declared.
func (k *Class[S]) Name() string { return k.c.nv.Name() }

func (k *Class[S]) class() *class { return k.c }

// belongs returns an error if the class is not in the room's schema.
func (c *class) belongs(room *schema.Schema) error {
	if c.schema == room {
		return nil
	}
	return fmt.Errorf("class %q belongs to schema %q, but the room runs schema %q", c.nv.Name(), c.schema.Name, room.Name)
}

// SpawnOption is an option of [Class.Spawn].
type SpawnOption struct{ apply func(*spawn) }

type spawn struct {
	owner   ClientID
	keep    bool
	visible Target
}

// Spawn adds an object with the given state. The snapshot of this tick sends it to clients. It
// panics on a client, with the class of another schema, and when the room holds 65 536 objects
// already.
func (k *Class[S]) Spawn(t *Tick, init S, o ...SpawnOption) *Object[S] {
	r := t.server("Class.Spawn")
	if err := k.c.belongs(r.schema.s); err != nil {
		panic("netloop: Class.Spawn: " + err.Error())
	}
	opt := spawn{visible: Everyone()}
	for _, one := range o {
		one.apply(&opt)
	}
	if r.e.World().Full() {
		panic(fmt.Sprintf("netloop: Class.Spawn: a room holds at most %d objects: despawn some before spawning a %q", packet.MaxSlots, k.Name()))
	}
	live := new(S)
	*live = init
	obj := wrap[S](r.e.World().SpawnFor(k.c.nv, unsafe.Pointer(live), r.audience(k.c.nv, opt.visible), 0, t.now.Tick))
	obj.keep, obj.offTick = opt.keep, r.offTick
	r.setOwner(obj.o, opt.owner)
	return obj
}

// All iterates over the objects of the class in the order of their ids, on a client over its
// copies. Objects may be spawned and despawned during the iteration: a despawned object is skipped,
// a spawned object may be included or not. To find a single object by its id, store its
// [Object.Ref], also in a message or a state, and call [Ref.Get].
func (k *Class[S]) All(t *Tick) iter.Seq[*Object[S]] {
	t.check("Class.All")
	return func(yield func(*Object[S]) bool) {
		for o := range t.store.All(k.c.nv) {
			if !yield(wrap[S](o)) {
				return
			}
		}
	}
}

// Len returns the number of objects of the class, on a client the number of its copies. It reads
// one bit for each object of the room.
func (k *Class[S]) Len(t *Tick) int {
	t.check("Class.Len")
	return t.store.Len(k.c.nv)
}

// Owned iterates over the objects of the class that a client owns, in the order of their ids, on a
// client over its copies. Objects may be spawned, despawned and given to another owner during the
// iteration: an object that the client no longer owns is skipped. The cost depends on the number of
// the client's objects, not on the number of all objects. With 0 it visits all objects, and yields
// the objects without an owner.
func (k *Class[S]) Owned(t *Tick, by ClientID) iter.Seq[*Object[S]] {
	t.check("Class.Owned")
	return func(yield func(*Object[S]) bool) {
		objects := t.store.Owned(uint64(by))
		if by == 0 {
			objects = t.store.All(k.c.nv)
		}
		for o := range objects {
			if o.Class() == k.c.nv && o.Owner() == uint64(by) && !yield(wrap[S](o)) {
				return
			}
		}
	}
}

// Lerp tells how a field is drawn between two states, set by the tag lerp= of the field. Without a
// tag floats are linear, quaternions turn, and all other types step. On a struct or array the tag
// applies to each number inside that it permits.
//
// It is only a hint for drawing: it is not sent, and builds with different Lerps can play with each
// other.
type Lerp uint8

// The ways to draw a field between two states, with the values of package codec.
const (
	LerpNone     Lerp = iota // the older state until the newer one is reached: lerp=none
	LerpLinear               // a straight line, for integers too: lerp=linear
	LerpAngle                // in radians, the short way, for floats: lerp=angle
	LerpDegrees              // in degrees, the short way round: lerp=degrees
	LerpRotation             // the short way from one quaternion to the other
)

// String returns the value of the tag, or "rotation".
func (l Lerp) String() string { return codec.Lerp(l).String() }

// Field describes one network variable of a class: a value that is compared and sent separately.
type Field struct {
	Name      string        // the path in the struct, such as Pos.X
	Type      string        // the type on the wire, such as float32, quat or slice
	Read      string        // the tag read=; empty: all clients may read it
	Lerp      Lerp          // way to draw it between two states
	Teleport  bool          // the tag teleport
	Interval  time.Duration // the least time between two sent changes; 0: no limit
	Threshold float64       // the least change that is sent, in the field's unit; 0: any change
	Weight    float64       // the tag weight=, 1 if there is none
}

// Fields returns the network variables of the class, in the order of the struct; a slice or map
// counts as one. A server and a client each return the fields of their own declaration.
func (k *Class[S]) Fields() []Field {
	var fields []Field
	for _, l := range k.c.nv.DescribeLeaves() {
		fields = append(fields, Field{
			Name: l.Name, Type: l.Type, Read: l.Read, Lerp: Lerp(l.Lerp), Teleport: l.Teleport,
			Interval: l.Interval, Threshold: l.Threshold, Weight: l.Weight,
		})
	}
	return fields
}

// Predicted lets clients predict their own objects of the class: see client.Predict. The server and
// the client then run the same function on the same state, so both round that state to its encoded
// precision. The built-in system netvar.round, the last of [FixedUpdate], rounds each edited object
// at the end of each fixed step; it is rounded again when it is captured. For the game this means:
//
//   - A step's change of a number must be at least a unit of it, or it is lost each time: a speed
//     of 0.01 in a second never moves a position in steps of 1/256. Choose finer units, or leave
//     quant out, for numbers that a step adds to.
//   - Local fields (`net:"-"`) are not sent to the client, which starts from zero there. A step
//     must not depend on them, nor on fields that the owner may not read.
//   - A field with interval or threshold reaches the client late or never. If a step changes such a
//     field, the client is corrected repeatedly.
//   - An edit outside FixedUpdate reaches the client with the snapshot, as a correction.
func Predicted() ClassOption { return ClassOption{func(c *class) { c.predicted = true }} }

// OnMap names the two fields with an object's position, such as "X" and "Y" or "Pos.X" and "Pos.Z":
// the inspector draws the objects of the class on a map. It has no other effect. [NewClass] panics
// if a name is not the name of a number.
func OnMap(x, y string) ClassOption {
	return ClassOption{func(c *class) {
		if err := c.nv.SetMap(x, y); err != nil {
			panic(fmt.Sprintf("netloop: OnMap: class %q: %v", c.nv.Name(), err))
		}
	}}
}

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

// ownerRule is the rule read=owner, which every class has.
const ownerRule = "owner"

// Reads defines the read rule of the fields with the tag read= and its name. For each object of the
// class, readers returns the clients that may read these fields. Other clients have zeros in the
// fields, and are not sent their changes.
//
//	type Ship struct {
//		Pos  Vec                            // for all clients
//		Ammo int32  `net:"read=owner"`      // for the client that owns the ship
//		Plan string `net:"read=team,max=64"`
//	}
//
//	ships.Reads(room, "team", func(o *netloop.Object[Ship]) netloop.Target {
//		return netloop.InGroup(teams[o.State().Team])
//	})
//
// A rule's result is any [Target]: [InGroup], [Where] with a function of the client, [To], and
// combinations by And and Or.
//
// The room calls readers at the end of the tick in which an object is spawned, and then evaluates
// the target for every client. It does both again when the object's owner changes and after
// [Object.Invalidate]. It evaluates only the target for each client that joins, after the client's
// OnJoin functions have run, and for each client that joins or leaves a [ClientGroup] that the
// target names. It does none of this each tick, and the functions must change no state. A change
// that is undone within a tick has no effect. If a function panics, no client may read the fields.
//
// Call Reads in the game's Open, once for each rule that the class's tags name. Open fails if a
// rule is missing.
func (k *Class[S]) Reads(r *Room, rule string, readers func(o *Object[S]) Target) {
	if !r.takes(k.c, "Class.Reads") {
		return
	}
	if err := r.readers[k.c.nv.Index()].define(k.c, rule, func(o *state.Object) Target { return readers(wrap[S](o)) }); err != nil {
		r.reject(err)
	}
}

// readers are the read rules of one class. It implements interest.Readers.
type readers struct {
	room  *Room
	at    panicguard.Func
	rules []func(*state.Object) Target // by rule; nil for the rule "owner"
}

// setReaders registers the readers of all classes with rules.
func (r *Room) setReaders() {
	r.readers = make([]*readers, len(r.schema.classes))
	for i, c := range r.schema.classes {
		if rules := c.nv.Rules(); rules != nil {
			r.readers[i] = &readers{
				room: r, rules: make([]func(*state.Object) Target, len(rules)),
				at: panicguard.Func{Name: "Class.Reads", Class: c.nv.Name(), Effect: "no client may read by the rule"},
			}
			r.e.World().SetReaders(c.nv, r.readers[i])
		}
	}
}

func (rd *readers) define(c *class, rule string, target func(*state.Object) Target) error {
	n := slices.Index(c.nv.Rules(), rule)
	switch {
	case rule == ownerRule:
		return fmt.Errorf("class %q: Reads(%q): every class has this rule; use another name", c.nv.Name(), rule)
	case n < 1:
		return fmt.Errorf("class %q: Reads(%q): no field is tagged read=%s", c.nv.Name(), rule, rule)
	case rd.rules[n] != nil:
		return fmt.Errorf("class %q: Reads(%q): the rule is defined twice", c.nv.Name(), rule)
	}
	rd.rules[n] = target
	return nil
}

// undefinedRules returns an error for rules that tags of fields name and Reads has not defined.
func (r *Room) undefinedRules() error {
	var errs []error
	for i, c := range r.schema.classes {
		for n, rule := range c.nv.Rules() {
			if n > 0 && rule != ownerRule && r.readers[i].rules[n] == nil {
				errs = append(errs, fmt.Errorf("class %q: field %s has read=%s, and the rule is not defined: call Reads(room, %q, …) of the class in Open", c.nv.Name(), c.nv.RuleField(n), rule, rule))
			}
		}
	}
	return errors.Join(errs...)
}

// Ask implements interest.Readers.
func (rd *readers) Ask(o *state.Object) {
	targets := o.Handle.(interface{ readBy() *[]Target }).readBy()
	if *targets == nil {
		*targets = make([]Target, len(rd.rules))
	}
	for n, rule := range rd.rules {
		if rule != nil {
			(*targets)[n] = rd.target(o, rule)
		}
	}
}

// target calls a rule. It runs within the critical system netvar.snapshot, so it recovers a panic
// of the game's function, and then returns the zero Target, which is empty.
func (rd *readers) target(o *state.Object, rule func(*state.Object) Target) Target {
	defer rd.room.e.Guard().Recover(&rd.at, nil)
	return rule(o)
}

// Withheld implements interest.Readers.
func (rd *readers) Withheld(o *state.Object, p *interest.Viewer) (withheld state.Rules) {
	c := peerOf(p)
	for n := 1; n < len(rd.rules); n++ {
		if !rd.reads(n, o, c) {
			withheld |= 1 << n
		}
	}
	return withheld
}

func (rd *readers) reads(n int, o *state.Object, c *Client) bool {
	if rd.rules[n] == nil {
		return o.Owner() == c.e.ID()
	}
	defer rd.room.e.Guard().Recover(&rd.at, nil)
	return (*o.Handle.(interface{ readBy() *[]Target }).readBy())[n].includes(c)
}
