package codec

import (
	"math"
	"unsafe"

	"github.com/netloop/netloop/internal/codec/lerp"
	"github.com/netloop/netloop/internal/codec/quat"
)

// maxAhead limits the t of Between, and so its extrapolation: a larger t counts as maxAhead.
const maxAhead = 64

// Between writes the numbers of an interpolated value into the struct at v, by the interpolation of
// each leaf (Lerp): t is the part of the way from the value from to the value to. At t = 0 or below
// the result is from, and at 1 it is to; above 1 it is extrapolated, within the range of each leaf.
// Leaves that step have the value of from while t is below 1. If a leaf with the tag teleport
// differs between from and to, all leaves step. held is the value that the struct has before the
// call: numbers that would not change are not written. Blobs are not changed. The result is the
// same on all machines. Between allocates no memory.
func (p *Plan) Between(v unsafe.Pointer, held, from, to *Values, t float64) {
	if p.Teleports(from, to) {
		t = Stepped(t)
	}
	p.BetweenWords(v, held.Words, from.Words, to.Words, t)
}

// Stepped rounds the t of Between down to 0 or 1, so that no leaf is interpolated, and all leaves
// change at 1.
func Stepped(t float64) float64 {
	if t < 1 {
		return 0
	}
	return 1
}

// BetweenWords is Between for values, given by their words, between which no leaf with the tag
// teleport differs.
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
			*(*float32)(unsafe.Add(v, l.off)) = float32(l.inRange(lerp.Along(x, y, y-x, t)))
		default:
			l.between(v, is, b[i], t)
		}
	}
}

// Teleports reports whether a leaf with the tag teleport differs between two values.
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
		done = quat.Slerp((*[4]float32)(unsafe.Add(v, l.off)), a, b, l.max, t)
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

// circle returns a whole turn in the unit of the leaf, or 0 for a leaf that is not an angle.
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

// betweenFloats stores the interpolation of two floats. If the result is infinite or NaN, it stores
// nothing and reports false.
func (l *leaf) betweenFloats(v unsafe.Pointer, a, b uint64, t float64) bool {
	q := unsafe.Add(v, l.off)
	if l.kind == Float32 {
		x := lerp.Way(float64(math.Float32frombits(uint32(a))), float64(math.Float32frombits(uint32(b))), t, l.turn)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
		*(*float32)(q) = float32(min(max(x, -math.MaxFloat32), math.MaxFloat32))
		return true
	}
	x := lerp.Way(math.Float64frombits(a), math.Float64frombits(b), t, l.turn)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	*(*float64)(q) = x
	return true
}

// betweenSteps stores the interpolation of two counts of steps, which may be a fraction of a step.
func (l *leaf) betweenSteps(v unsafe.Pointer, a, b uint64, t float64) {
	x := lerp.Way(float64(int64(a)), float64(int64(b)), t, l.turn)
	x = l.inRange(x)
	if q := unsafe.Add(v, l.off); l.kind == Quant32 || l.kind == Range32 {
		*(*float32)(q) = float32(x)
	} else {
		*(*float64)(q) = x
	}
}

// inRange converts a number of steps to a value, clamped to the range of the leaf. An extrapolated
// value may exceed the range, and so may an angle that is interpolated the short way round.
func (l *leaf) inRange(steps float64) float64 {
	if steps < l.least || steps > l.most {
		steps = min(max(steps, l.least), l.most)
	}
	return l.value(steps)
}

// betweenIntegers stores the interpolation of two integers, rounded. If their distance is 2^53 or
// more, which a float64 cannot represent exactly, it stores nothing and reports false. It counts
// from the smallest value of the field, so that signed and unsigned integers are handled in the
// same way.
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
		at := lerp.Wrap(math.Round(lerp.Way(p, q, t, l.turn)), p, q, l.turn)
		least := float64(int64(low))
		l.store(v, uint64(int64(min(max(at, least), least+float64(l.span)))))
		return true
	}
	off := math.Round(lerp.Way(0, float64(int64(y-x)), t, 0))
	if off >= 0 {
		x += min(uint64(off), l.span-x)
	} else {
		x -= min(uint64(-off), x)
	}
	l.store(v, low+x)
	return true
}
