package codec

import (
	"math"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

// Round changes each number in the struct at v to its value after a capture and a restore. It takes
// time only for quaternions and numbers with a step, and allocates memory only for maps with such
// numbers in their entries. It does not change a value that does not fit, so that the capture finds
// and counts the value: see Clamp. Rounding is idempotent.
func (p *Plan) Round(v unsafe.Pointer) {
	for _, i := range p.rounds {
		l := &p.leaves[i]
		q := unsafe.Add(v, l.off)
		switch l.kind {
		case Quant32, Range32: // most leaves of a state
			s := float64(*(*float32)(q)) * l.den
			if l.num != 1 {
				s /= l.num
			}
			if s = math.RoundToEven(s); s >= l.least && s <= l.most {
				*(*float32)(q) = float32(l.value(float64(int64(s))))
			}
		case Slice:
			h := *(*[]struct{})(q) // length and pointer of any slice
			first := unsafe.Pointer(unsafe.SliceData(h))
			for n := range h {
				l.elem.Round(unsafe.Add(first, uintptr(n)*l.elem.size))
			}
		case Map:
			if *(*unsafe.Pointer)(q) != nil {
				l.settle(v, 0)
			}
		default:
			if w, misfit := l.load(v); misfit == 0 {
				l.store(v, w)
			}
		}
	}
}

// Clamp changes each value in the struct at v that does not fit to its captured value: a number is
// clamped to its range, a string or list cut to its limit.
func (p *Plan) Clamp(v unsafe.Pointer) {
	for i := range p.leaves {
		switch l := &p.leaves[i]; {
		case l.absent:
		case l.kind.Blob():
			l.settle(v, 1)
		default:
			if w, misfit := l.load(v); misfit > 0 {
				l.store(v, w)
			}
		}
	}
}

// settle replaces the blob of the struct at v by its captured form: with misfits 0 only if the
// whole blob fits, with misfits 1 only if a part of it does not fit.
func (l *leaf) settle(v unsafe.Pointer, misfits int) {
	var rep report
	b := l.appendBlob(nil, v, &rep)
	if min(rep.clamped, 1) == misfits {
		r := wire.NewReader(b)
		l.storeBlob(v, &r)
	}
}

// rounding lists the leaves with numbers that Round changes.
func rounding(leaves []leaf) (rounds []uint16) {
	for i := range leaves {
		switch l := &leaves[i]; {
		case l.absent:
		case l.kind.Steps() || l.kind == Quat || l.kind.list() && len(l.elem.rounds) > 0:
			rounds = append(rounds, uint16(i))
		}
	}
	return rounds
}
