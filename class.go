package netloop

import (
	"fmt"
	"iter"
	"reflect"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/schema"
)

// Class declares a kind of replicated object whose state is an S: a plain
// struct whose fields are the network variables. [Class.Spawn] makes objects; [Class.All] and
// [Class.Owned] walk over them, and [Ref.Get] finds one by its id.
//
// # Tags
//
// The tags of a field say how it travels. These are all there are. In a message key, interval,
// threshold, lerp, teleport and weight mean nothing, and read is refused.
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
//	Life int32   `net:"weight=8"`  // a change of it goes before others: see below
//	Hand []Card  `net:"read=owner"`  // to the object's owner alone
//	Plan Plan    `net:"read=team"`   // to whom the rule "team" names, see [Class.Reads]
//
// What a tag takes, and refuses in the panic of [NewClass]:
//
//	quant      the field's unit, as a decimal or a fraction: 1 to 2²⁰−1 over 1 to 2⁴⁰−1 in lowest
//	           terms; a value is at most 2³¹−1 steps from 0 in a float32, 2⁵³ in a float64
//	range      the field's unit, the smaller end first; needs quant, and lies within those steps
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
//	teleport   nothing: it stands alone
//	weight     1/64 to 64, as a decimal or a fraction
//
// quant, range, threshold, lerp, teleport, weight and read on a struct or array hold for what is
// inside, unless it has its own.
//
// A state takes at most 15 KiB on the wire. One that takes more than a packet, about 1 kB, goes
// over the client's stream, and while it is under way nothing else of its object is sent to that
// client: what changes often belongs into another class than a long list.
//
// Fields may be booleans, integers and named integers, floats, strings, byte slices, arrays, nested
// structs, slices, maps by integers, strings and Refs, sets (map[K]struct{}), pointers to generated
// protobuf messages, [Ref] and [Deadline]. Without max a string takes 128 bytes, as strings within
// a slice or map do without each, a byte slice or a protobuf message 256, and a slice or map 64
// elements. What is too long is cut and counted; a protobuf message that is, or that cannot be
// encoded, is sent as nil and counted. What was stored in a field of a protobuf message may be
// changed in place, after Edit. Without quant a float travels exactly. NaN becomes 0; where quant
// is given, infinities and values out of range are clamped, counted, and named in the log once. A
// range that is no whole number of steps reaches to the next one outside. docs/GUIDE.md has a
// table of all values that do not fit.
//
// What a client may not read of an object is zero there, and a change of it sends that client
// nothing. read= on a struct or array holds for what is inside, where read=all makes an exception;
// a slice or map is read as a whole. The owner of an object is known to everybody.
//
// quat is for four float32, as an array or a struct of them, in any order. What arrives is
// of length 1 and has its largest component positive; all zeros stay zeros.
//
// interval and threshold hold changes back, from all clients alike; they are not for messages.
// A field with an interval, in game time and up to a minute, is sent again when that has
// passed since its last change was, edited meanwhile or not; what lies in a struct or array
// with an interval goes together, as far as the same clients may read it. A threshold is in
// the field's own unit, for a quaternion in degrees; on a struct or array it holds for each
// number inside but not for booleans and what else has no size. A change is measured from what
// was sent last, so that a slow drift is sent when it adds up; what never gets that far is
// never sent, and then clients differ from the server by less than the threshold for good.
//
// weight, from 1/64 to 64 and 1 without it, says how much a change of the field is needed when not
// everything fits what a client may be sent: see [Weight]. Of an object the largest counts among
// the fields that the client may read and of which it has not acknowledged the last change, or all
// that it may read if it has not got the object yet; a change of owner counts as 1. The others of
// its fields go along. On a struct or array it holds for what is inside, where another tag stands
// for itself; a slice or map is needed as a whole. It is the server's alone, and not for messages.
// There is no 0: what has changed is owed, and goes when there is room.
//
// teleport says that the whole object is another where the field is: between two states that differ
// in it nothing is drawn, but the older one until the newer is reached. A counter does, which costs
// a bit while it rests: s.Pos, s.Hops = there, s.Hops+1. Any field may have the tag that says where
// the others belong, such as a map or a Ref to the ship on which somebody stands; several may. Like
// lerp it is not sent.
type Class[S any] struct{ c *class }

// class is a Class with its type erased.
type class struct {
	schema *schema.Schema
	nv     *netvar.Class
	wrap   func(*netvar.Object) any // the *Object of an object

	weight  float64
	minRate float64 // per second, 0 = none

	predicted bool
}

