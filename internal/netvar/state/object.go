package state

import (
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// Object is one replicated value. It belongs to the goroutine of its World or Replica. Its memory
// is never reused for another object.
type Object struct {
	// The fields that every packet of a client accesses are first and together: see History.
	id       ID
	class    *Class
	live     unsafe.Pointer // *S
	changed  uint64         // tick of the newest version
	owner    uint64
	Life     uint64 // on a client: the tick that identifies the lifetime
	EventGen uint64 // on a client: generation of the events that have its spawn or change
	Hist     History
	serial   uint64 // order of spawning: an iteration skips objects spawned during it
	Heap     int    // on a client: bytes allocated by the live value
	alive    bool
	Shown    bool // on a client, for package client: it was drawn with another owner

	began []uint64 // on a server, by rule: tick since which the oldest version has its values

	Born uint64 // tick of the first version; on a client, of the lifetime

	// On a client, for drawing: see moment.go.
	Remasked uint64 // version of the record that changed the readable fields
	Ended    uint64 // the tick at which the object ended, or 0
	Past     *Past

	Handle any // the typed handle of the root package

	// On a server.
	Weight   uint32   // fixed point
	Dirty    bool     // in the world's list of edited objects
	Asking   bool     // its audience is being called
	Recheck  bool     // the next capture asks its audience
	Fields   []uint64 // tick of the last change: owner, then each leaf
	Compared uint64   // the last capture that compared the object

	// For digests, on both sides.
	hash   uint64 // of the readable fields of a version: on a server of all fields
	Hashed uint64 // the version that was hashed
}

// NewObject makes an object, which a set then adds. live points to an S of the class.
func NewObject(id ID, c *Class, live unsafe.Pointer, owner uint64) *Object {
	return &Object{id: id, class: c, live: live, owner: owner, Hist: newHistory(c)}
}

// ID returns the id, which is unique in this world.
func (o *Object) ID() ID { return o.id }

func (o *Object) Slot() int { return o.id.Slot() }

// Class returns the class as this side has declared it.
func (o *Object) Class() *Class { return o.class.own }

// WireClass returns the class with the layout of the wire, which is the server's.
func (o *Object) WireClass() *Class { return o.class }

// Plan returns the encoding of the object's values, which is the server's layout.
func (o *Object) Plan() *codec.Plan { return o.class.plan }

// Live returns a pointer to the S of the object: on a server the value that Edit returns, on a
// client the newest applied value. After a despawn it has the last value.
func (o *Object) Live() unsafe.Pointer { return o.live }

// Owner returns the owning client, or 0.
func (o *Object) Owner() uint64 { return o.owner }

// Alive reports whether the object has not been despawned.
func (o *Object) Alive() bool { return o.alive }

// SetAlive sets the result of Alive, for an object that is in no Set.
func (o *Object) SetAlive(alive bool) { o.alive = alive }

// Changed returns the server tick of the value: the tick of the newest capture with a change or,
// before the first capture, of the spawn.
func (o *Object) Changed() uint64 { return o.changed }

// SetChanged sets the tick of the newest version.
func (o *Object) SetChanged(tick uint64) { o.changed = tick }

// Published reports whether the object has been captured, and so announced to the peers.
func (o *Object) Published() bool { return o.Hist.Len() > 0 }

// Newest returns the newest version. It is valid until the next packet is applied.
func (o *Object) Newest() codec.Values { return o.Hist.Newest() }
