package netvar

import (
	"errors"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// The layout of a state packet: a header of bytes, and then bits. uvarint is base 128, least
// significant group first; fixed numbers are little endian; len and rice are the codes of
// wire.BitWriter.
//
//	packet  = coder:1 flags:1 index:1 count:1 tick:4 [behind:1] [left:4 total:4] packet:uvarint
//	          [digest:8] at:len [span:len] record* padding
//	flags   : 1 = a digest follows, 2 = complete, 4 = behind follows, 8 = left and total follow;
//	          bits 5 to 7 = number of padding bits; all others 0
//	behind  : number of ticks by which the client lags in the records that did not fit; 255 is
//	          also more
//	left    : objects of the first state, of total, that the client lacks after this snapshot:
//	          see progress.go
//	at      : as of tick - at the client's state is known, mostly from the newest acknowledgement.
//	          0: it is not known, and there is no span
//	span    : trends begin at tick - at - span; 0: there are none, and there is no bent
//	bent    : trends are corrected by their change since tick - at - 2·span
//	record  = gap kind rest
//	gap     = 0 | 1 gap-1:rice(3)
//	          slot - slot of the record before in this packet - 1 (before the first: -1)
//	kind
//	  0     : delta of this tick          rest = delta
//	  1 0 0 : delta of an older version   rest = age:len delta
//	  1 0 1 : the same from one version   rest = age:len baseAge-1:len delta
//	  1 1 0 : full                        rest = lifeAge:len age:len class:rice(2) gen-1:len
//	                                             masked:1 [mask] delta
//	  1 1 1 : despawn                     rest = empty
//	mask    : a bit for each leaf, 1 if the client may read it: see reads.go
//
// The version of a record is tick - age (kind 0: tick), its lifetime tick - lifeAge. The first two
// deltas are from the newest version that the reader had as of tick - at, with the trend since
// (tick - at - span), and if bent the trend before it since (tick - at - 2·span). The third is from
// the version (version - baseAge), and that of a full record from the zero value of its class, both
// without a trend. The format of a delta is in codec.PutDelta.
const (
	coderBits = 3 // bit-packed differences; packets name their coder, so that others can be added

	flagDigest   = 1
	flagComplete = 2
	flagBehind   = 4
	flagLoading  = 8
	flagsAll     = flagDigest | flagComplete | flagBehind | flagLoading
	atPadding    = 5 // bit of the flags

	atFlags  = 1 // offsets that are patched when the snapshot is cut
	atCount  = 3
	atBehind = 8

	gapRice   = 3
	classRice = 2
)

// context is the state of encoding or decoding the records of a packet; both sides keep it.
type context struct {
	tick      uint64
	prev      int // slot of the last record, or -1
	asOf      uint64
	trendFrom uint64 // asOf without a trend
	bent      bool
}

// begin resets the context for a packet of this tick.
func (x *context) begin(tick uint64, from origin) {
	*x = context{tick: tick, prev: -1, asOf: from.asOf, trendFrom: from.trendFrom, bent: from.bent}
}

// put writes the fields that apply to all records.
func (x *context) put(w *wire.BitWriter) {
	if x.asOf == 0 {
		w.PutLen(0)
		return
	}
	w.PutLen(x.tick - x.asOf)
	if w.PutLen(x.asOf - x.trendFrom); x.trendFrom < x.asOf {
		w.Bit(x.bent)
	}
}

// take reads the fields that put writes.
func (x *context) take(r *wire.BitReader, tick uint64) {
	x.begin(tick, origin{})
	age := r.Len()
	if age == 0 {
		return
	}
	x.asOf = x.before(r, age)
	span := r.Len() // 0 after an error
	if span >= max(x.asOf, 1) || span > codec.MaxTrend || span > 0 && age > codec.MaxTrend {
		r.Fail(ErrHeader)
	}
	x.trendFrom = x.asOf - span
	if x.bent = span > 0 && r.Bit(); x.bent && span >= x.trendFrom {
		r.Fail(ErrHeader)
	}
}

// origin returns the origin of the packet's deltas.
func (x *context) origin() origin { return origin{x.asOf, x.trendFrom, x.bent} }

const (
	// MaxPacket is the size of a packet: a datagram on every path that QUIC accepts has room for it
	// and the envelope.
	MaxPacket = 1100
	// MaxPackets bounds the packets of a snapshot to the bits of a uint64.
	MaxPackets = 64

	// maxNumber bounds packet ids, so that readers in every language represent them exactly.
	maxNumber = 1<<53 - 1

	maxHeader = 8 + 1 + 8 + 10 + 8 + (77+11+1+7)/8 // at, span and bent
	// Gap 36 bits, kind 3, two ages 77 each, class 40, generation 44.
	maxRecordHead = 35
)

// Errors of rejected packets. Packets are sent by the server, so each error is a fault or an
// attack, and no part of the packet is applied.
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
	HasBehind   bool // some records may not have fitted
	Behind      uint8
	HasLoading  bool // the first state is not acknowledged
	Left, Total uint32
	Digest      uint64
	Padding     int // unused bits at the end; known once all records are written
}