// NewClass declares a class. The fields of S are the network variables, and their tags, which
// [Class] lists, say how each travels. It panics if S has a field that cannot travel, and
// the panic names the field and the remedy.
func NewClass[S any](sc *Schema, name string, o ...ClassOption) *Class[S] {
	sc.s.Claim("class", name)
	nv, err := netvar.NewClass(name, reflect.TypeFor[S](), schema.ProtoFields)
	if err != nil {
		panic(fmt.Sprintf("netloop: class %q: %v", name, err))
	}
	c := &class{schema: sc.s, nv: nv, wrap: func(o *netvar.Object) any { return wrap[S](o) }, weight: 1}
	for _, apply := range o {
		apply(c)
	}
	sc.s.AddClass(nv, c.predicted)
	sc.classes = append(sc.classes, c)
	return &Class[S]{c}
}

// Name returns the name that the class was declared with.
func (k *Class[S]) Name() string { return k.c.nv.Name() }

func (k *Class[S]) class() *class { return k.c }

// belongs reports a class of another schema than the room's.
func (c *class) belongs(room *schema.Schema) error {
	if c.schema == room {
		return nil
	}
	return fmt.Errorf("class %q belongs to schema %q, but the room runs schema %q", c.nv.Name(), c.schema.Name, room.Name)
}

// SpawnOption is an option of [Class.Spawn].
type SpawnOption func(*spawn)

type spawn struct {
	owner   ClientID
	keep    bool
	visible Target
}

// Spawn adds an object with the given state. Clients learn of it with the
// snapshot of this tick. It panics on a client, with the class of another
// schema, and when the room holds 65 536 objects already.
func (k *Class[S]) Spawn(t *Tick, init S, o ...SpawnOption) *Object[S] {
	r := t.server("Class.Spawn")
	if err := k.c.belongs(r.schema.s); err != nil {
		panic("netloop: Class.Spawn: " + err.Error())
	}
	opt := spawn{visible: Everyone()}
	for _, apply := range o {
		apply(&opt)
	}
	if r.e.World().Full() {
		panic(fmt.Sprintf("netloop: Class.Spawn: a room holds at most %d objects: despawn some before spawning a %q", netvar.MaxSlots, k.Name()))
	}
	live := new(S)
	*live = init
	obj := wrap[S](r.e.World().SpawnFor(k.c.nv, unsafe.Pointer(live), r.audience(k.c.nv, opt.visible), 0, t.now.Tick))
	obj.keep = opt.keep
	r.setOwner(obj.o, opt.owner)
	return obj
}

// All iterates over the objects of the class in the order of their ids, on a client over those that
// it has. Objects may be spawned and despawned meanwhile: one that is despawned does not come any
// more, one that is spawned may or may not come. A single object is found by its id: keep its
// [Object.Ref], in a message or in a state too, and ask [Ref.Get].
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

// Len returns how many objects of the class there are, on a client how many of them it has. It
// costs a look at one bit per object of the room.
func (k *Class[S]) Len(t *Tick) int {
	t.check("Class.Len")
	return t.store.Len(k.c.nv)
}

// Owned iterates over the objects of the class that a client owns, in the order
// of their ids, on a client those that it has. Objects may be spawned, despawned and
// given away meanwhile: one that is not the client's any more does not come. It costs
// by what the client owns, not by how many objects there are. For 0 the objects without
// an owner come, of a walk over them all.
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

// Lerp says how a field is to be drawn between two states, by the tag lerp= of the
// field. Without a tag floats are linear, quaternions turn, and all else steps. On a struct or
// array the tag holds for each number inside that can be drawn so.
//
// It is a hint to whoever draws, and of that side alone: it is not sent, and
// builds that differ in it play with each other.
type Lerp = codec.Lerp

// The ways to draw.
const (
	LerpNone     = codec.LerpStep     // the older state's until the newer is reached: lerp=none
	LerpLinear   = codec.LerpLinear   // a straight line between both: lerp=linear, integers too
	LerpAngle    = codec.LerpAngle    // in radians, the short way round: lerp=angle, for floats
	LerpDegrees  = codec.LerpDegrees  // in degrees, the short way round: lerp=degrees
	LerpRotation = codec.LerpRotation // the short way from one quaternion to the other
)

// Field describes one network variable of a class: a value that changes on its own.
type Field struct {
	Name      string        // the path in the struct, such as Pos.X
	Type      string        // what travels, such as float32, quat or slice
	Read      string        // the tag read=, empty for everybody
	Lerp      Lerp          // how it is to be drawn
	Teleport  bool          // the tag teleport
	Interval  time.Duration // the least time between two changes that are sent, 0 is none
	Threshold float64       // the least change that is sent, in the field's unit; 0 is none
	Weight    float64       // the tag weight=, 1 if there is none
}

// Fields describes the network variables of the class, in the order of the struct; a slice
// or map is one. Both sides can be asked, each for its own declaration.
func (k *Class[S]) Fields() []Field {
	var fields []Field
	for _, l := range k.c.nv.DescribeLeaves() {
		fields = append(fields, Field(l))
	}
	return fields
}
