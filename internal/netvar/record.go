package netvar

import (
	"bytes"
	"errors"

	"github.com/netloop/netloop/internal/wire"
)

// The layout of a state packet. uvarint is base 128, least significant group first; zigzag is
// a uvarint of a signed number; fixed numbers are little endian.
//
//	packet  = coder:1 flags:1 index:1 count:1 tick:4 [behind:1] [left:4 total:4] packet:uvarint
//	          [digest:8] record*
//	flags   : 1 = a digest follows, 2 = complete, 4 = behind follows, 8 = left and total follow;
//	          all others 0
//	behind  : by how many ticks the client stays behind in what did not fit; 255 is also more
//	left    : objects of the first state that the client lacks after this snapshot, of total: see progress.go
//	record  = head:uvarint rest            head = slotStep<<3 | kind
//	          slotStep = slot - slot of the record before in this packet - 1 (before the first: -1)
//	kind 0  : delta, baseAge and mask as before  rest = diffs
//	kind 1  : delta, baseAge as before           rest = mask diffs
//	kind 2  : delta                              rest = baseAge:uvarint mask diffs
//	kind 3  : delta of an older version          rest = age:uvarint baseAge:uvarint mask diffs
//	kind 4  : full                               rest = flags:1 lifeAge:uvarint age:uvarint
//	                                                    class:uvarint gen:uvarint [mask] owner:uvarint fields
//	                                             flags: 1 = a mask follows, of the fields that may be read: see reads.go
//	kind 5  : despawn                            rest = nothing
//
// The version of a record is tick - age (kinds 0 to 2: tick), its baseline version - baseAge, its
// lifetime tick - lifeAge. As before: the baseAge of the last record of kind 2 in this packet, the
// mask of the last delta of this class in this packet. The records end where the packet ends.
const (
	coderBytes = 1 // byte-aligned differences; the packet names its coder so that others may come

	flagDigest   = 1
	flagComplete = 2
	flagBehind   = 4
	flagLoading  = 8

	atFlags  = 1 // offsets that are patched when the snapshot is cut
	atCount  = 3
	atBehind = 8

	wireRepeat  = 0
	wireSameAge = 1
	wireDelta   = 2
	wireOlder   = 3
	wireFull    = 4
	wireDespawn = 5

	kindBits = 3
)

// context is what the records of a packet have said so far; both sides keep it. Most objects
// that move have the same baseline, and move in the same fields.
type context struct {
	tick  uint64
	prev  int      // slot of the last record, or -1
	age   uint64   // base age of the last record of kind 2, 0 before the first
	masks [][]byte // by class: of its last delta, empty before the first
}

func newContext(t *Table) context { return context{masks: make([][]byte, len(t.classes))} }

// begin forgets all, for a packet of this tick.
func (x *context) begin(tick uint64) {
	x.tick, x.prev, x.age = tick, -1, 0
	for i := range x.masks {
		x.masks[i] = x.masks[i][:0]
	}
}

const (
	// MaxPacket is the size of a packet: what a datagram carries beside its own envelope on every
	// path that QUIC accepts.
	MaxPacket = 1100
	// MaxPackets bounds one snapshot, so that 64 bits tell which of them have arrived.
	MaxPackets = 64

	maxHeader     = 8 + 1 + 8 + 10 + 8
	maxRecordHead = 3 + 1 + 10 + 10 + 3 + 5 + 10
)

// The errors of a packet that is refused. Packets come from the server, so each of them is a
// fault or an attack, and nothing of the packet is applied.
var (
	ErrHeader   = errors.New("netvar: packet header is malformed or of another version")
	ErrRecord   = errors.New("netvar: record is malformed")
	ErrSlot     = errors.New("netvar: slot out of range")
	ErrClass    = errors.New("netvar: unknown class")
	ErrBaseline = errors.New("netvar: record names a baseline that is not here")
	ErrOrder    = errors.New("netvar: record is older than what is here")
	ErrMemory   = errors.New("netvar: too much state to keep")
)

