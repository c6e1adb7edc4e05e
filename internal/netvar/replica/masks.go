package replica

import (
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// takeMask reads the mask of a full record into the scratch.
func (r *Replica) takeMask(in *wire.BitReader, c *state.Class) []byte {
	start := len(r.texts)
	r.texts = append(r.texts, state.NoMask[:c.MaskBytes()]...)
	mask := r.texts[start:len(r.texts):len(r.texts)]
	for i := range c.Plan().Leaves() {
		if in.Bit() {
			mask[i>>3] |= 1 << (i & 7)
		}
	}
	return mask
}

// masks are the masks of a client's objects, by slot; nil if all fields may be read.
type masks [][]byte

func (m *masks) set(slot int, mask []byte) {
	if len(mask) == 0 {
		if slot < len(*m) {
			(*m)[slot] = nil
		}
		return
	}
	for len(*m) <= slot {
		*m = append(*m, nil)
	}
	(*m)[slot] = append((*m)[slot][:0], mask...)
}

func (m masks) of(slot int) []byte {
	if slot < len(m) {
		return m[slot]
	}
	return nil
}
