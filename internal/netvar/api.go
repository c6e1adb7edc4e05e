package netvar

import (
	"iter"
	"reflect"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

type ID uint64
type Class struct{}

func NewClass(name string, t reflect.Type) (*Class, error) { panic("not written") }
func (c *Class) Name() string                              { panic("not written") }
func (c *Class) Index() int                                { panic("not written") }
func (c *Class) Describe() []codec.FieldInfo               { panic("not written") }

type Table struct{}

func NewTable(classes ...*Class) *Table { panic("not written") }
func (t *Table) Classes() []*Class      { panic("not written") }

type Object struct{ Handle any }

func (o *Object) ID() ID               { panic("not written") }
func (o *Object) Class() *Class        { panic("not written") }
func (o *Object) Live() unsafe.Pointer { panic("not written") }
func (o *Object) Owner() uint64        { panic("not written") }
func (o *Object) Alive() bool          { panic("not written") }
func (o *Object) Changed() uint64      { panic("not written") }

type Store interface {
	Get(ID) (*Object, bool)
	All(*Class) iter.Seq[*Object]
}

type World struct{}

func NewWorld(t *Table) *World { panic("not written") }
func (w *World) Spawn(c *Class, live unsafe.Pointer, owner uint64, tick uint64) *Object {
	panic("not written")
}
func (w *World) Edit(o *Object)                   { panic("not written") }
func (w *World) SetOwner(o *Object, owner uint64) { panic("not written") }
func (w *World) Despawn(o *Object)                { panic("not written") }
func (w *World) Capture(tick uint64)              { panic("not written") }
func (w *World) Stats() *Stats                    { panic("not written") }
func (w *World) Get(id ID) (*Object, bool)        { panic("not written") }
func (w *World) All(c *Class) iter.Seq[*Object]   { panic("not written") }
func (w *World) NewPeer(tick uint64) *Peer        { panic("not written") }
func (w *World) ClosePeer(p *Peer)                { panic("not written") }
func (w *World) Digest(p *Peer) uint64            { panic("not written") }

// Stats are plain counters of one World.
type Stats struct {
	Objects                                          int
	Captured, Versions, Clamped                      uint64
	Snapshots, Packets, Bytes, Records               uint64
	Deltas, Despawns, Waited                         uint64
	FullFirst, FullRequested, FullEvicted            uint64
	Acked, Lost, AckUnknown, AckStale, AckOverlapped uint64
}

type Limit struct{ Packets, PacketSize int }
type Range struct{ First, Last uint64 }
type Peer struct{}

func (p *Peer) AppendSnapshot(dst [][]byte, tick uint64, lim Limit) (packets [][]byte, first uint64) {
	panic("not written")
}
func (p *Peer) Ack(ranges []Range)          { panic("not written") }
func (p *Peer) RequestDigest(snapshots int) { panic("not written") }
func (p *Peer) RequestFull()                { panic("not written") }

type Replica struct{}
type Applied struct {
	Packet, Tick     uint64
	Index, Count     int
	Ack              bool
	SnapshotComplete bool
}
type EventKind uint8

const (
	Spawn EventKind = 1 + iota
	Change
	Despawn
)

type Event struct {
	Kind   EventKind
	Object *Object
	Old    unsafe.Pointer
}
type DigestState uint8

const (
	DigestNone DigestState = iota
	DigestEqual
	DigestUnequal
)

func NewReplica(t *Table) *Replica                      { panic("not written") }
func (r *Replica) StartAt(tick uint64)                  { panic("not written") }
func (r *Replica) Apply(packet []byte) (Applied, error) { panic("not written") }
func (r *Replica) Events() []Event                      { panic("not written") }
func (r *Replica) Digest() (DigestState, uint64)        { panic("not written") }
func (r *Replica) Tick() uint64                         { panic("not written") }
func (r *Replica) Get(id ID) (*Object, bool)            { panic("not written") }
func (r *Replica) All(c *Class) iter.Seq[*Object]       { panic("not written") }