// header is the start of a packet.
type header struct {
	Tick        uint64
	Packet      uint64
	Index       uint8
	Count       uint8
	HasDigest   bool
	Complete    bool
	HasBehind   bool // something may not have fitted
	Behind      uint8
	HasLoading  bool // the first state is not acknowledged
	Left, Total uint32
	Digest      uint64
}

// atLeft is the offset of Left.
func (h *header) atLeft() int {
	if h.HasBehind {
		return atBehind + 1
	}
	return atBehind
}

func appendHeader(dst []byte, h *header) []byte {
	var flags byte
	if h.HasDigest {
		flags |= flagDigest
	}
	if h.Complete {
		flags |= flagComplete
	}
	if h.HasBehind {
		flags |= flagBehind
	}
	if h.HasLoading {
		flags |= flagLoading
	}
	dst = append(dst, coderBytes, flags, h.Index, h.Count)
	dst = wire.AppendUint32(dst, uint32(h.Tick))
	if h.HasBehind {
		dst = append(dst, h.Behind)
	}
	if h.HasLoading {
		dst = wire.AppendUint32(wire.AppendUint32(dst, h.Left), h.Total)
	}
	dst = wire.AppendUvarint(dst, h.Packet)
	if h.HasDigest {
		dst = wire.AppendUint64(dst, h.Digest)
	}
	return dst
}

// readHeader reads a header; near is the newest tick known.
func readHeader(r *wire.Reader, near uint64, h *header) {
	coder, flags := r.Byte(), r.Byte()
	h.Index, h.Count = r.Byte(), r.Byte()
	h.Tick = wire.WidenTick(near, r.Uint32())
	h.HasDigest, h.Complete, h.HasBehind = flags&flagDigest != 0, flags&flagComplete != 0, flags&flagBehind != 0
	if h.HasBehind {
		h.Behind = r.Byte()
	}
	if h.HasLoading = flags&flagLoading != 0; h.HasLoading {
		h.Left, h.Total = r.Uint32(), r.Uint32()
	}
	h.Packet = r.Uvarint()
	if h.HasDigest {
		h.Digest = r.Uint64()
	}
	if coder != coderBytes || flags&^(flagDigest|flagComplete|flagBehind|flagLoading) != 0 || h.Complete && !h.HasDigest ||
		h.Count == 0 || h.Count > MaxPackets || h.Index >= h.Count || h.Tick == 0 || h.Packet == 0 ||
		h.Left > h.Total || h.Total > MaxSlots {
		r.Fail(ErrHeader)
	}
}

type recordKind uint8

const (
	recordDelta recordKind = 1 + iota
	recordFull
	recordDespawn
)

// recordHead is what stands before the fields of a record. What its kind has not is undefined.
type recordHead struct {
	Kind    recordKind
	Slot    int
	Version uint64 // not of a despawn
	Base    uint64 // of a delta
	Repeat  bool   // of a delta: its mask is that of the last delta of its class
	Life    uint64 // of a full record, with Class and Gen
	Class   uint64
	Gen     uint32
	Masked  bool // not all fields may be read
}

// appendRecordHead writes h.
func (x *context) appendRecordHead(dst []byte, h *recordHead) []byte {
	step := uint64(h.Slot-x.prev-1) << kindBits
	x.prev = h.Slot
	switch h.Kind {
	case recordDelta:
		return x.appendDeltaHead(dst, step, h)
	case recordFull:
		dst = wire.AppendUvarint(dst, step|wireFull)
		dst = append(dst, h.fullFlags())
		dst = wire.AppendUvarint(dst, x.tick-h.Life)
		dst = wire.AppendUvarint(dst, x.tick-h.Version)
		dst = wire.AppendUvarint(dst, h.Class)
		return wire.AppendUvarint(dst, uint64(h.Gen))
	default:
		return wire.AppendUvarint(dst, step|wireDespawn)
	}
}

