package codec

import (
	"math"
	"unsafe"

	"github.com/netloop/netloop/internal/codec/lerp"
)

// An offset is the difference between the drawn and the actual value. It has one number for each
// interpolated leaf, and four for a quaternion. Leaves that step have no number.

// Offsets returns the number of numbers in an offset.
func (p *Plan) Offsets() (n int) {
	for i := range p.leaves {
		n += p.leaves[i].offsets()
	}
	return n
}

func (l *leaf) offsets() int {
	switch {
	case l.absent || l.lerp == LerpStep:
		return 0
	case l.kind == Quat:
		return 4
	default:
		return 1
	}
}

// Apart writes the difference between the structs at a and b, a - b leaf by leaf, to off. For
// angles and rotations it writes the shorter of the two turns. A difference that is not finite
// becomes 0.
func (p *Plan) Apart(off []float64, a, b unsafe.Pointer) {
	at := 0
	for i := range p.leaves {
		l := &p.leaves[i]
		switch l.offsets() {
		case 1:
			off[at] = l.apart(l.number(a), l.number(b))
			at++
		case 4:
			quatApart(off[at:at+4], (*[4]float32)(unsafe.Add(a, l.off)), (*[4]float32)(unsafe.Add(b, l.off)))
			at += 4
		}
	}
}

// apart returns x - y, for an angle the short way round. It returns 0 if the difference is not
// finite, so that the change is drawn at once.
func (l *leaf) apart(x, y float64) float64 {
	d := x - y
	if circle := l.circle(); circle != 0 {
		d -= float64(circle * math.RoundToEven(d/circle))
	}
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return 0
	}
	return d
}

// Shift adds an offset, multiplied by part, to the numbers of the struct at v. No leaf leaves its
// range.
func (p *Plan) Shift(v unsafe.Pointer, off []float64, part float64) {
	at := 0
	for i := range p.leaves {
		l := &p.leaves[i]
		switch l.offsets() {
		case 1:
			if d := off[at] * part; d != 0 {
				x := l.number(v)
				l.setNumber(v, lerp.Wrap(x+d, x, x, l.circle()))
			}
			at++
		case 4:
			quatShift((*[4]float32)(unsafe.Add(v, l.off)), off[at:at+4], part)
			at += 4
		}
	}
}

// number returns the value of a leaf of the struct at v, an integer or a float, in the unit of the
// field.
func (l *leaf) number(v unsafe.Pointer) float64 {
	q := unsafe.Add(v, l.off)
	switch l.kind {
	case Float32, Quant32, Range32:
		return float64(*(*float32)(q))
	case Float64, Quant64, Range64:
		return *(*float64)(q)
	default:
		w, _ := l.load(v)
		return l.whole(w)
	}
}

// setNumber sets the value of a leaf of the struct at v to x, clamped to its range; an integer is
// rounded.
func (l *leaf) setNumber(v unsafe.Pointer, x float64) {
	q := unsafe.Add(v, l.off)
	least, most := -math.MaxFloat64, math.MaxFloat64
	if l.kind.Steps() {
		least, most = l.least*l.num/l.den, l.most*l.num/l.den
	}
	switch l.kind {
	case Float32, Quant32, Range32:
		*(*float32)(q) = float32(min(max(x, least, -math.MaxFloat32), most, math.MaxFloat32))
	case Float64, Quant64, Range64:
		*(*float64)(q) = min(max(x, least), most)
	default:
		l.store(v, l.nearest(math.Round(x)))
	}
}

// whole returns the integer in the word of a leaf, signed or unsigned by its kind, as a float.
func (l *leaf) whole(w uint64) float64 {
	if l.kind >= Uint8 && l.kind <= Uint {
		return float64(w)
	}
	return float64(int64(w))
}

// nearest returns the word of the nearest integer that the field can hold.
func (l *leaf) nearest(x float64) uint64 {
	low := l.low
	if l.kind == Int64 {
		low = 1 << 63
	}
	switch {
	case x <= l.whole(low):
		return low
	case x >= l.whole(low+l.span):
		return low + l.span
	case x < 0:
		return uint64(int64(x))
	default:
		return uint64(x)
	}
}

// quatApart writes a - b to off, or -a - b if -a, which is the same rotation, is nearer to b. It
// writes zeros if a is NaN.
func quatApart(off []float64, a, b *[4]float32) {
	var dot float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
	}
	sign := 1.0
	if dot < 0 {
		sign = -1
	}
	for i := range off {
		off[i] = float64(sign*float64(a[i])) - float64(b[i])
	}
	if math.IsNaN(off[0] + off[1] + off[2] + off[3]) {
		clear(off)
	}
}

// quatShift moves a rotation by a part of a difference. A rotation that was never set does not
// change.
func quatShift(q *[4]float32, off []float64, part float64) {
	var r [4]float64
	var norm float64
	for i := range r {
		r[i] = float64(off[i]*part) + float64(q[i])
		norm += float64(r[i] * r[i])
	}
	if norm = math.Sqrt(norm); norm == 0 || *q == ([4]float32{}) {
		return
	}
	for i := range r {
		q[i] = float32(r[i] / norm)
	}
}
