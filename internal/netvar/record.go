package netvar

import (
	"errors"

	"github.com/netloop/netloop/internal/wire"
)

// The layout of a state packet. uvarint is base 128, least significant group first; zigzag is
// a uvarint of a signed number; fixed numbers are little endian.
//
//	packet  = coder:1 flags:1 index:1 count:1 tick:4 packet:uvarint [digest:8] record*
//	flags   : 1 = a digest follows, 2 = complete; all others 0
//	record  = head:uvarint rest            head = slotStep<<2 | kind
//	          slotStep = slot - slot of the record before in this packet - 1 (before the first: -1)
//	kind 0  : delta of a version of this tick    rest = baseAge:uvarint mask diffs
//	kind 1  : delta of an older version          rest = age:uvarint baseAge:uvarint mask diffs
//	kind 2  : full                               rest = flags:1 lifeAge:uvarint age:uvarint
//	                                                    class:uvarint gen:uvarint owner:uvarint fields
//	kind 3  : despawn                            rest = nothing
//
// The version of a record is tick - age, its baseline version - baseAge, its lifetime
// tick - lifeAge. The records end where the packet ends.
const (
	coderBytes = 1 // byte-aligned differences; the packet names its coder so that others may come

	flagDigest   = 1
	flagComplete = 2

	atFlags = 1 // offsets that are patched when the snapshot is cut
	atCount = 3

	wireDelta   = 0
	wireOlder   = 1
	wireFull    = 2
	wireDespawn = 3
)

const (
	// MaxPacket is the size that a full record must fit: what a datagram carries beside its
	// own envelope on every path that QUIC accepts.
	MaxPacket = 1100
	// MaxPackets bounds one snapshot, so that 64 bits tell which of them have arrived.
	MaxPackets = 64

	maxHeader     = 8 + 10 + 8
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
	Tick      uint64
	Packet    uint64
	Index     uint8
	Count     uint8
	HasDigest bool
	Complete  bool
	Digest    uint64
}

func appendHeader(dst []byte, h *header) []byte {
	var flags byte
	if h.HasDigest {
		flags |= flagDigest
	}
	if h.Complete {
		flags |= flagComplete
	}
	dst = append(dst, coderBytes, flags, h.Index, h.Count)
	dst = wire.AppendUint32(dst, uint32(h.Tick))
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
	h.Packet = r.Uvarint()
	h.HasDigest, h.Complete = flags&flagDigest != 0, flags&flagComplete != 0
	if h.HasDigest {
		h.Digest = r.Uint64()
	}
	if coder != coderBytes || flags&^(flagDigest|flagComplete) != 0 || h.Complete && !h.HasDigest ||
		h.Count == 0 || h.Count > MaxPackets || h.Index >= h.Count || h.Tick == 0 || h.Packet == 0 {
		r.Fail(ErrHeader)
	}
}

type recordKind uint8

const (
	recordDelta recordKind = 1 + iota
	recordFull
	recordDespawn
)

// recordHead is what stands before the fields of a record.
type recordHead struct {
	Kind    recordKind
	Slot    int
	Version uint64 // not of a despawn
	Base    uint64 // of a delta
	Life    uint64 // of a full record, with Class and Gen
	Class   uint64
	Gen     uint32
}

// appendRecordHead writes h in a packet of this tick, prev being the slot of the record before
// or -1.
func appendRecordHead(dst []byte, tick uint64, prev int, h *recordHead) []byte {
	step := uint64(h.Slot-prev-1) << 2
	switch h.Kind {
	case recordDelta:
		if h.Version == tick {
			dst = wire.AppendUvarint(dst, step|wireDelta)
		} else {
			dst = wire.AppendUvarint(dst, step|wireOlder)
			dst = wire.AppendUvarint(dst, tick-h.Version)
		}
		return wire.AppendUvarint(dst, h.Version-h.Base)
	case recordFull:
		dst = wire.AppendUvarint(dst, step|wireFull)
		dst = append(dst, 0)
		dst = wire.AppendUvarint(dst, tick-h.Life)
		dst = wire.AppendUvarint(dst, tick-h.Version)
		dst = wire.AppendUvarint(dst, h.Class)
		return wire.AppendUvarint(dst, uint64(h.Gen))
	default:
		return wire.AppendUvarint(dst, step|wireDespawn)
	}
}

func readRecordHead(r *wire.Reader, tick uint64, prev int, h *recordHead) {
	head := r.Uvarint()
	if head>>2 >= uint64(MaxSlots-prev-1) {
		r.Fail(ErrSlot)
		return
	}
	*h = recordHead{Slot: prev + 1 + int(head>>2)}
	switch head & 3 {
	case wireDelta, wireOlder:
		h.Kind, h.Version = recordDelta, tick
		if head&3 == wireOlder {
			h.Version = before(r, tick, 1)
		}
		h.Base = before(r, h.Version, 1)
	case wireFull:
		h.Kind = recordFull
		if r.Byte() != 0 {
			r.Fail(ErrRecord)
		}
		h.Life = before(r, tick, 0)
		h.Version = before(r, tick, 0)
		h.Class = r.Uvarint()
		gen := r.Uvarint()
		h.Gen = uint32(gen)
		if gen == 0 || gen != uint64(h.Gen) {
			r.Fail(ErrRecord)
		}
	case wireDespawn:
		h.Kind = recordDespawn
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
