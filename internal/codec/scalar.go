package codec

import (
	"math"

	"github.com/netloop/netloop/internal/wire"
)

// Scalar returns leaf i of v as a bool, int64, uint64, float32, float64, string or Ref; an Instant
// is its nanoseconds. It returns nil for a leaf of another kind.
func (p *Plan) Scalar(i int, v *Values) any {
	l := &p.leaves[i]
	if l.kind == String {
		r := wire.NewReader(v.Blobs[l.pos])
		return string(r.Block(l.max))
	}
	if l.kind.Blob() || l.kind == Quat {
		return nil
	}
	w := v.Words[l.pos]
	switch l.kind {
	case Bool:
		return w != 0
	case Uint8, Uint16, Uint32, Uint64, Uint:
		return w
	case Float32:
		return math.Float32frombits(uint32(w))
	case Float64:
		return math.Float64frombits(w)
	case Quant32, Range32:
		return float32(l.value(float64(int64(w))))
	case Quant64, Range64:
		return l.value(float64(int64(w)))
	case RefKind:
		return Ref{ID: w}
	default:
		return int64(w)
	}
}
