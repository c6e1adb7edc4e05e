package netvar

import "github.com/netloop/netloop/internal/wire"

// RecordBytes returns the number of bytes in a packet after its header, which are records. It is
// for comparing coders, and checks the header only.
func RecordBytes(packet []byte) (int, error) {
	in := wire.NewReader(packet)
	var h header
	readHeader(&in, 0, &h)
	return in.Len(), in.Err()
}
