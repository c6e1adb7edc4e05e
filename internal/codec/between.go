package codec

import (
	"math"
	"unsafe"
)

// maxAhead limits the extrapolation of Between beyond the newer value, in distances of the two
// values.
const maxAhead = 64

// Between writes the numbers of a value into the struct at v, which contains those of held: the
// value interpolated between two others, a part t of the way from one to the other, by the
// interpolations of the leaves (Lerp). At 0 it is from and at 1 it is to; beyond 1 it is
// extrapolated, and no leaf leaves its range. Leaves that step have the value of from below 1. If a
// leaf with the tag teleport differs between the two values, all leaves step. Blobs are not
// changed. The result is the same on all machines, and nothing is allocated.
func (p *Plan) Between(v unsafe.Pointer, held, from, to *Values, t float64) {
	if p.Teleports(from, to) {
		t = Stepped(t)
	}
	p.BetweenWords(v, held.Words, from.Words, to.Words, t)
}

// Stepped returns the t of Between at which all leaves step.
func Stepped(t float64) float64 {
	if t < 1 {
		return 0
	}
	return 1
}

// BetweenWords is Between for values that do not teleport.
func (p *Plan) BetweenWords(v unsafe.Pointer, held, from, to []uint64, t float64) {
	switch {
	case t <= 0:
		to = from
	case t == 1:
		from = to
	}
	t = min(t, maxAhead)
	n := p.words
	a, b, h, leaf := from[:n], to[:n], held[:n], p.byWord[:n]
	for i, is := range a {
		if is == b[i] && is == h[i] {
			continue
		}
		switch l := &p.leaves[leaf[i]]; {
		case l.absent:
		case is == b[i]:
			l.store(v, is)
		case l.straight: // most leaves of a state
			x, y := float64(int64(is)), float64(int64(b[i]))
			*(*float32)(unsafe.Add(v, l.off)) = float32(l.inRange(along(x, y, y-x, t)))
		default:
			l.between(v, is, b[i], t)
		}
	}
}

// Teleports reports whether a leaf with the tag teleport differs.
func (p *Plan) Teleports(a, b *Values) bool {
	for _, i := range p.teleports {
		if l := &p.leaves[i]; !l.absent && !l.equal(a, b) {
			return true
		}
	}
	return false
}

// HasTeleports reports whether a leaf has the tag teleport.
func (p *Plan) HasTeleports() bool { return len(p.teleports) > 0 }

// between stores the interpolation of two words that differ; t is above 0 and not 1.
func (l *leaf) between(v unsafe.Pointer, a, b uint64, t float64) {
	done := false
	switch l.lerp {
	case LerpStep:
	case LerpRotation:
		done = slerp((*[4]float32)(unsafe.Add(v, l.off)), a, b, l.max, t)
	case LerpLinear, LerpAngle, LerpDegrees:
		switch l.kind {
		case Quant32, Range32, Quant64, Range64:
			l.betweenSteps(v, a, b, t)
			return
		case Float32, Float64:
			done = l.betweenFloats(v, a, b, t)
		default:
			done = l.betweenIntegers(v, a, b, t)
		}
	}
	if done {
		return
	}
	if t >= 1 {
		a = b
	}
	l.store(v, a)
}

// way returns the number a part t of the way from x to y, measured from the nearer of the two: so a
// result next to an end is exact. Angles take the short way round; if both are within a turn from
// 0, or within half a turn from it, so is the result.
func way(x, y, t, circle float64) float64 {
	d := y - x
	if circle != 0 {
		d -= float64(circle * math.RoundToEven(d/circle))
	}
	at := along(x, y, d, t)
	if circle != 0 {
		at = wrap(at, x, y, circle)
	}
	return at
}

// along returns x plus a part t of the distance d to y.
func along(x, y, d, t float64) float64 {
	if t > 0.5 {
		return float64(d*(t-1)) + y
	}
	return float64(d*t) + x
}

// wrap moves an angle into the turn that contains two others, if one does.
func wrap(at, x, y, circle float64) float64 {
	least := 0.0
	if min(x, y) < 0 {
		least = -circle / 2
	}
	switch {
	case min(x, y) < least || max(x, y) > least+circle: // and without a circle
	case at < least:
		at += circle
	case at >= least+circle:
		at -= circle
	}
	return at
}