// agreed returns the part of the header that all packets of a snapshot share.
func (h header) agreed() header {
	h.Packet, h.Index, h.Padding = 0, 0, 0
	return h
}

// atLeft returns the offset of Left.
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
	dst = append(dst, coderBits, flags, h.Index, h.Count)
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
	h.Padding = int(flags >> atPadding)
	if coder != coderBits || flags&(1<<atPadding-1)&^flagsAll != 0 || h.Complete && !h.HasDigest ||
		h.Count == 0 || h.Count > MaxPackets || h.Index >= h.Count || h.Tick == 0 || h.Packet == 0 || h.Packet > maxNumber ||
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

// recordHead is the part of a record before its delta. Fields that its kind lacks are undefined.
type recordHead struct {
	Kind    recordKind
	Slot    int
	Version uint64 // not of a despawn
	Base    uint64 // of a delta from one version, or else 0
	Life    uint64 // of a full record, with Class and Gen
	Class   uint64
	Gen     uint32
	Masked  bool // not all fields may be read
}

// putHead writes h.
func (x *context) putHead(w *wire.BitWriter, h *recordHead) {
	putGap(w, h.Slot-x.prev-1)
	x.prev = h.Slot
	x.putKind(w, h)
}

// putGap writes the number of slots between two records. Mostly it is 0 or large.
func putGap(w *wire.BitWriter, gap int) {
	if w.Bit(gap > 0); gap > 0 {
		w.PutRice(uint64(gap-1), gapRice)
	}
}

// takeGap reads a gap. The limit keeps the sum from overflowing.
func takeGap(r *wire.BitReader) uint64 {
	if !r.Bit() {
		return 0
	}
	return min(r.Rice(gapRice), MaxSlots) + 1
}

// putKind writes the kind and the rest of a head.
func (x *context) putKind(w *wire.BitWriter, h *recordHead) {
	switch h.Kind {
	case recordDelta:
		switch {
		case h.Base != 0:
			w.Put(0b101, 3)
			w.PutLen(x.tick - h.Version)
			w.PutLen(h.Version - h.Base - 1)
		case h.Version != x.tick:
			w.Put(0b001, 3)
			w.PutLen(x.tick - h.Version)
		default:
			w.Put(0, 1)
		}
	case recordFull:
		w.Put(0b011, 3)
		w.PutLen(x.tick - h.Life)
		w.PutLen(x.tick - h.Version)
		w.PutRice(h.Class, classRice)
		w.PutLen(uint64(h.Gen) - 1)
		w.Bit(h.Masked)
	case recordDespawn:
		w.Put(0b111, 3)
	}
}

func (x *context) takeHead(r *wire.BitReader, h *recordHead) {
	gap := takeGap(r)
	if gap >= uint64(MaxSlots-x.prev-1) {
		r.Fail(ErrSlot)
		return
	}
	h.Slot = x.prev + 1 + int(gap)
	x.prev = h.Slot
	switch {
	case !r.Bit():
		h.Kind, h.Version, h.Base = recordDelta, x.tick, 0
		x.mustFollow(r, h)
	case !r.Bit():
		h.Kind, h.Base = recordDelta, 0
		exact := r.Bit()
		h.Version = x.before(r, r.Len())
		if !exact {
			x.mustFollow(r, h)
		} else if age := r.Len() + 1; age == 0 || age >= h.Version {
			r.Fail(ErrRecord)
		} else {
			h.Base = h.Version - age
		}
	case !r.Bit():
		h.Kind = recordFull
		h.Life = x.before(r, r.Len())
		h.Version = x.before(r, r.Len())
		h.Class = r.Rice(classRice)
		gen := r.Len() + 1
		if h.Gen = uint32(gen); gen == 0 || gen != uint64(h.Gen) {
			r.Fail(ErrRecord)
		}
		h.Masked = r.Bit()
	default:
		h.Kind = recordDespawn
	}
}

// before returns the tick age ticks before that of the packet; ticks start at 1.
func (x *context) before(r *wire.BitReader, age uint64) uint64 {
	if age >= x.tick {
		r.Fail(ErrRecord)
		return 0
	}
	return x.tick - age
}

// mustFollow checks that a delta has an origin and leads to a later version.
func (x *context) mustFollow(r *wire.BitReader, h *recordHead) {
	if x.asOf == 0 || h.Version <= x.asOf {
		r.Fail(ErrRecord)
	}
}