func (x *context) appendDeltaHead(dst []byte, step uint64, h *recordHead) []byte {
	age := h.Version - h.Base
	switch {
	case h.Version != x.tick:
		dst = wire.AppendUvarint(dst, step|wireOlder)
		dst = wire.AppendUvarint(dst, x.tick-h.Version)
		return wire.AppendUvarint(dst, age)
	case age != x.age:
		x.age = age
		dst = wire.AppendUvarint(dst, step|wireDelta)
		return wire.AppendUvarint(dst, age)
	case h.Repeat:
		return wire.AppendUvarint(dst, step|wireRepeat)
	default:
		return wire.AppendUvarint(dst, step|wireSameAge)
	}
}

// appendDelta writes a delta of a class whose body is its mask and then its differences.
func (x *context) appendDelta(dst []byte, c *Class, h *recordHead, body []byte) []byte {
	mask := body[:c.mask]
	h.Repeat = h.Version == x.tick && h.Version-h.Base == x.age && bytes.Equal(mask, x.masks[c.index])
	dst = x.appendRecordHead(dst, h)
	if h.Repeat {
		return append(dst, body[c.mask:]...)
	}
	x.masks[c.index] = append(x.masks[c.index][:0], mask...)
	return append(dst, body...)
}

func (x *context) readRecordHead(r *wire.Reader, h *recordHead) {
	head := r.Uvarint()
	if head>>kindBits >= uint64(MaxSlots-x.prev-1) {
		r.Fail(ErrSlot)
		return
	}
	h.Slot, h.Repeat = x.prev+1+int(head>>kindBits), false
	x.prev = h.Slot
	switch head & (1<<kindBits - 1) {
	case wireRepeat, wireSameAge:
		h.Kind, h.Version, h.Repeat = recordDelta, x.tick, head&(1<<kindBits-1) == wireRepeat
		if x.age == 0 {
			r.Fail(ErrRecord)
			return
		}
		h.Base = x.tick - x.age
	case wireDelta:
		h.Kind, h.Version = recordDelta, x.tick
		h.Base = before(r, h.Version, 1)
		x.age = h.Version - h.Base
	case wireOlder:
		h.Kind, h.Version = recordDelta, before(r, x.tick, 1)
		h.Base = before(r, h.Version, 1)
	case wireFull:
		h.Kind = recordFull
		h.readFullFlags(r)
		h.Life = before(r, x.tick, 0)
		h.Version = before(r, x.tick, 0)
		h.Class = r.Uvarint()
		gen := r.Uvarint()
		h.Gen = uint32(gen)
		if gen == 0 || gen != uint64(h.Gen) {
			r.Fail(ErrRecord)
		}
	case wireDespawn:
		h.Kind = recordDespawn
	default:
		r.Fail(ErrRecord)
	}
}

// readMask reads the mask of a delta, or takes that of the last one of its class. It is empty
// after a failure.
func (x *context) readMask(r *wire.Reader, c *Class, h *recordHead) []byte {
	if !h.Repeat {
		x.masks[c.index] = append(x.masks[c.index][:0], r.Bytes(c.mask)...)
	}
	mask := x.masks[c.index]
	if len(mask) == 0 {
		r.Fail(ErrRecord)
	}
	return mask
}

// flagMasked says that a mask stands before the owner of a full record.
const flagMasked = 1

func (h *recordHead) fullFlags() byte {
	if h.Masked {
		return flagMasked
	}
	return 0
}

func (h *recordHead) readFullFlags(r *wire.Reader) {
	flags := r.Byte()
	if h.Masked = flags == flagMasked; flags&^flagMasked != 0 {
		r.Fail(ErrRecord)
	}
}

// before reads an age of at least least and returns the tick that is so much before; ticks
// start at 1.
func before(r *wire.Reader, tick, least uint64) uint64 {
	age := r.Uvarint()
	if age < least || age >= tick {
		r.Fail(ErrRecord)
		return 0
	}
	return tick - age
}
