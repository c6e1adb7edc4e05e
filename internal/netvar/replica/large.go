package replica

import (
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/wire"
)

// ApplyLarge checks a whole record from the stream, and then applies it. After an error the replica
// is unchanged, and the stream must no longer be used. The record is applied even if later packets
// were applied before it, because they had no record of its object. The returned id must be
// acknowledged.
func (r *Replica) ApplyLarge(record []byte) (id uint64, err error) {
	in := wire.NewReader(record)
	coder, padding := in.Byte(), in.Byte()
	tick := wire.WidenTick(max(r.tick, r.near), in.Uint32())
	id = in.Uvarint()
	if coder != packet.Coder || padding > 7 || tick == 0 || id != r.large+1 {
		in.Fail(packet.ErrHeader)
	}
	defer r.endCheck()
	if err = in.Err(); err == nil {
		err = r.check(wire.NewBitReader(record[in.Offset():], int(padding)), tick, 1)
	}
	if err == nil && !r.blind && (len(r.staged) != 1 || r.staged[0].Kind != packet.Full) {
		err = packet.ErrRecord
	}
	if err != nil {
		r.stats.Refused++
		return 0, err
	}
	r.large = id
	if tick > r.tick { // as for a packet of this tick: earlier packets must no longer be applied
		r.tick, r.Common, r.arrived, r.verdict = tick, packet.Header{}, 0, DigestNone
	}
	for i := range r.staged {
		r.apply(&r.staged[i])
	}
	r.stats.Large++
	r.stats.Records += uint64(len(r.staged))
	return id, nil
}
