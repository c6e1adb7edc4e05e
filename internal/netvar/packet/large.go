package packet

// A record that is larger than a packet is sent over the reliable stream, in full and alone:
//
//	large = coder:1 padding:1 tick:4 id:uvarint at:len record
//
// The record is a full one, as in a packet of this tick with at = 0. Ids start at 1 and have no
// gaps. These records have separate ids, because acknowledgements of packets cover only recent
// packets, and a stream may lag further behind.
const (
	// MaxRecord bounds a whole record on the stream, so that it fits a frame.
	MaxRecord = 15 << 10

	MaxLargeHead   = 1 + 1 + 4 + 10 + 1 + MaxHead
	AtLargePadding = 1
)
