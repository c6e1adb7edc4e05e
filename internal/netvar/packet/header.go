package packet

import "github.com/netloop/netloop/internal/wire"

// Header is the start of a packet.
type Header struct {
	Tick        uint64
	Packet      uint64
	Index       uint8
	Count       uint8
	HasDigest   bool
	Complete    bool
	HasBehind   bool // some records may have been left out
	Behind      uint8
	HasLoading  bool // the first state is not completely acknowledged: Left and Total follow
	Left, Total uint32
	Digest      uint64
	Padding     int // unused bits at the end; known once all records are written
}

// Common returns the part of the header that all packets of a snapshot share.
func (h Header) Common() Header {
	h.Packet, h.Index, h.Padding = 0, 0, 0
	return h
}

// AtLeft returns the offset of Left.
func (h *Header) AtLeft() int {
	if h.HasBehind {
		return AtBehind + 1
	}
	return AtBehind
}

func AppendHeader(dst []byte, h *Header) []byte {
	var flags byte
	if h.HasDigest {
		flags |= FlagDigest
	}
	if h.Complete {
		flags |= FlagComplete
	}
	if h.HasBehind {
		flags |= flagBehind
	}
	if h.HasLoading {
		flags |= FlagLoading
	}
	dst = append(dst, Coder, flags, h.Index, h.Count)
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

// ReadHeader reads a header; near is a recent tick, from which the 32 bits of the header's tick are
// completed. A malformed header makes r fail.
func ReadHeader(r *wire.Reader, near uint64, h *Header) {
	coder, flags := r.Byte(), r.Byte()
	h.Index, h.Count = r.Byte(), r.Byte()
	h.Tick = wire.WidenTick(near, r.Uint32())
	h.HasDigest, h.Complete, h.HasBehind = flags&FlagDigest != 0, flags&FlagComplete != 0, flags&flagBehind != 0
	if h.HasBehind {
		h.Behind = r.Byte()
	}
	if h.HasLoading = flags&FlagLoading != 0; h.HasLoading {
		h.Left, h.Total = r.Uint32(), r.Uint32()
	}
	h.Packet = r.Uvarint()
	if h.HasDigest {
		h.Digest = r.Uint64()
	}
	h.Padding = int(flags >> AtPadding)
	if coder != Coder || flags&(1<<AtPadding-1)&^flagsAll != 0 || h.Complete && !h.HasDigest ||
		h.Count == 0 || h.Count > MaxPackets || h.Index >= h.Count || h.Tick == 0 || h.Packet == 0 || h.Packet > maxNumber ||
		h.Left > h.Total || h.Total > MaxSlots {
		r.Fail(ErrHeader)
	}
}

// RecordBytes returns the number of bytes in a packet after its header, which are records. It is
// for comparing coders, and checks the header only.
func RecordBytes(data []byte) (int, error) {
	in := wire.NewReader(data)
	var h Header
	ReadHeader(&in, 0, &h)
	return in.Len(), in.Err()
}