// circle returns a whole turn in the unit of the leaf, and 0 for a leaf that is no angle.
func (l *leaf) circle() float64 {
	switch l.lerp {
	case LerpAngle:
		return 2 * math.Pi
	case LerpDegrees:
		return 360
	default:
		return 0
	}
}

// betweenFloats reports false if the distance is not finite.
func (l *leaf) betweenFloats(v unsafe.Pointer, a, b uint64, t float64) bool {
	q := unsafe.Add(v, l.off)
	if l.kind == Float32 {
		x := way(float64(math.Float32frombits(uint32(a))), float64(math.Float32frombits(uint32(b))), t, l.turn)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
		*(*float32)(q) = float32(min(max(x, -math.MaxFloat32), math.MaxFloat32))
		return true
	}
	x := way(math.Float64frombits(a), math.Float64frombits(b), t, l.turn)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	*(*float64)(q) = x
	return true
}

// betweenSteps interpolates counts of steps; the result may be fractional.
func (l *leaf) betweenSteps(v unsafe.Pointer, a, b uint64, t float64) {
	x := way(float64(int64(a)), float64(int64(b)), t, l.turn)
	x = l.inRange(x)
	if q := unsafe.Add(v, l.off); l.kind == Quant32 || l.kind == Range32 {
		*(*float32)(q) = float32(x)
	} else {
		*(*float64)(q) = x
	}
}

// inRange returns the value of a number of steps. Extrapolation, and the way round a circle, may
// exceed the range, which clamps them.
func (l *leaf) inRange(steps float64) float64 {
	if steps < l.least || steps > l.most {
		steps = min(max(steps, l.least), l.most)
	}
	return l.value(steps)
}

// betweenIntegers rounds, and reports false for two integers with a distance that a float64 does
// not hold. Integers are counted from the smallest value of their type.
func (l *leaf) betweenIntegers(v unsafe.Pointer, a, b uint64, t float64) bool {
	low := l.low
	if l.kind == Int64 {
		low = 1 << 63
	}
	x, y := a-low, b-low
	if max(x, y)-min(x, y) >= 1<<53 {
		return false
	}
	if p, q := float64(int64(a)), float64(int64(b)); l.lerp == LerpDegrees && max(math.Abs(p), math.Abs(q)) < 1<<53 {
		at := wrap(math.Round(way(p, q, t, l.turn)), p, q, l.turn)
		least := float64(int64(low))
		l.store(v, uint64(int64(min(max(at, least), least+float64(l.span)))))
		return true
	}
	off := math.Round(way(0, float64(int64(y-x)), t, 0))
	if off >= 0 {
		x += min(uint64(off), l.span-x)
	} else {
		x -= min(uint64(-off), x)
	}
	l.store(v, low+x)
	return true
}

// slerp stores the rotation between two, the short way round, and reports false if one of them was
// never set.
func slerp(q *[4]float32, a, b uint64, n int, t float64) bool {
	if a == 0 || b == 0 {
		return false
	}
	var x, y [4]float32
	unpackQuat(&x, a, n)
	unpackQuat(&y, b, n)
	var dot float64
	for i := range x {
		dot += float64(x[i]) * float64(y[i])
	}
	sign := 1.0 // q and -q are one rotation: take the nearer one.
	if dot < 0 {
		dot, sign = -dot, -1
	}
	from, to := 1-t, t
	if dot < nearlyOne {
		angle := math.Acos(dot)
		sin := math.Sin(angle)
		from, to = math.Sin(from*angle)/sin, math.Sin(to*angle)/sin
	}
	to *= sign
	var r [4]float64
	var norm float64
	for i := range r {
		r[i] = float64(float64(x[i])*from) + float64(float64(y[i])*to)
		norm += float64(r[i] * r[i])
	}
	if norm = math.Sqrt(norm); norm == 0 {
		return false
	}
	for i := range r {
		q[i] = float32(r[i] / norm)
	}
	return true
}

// nearlyOne is the cosine of an angle at which arc and chord differ by less than the precision of a
// float32.
const nearlyOne = 1 - 1e-9
