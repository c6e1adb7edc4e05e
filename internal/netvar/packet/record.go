package packet

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
//	left    : objects of the first state, of total, that the client lacks after this snapshot
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
//	mask    : a bit for each leaf, 1 if the client may read it: see package interest
//
// The version of a record is tick - age (kind 0: tick), its lifetime tick - lifeAge. The first two
// deltas are from the newest version that the reader had as of tick - at, with the trend since
// (tick - at - span), and if bent the trend before it since (tick - at - 2·span). The third is from
// the version (version - baseAge), and that of a full record from the zero value of its class, both
// without a trend. The format of a delta is in codec.PutDelta.
const (
	Coder = 3 // bit-packed differences; each packet has its coder, so that others can be added

	FlagDigest   = 1
	FlagComplete = 2
	flagBehind   = 4
	FlagLoading  = 8
	flagsAll     = FlagDigest | FlagComplete | flagBehind | FlagLoading
	AtPadding    = 5 // bit of the flags

	AtFlags  = 1 // offsets that are patched when the snapshot is cut
	AtCount  = 3
	AtBehind = 8

	gapRice   = 3
	classRice = 2
)

// Context is the state of encoding or decoding the records of a packet; both sides keep it.
type Context struct {
	Tick      uint64
	Prev      int // slot of the last record, or -1
	AsOf      uint64
	TrendFrom uint64 // asOf without a trend
	Bent      bool
}

// Begin resets the context for a packet of this tick.
func (x *Context) Begin(tick uint64, from Origin) {
	*x = Context{Tick: tick, Prev: -1, AsOf: from.AsOf, TrendFrom: from.TrendFrom, Bent: from.Bent}
}

// Put writes the Origin, the acknowledged ticks on which the deltas of the packet are based: at,
// span and bent in the layout above.
func (x *Context) Put(w *wire.BitWriter) {
	if x.AsOf == 0 {
		w.PutLen(0)
		return
	}
	w.PutLen(x.Tick - x.AsOf)
	if w.PutLen(x.AsOf - x.TrendFrom); x.TrendFrom < x.AsOf {
		w.Bit(x.Bent)
	}
}

// Take resets the context for a packet of this tick, and reads the origin that Put writes.
func (x *Context) Take(r *wire.BitReader, tick uint64) {
	x.Begin(tick, Origin{})
	age := r.Len()
	if age == 0 {
		return
	}
	x.AsOf = x.before(r, age)
	span := r.Len() // 0 after an error
	if span >= x.AsOf || span > codec.MaxTrend || span > 0 && age > codec.MaxTrend {
		r.Fail(ErrHeader)
	}
	x.TrendFrom = x.AsOf - span
	if x.Bent = span > 0 && r.Bit(); x.Bent && span >= x.TrendFrom {
		r.Fail(ErrHeader)
	}
}

// Origin returns the origin of the packet's deltas.
func (x *Context) Origin() Origin { return Origin{x.AsOf, x.TrendFrom, x.Bent} }

const (
	// MaxSize is the largest size of a packet, in bytes: a datagram on every path that QUIC accepts
	// has room for it and the envelope.
	MaxSize = 1100
	// MaxSlots bounds the objects of one world, and so the memory that a client allocates for any
	// packet.
	MaxSlots = 1 << 16

	// MaxPackets bounds the packets of a snapshot to the bits of a uint64.
	MaxPackets = 64

	// maxNumber bounds packet ids, so that readers in every language represent them exactly.
	maxNumber = 1<<53 - 1

	MaxHeader = 8 + 1 + 8 + 10 + 8 + (77+11+1+7)/8 // at, span and bent
	// MaxHead is the largest size of a Head, in bytes: gap 36 bits, kind 3, two ages 77 each, class
	// 40, generation 44, masked 1.
	MaxHead = 35
)

// Errors of malformed packets. Packets are sent by the server, so each error is a fault or an
// attack, and no part of the packet is applied.
var (
	ErrHeader = errors.New("netvar: packet header is malformed or of another version")
	ErrRecord = errors.New("netvar: record is malformed")
	ErrSlot   = errors.New("netvar: slot out of range")
)

type Kind uint8

const (
	Delta Kind = 1 + iota
	Full
	Despawn
)

// Head is the part of a record before its delta. Fields that its kind lacks are undefined.
type Head struct {
	Kind    Kind
	Slot    int
	Version uint64 // not of a despawn
	Base    uint64 // of a delta from one version, or else 0
	Life    uint64 // of a full record, with Class and Gen
	Class   uint64
	Gen     uint32
	Masked  bool // not all fields may be read
}

// PutHead writes h.
func (x *Context) PutHead(w *wire.BitWriter, h *Head) {
	PutGap(w, h.Slot-x.Prev-1)
	x.Prev = h.Slot
	x.PutKind(w, h)
}

// PutGap writes the number of slots between two records. Usually the gap is 0 or large.
func PutGap(w *wire.BitWriter, gap int) {
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

// PutKind writes the kind and the rest of a head.
func (x *Context) PutKind(w *wire.BitWriter, h *Head) {
	switch h.Kind {
	case Delta:
		switch {
		case h.Base != 0:
			w.Put(0b101, 3)
			w.PutLen(x.Tick - h.Version)
			w.PutLen(h.Version - h.Base - 1)
		case h.Version != x.Tick:
			w.Put(0b001, 3)
			w.PutLen(x.Tick - h.Version)
		default:
			w.Put(0, 1)
		}
	case Full:
		w.Put(0b011, 3)
		w.PutLen(x.Tick - h.Life)
		w.PutLen(x.Tick - h.Version)
		w.PutRice(h.Class, classRice)
		w.PutLen(uint64(h.Gen) - 1)
		w.Bit(h.Masked)
	case Despawn:
		w.Put(0b111, 3)
	}
}

func (x *Context) TakeHead(r *wire.BitReader, h *Head) {
	gap := takeGap(r)
	if gap >= uint64(MaxSlots-x.Prev-1) {
		r.Fail(ErrSlot)
		return
	}
	h.Slot = x.Prev + 1 + int(gap)
	x.Prev = h.Slot
	switch {
	case !r.Bit():
		h.Kind, h.Version, h.Base = Delta, x.Tick, 0
		x.mustFollow(r, h)
	case !r.Bit():
		h.Kind, h.Base = Delta, 0
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
		h.Kind = Full
		h.Life = x.before(r, r.Len())
		h.Version = x.before(r, r.Len())
		h.Class = r.Rice(classRice)
		gen := r.Len() + 1
		if h.Gen = uint32(gen); gen == 0 || gen != uint64(h.Gen) {
			r.Fail(ErrRecord)
		}
		h.Masked = r.Bit()
	default:
		h.Kind = Despawn
	}
}

// before returns the tick of the packet minus age. A result below 1 is an error, because ticks
// start at 1.
func (x *Context) before(r *wire.BitReader, age uint64) uint64 {
	if age >= x.Tick {
		r.Fail(ErrRecord)
		return 0
	}
	return x.Tick - age
}

// mustFollow checks that a delta has an origin and leads to a later version.
func (x *Context) mustFollow(r *wire.BitReader, h *Head) {
	if x.AsOf == 0 || h.Version <= x.AsOf {
		r.Fail(ErrRecord)
	}
}
