package netvar

import "github.com/netloop/netloop/internal/wire"

// RecordBytes returns how many bytes of a packet are records: all that stand after its header. It
// is for those who compare coders, and checks the header only.
func RecordBytes(packet []byte) (int, error) {
	in := wire.NewReader(packet)
	var h header
	readHeader(&in, 0, &h)
	return in.Len(), in.Err()
}
