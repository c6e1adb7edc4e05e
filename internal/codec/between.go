package codec

import (
	"math"
	"unsafe"

	"github.com/netloop/netloop/internal/codec/lerp"
	"github.com/netloop/netloop/internal/codec/quat"
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
			*(*float32)(unsafe.Add(v, l.off)) = float32(l.inRange(lerp.Along(x, y, y-x, t)))
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

// betweenSteps interpolates counts of steps; the result may be fractional.
func (l *leaf) betweenSteps(v unsafe.Pointer, a, b uint64, t float64) {
	x := lerp.Way(float64(int64(a)), float64(int64(b)), t, l.turn)
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
