package codec

import (
	"math"
	"math/bits"
)

// aim is the expected value of a [leaf], as a shift from its baseline value, with data for an
// estimate of the distance between the expected and the actual value. Usually it is the linear
// extrapolation of the leaf's [Trend]. For a leaf that alternates between two values from tick to
// tick, the expected value is the value that it had an even number of ticks ago, plus the recent
// drift of the two values. A float without a step also follows the change of its speed, if the
// trend is Bent.
//
// It has four fields, because the compiler keeps no larger struct in registers: with a fifth field
// a snapshot takes a fifth more time.
type aim struct {
	shift uint64 // from the baseline, on the line of the leaf
	size  int8   // bits of the extrapolated distance
	bend  int8   // bits of the change of the trend; noBend if unknown
	floor int8   // the smallest parameter without a bend; noTrend for a leaf without a trend
}

const (
	noBend  = -1
	noTrend = -1
)

// rests is the aim of a leaf without a trend: the expected value is its baseline value.
var rests = aim{bend: noBend, floor: noTrend}

// straight returns the aim of a linear extrapolation; shift is the extrapolated change since the
// baseline.
func (t *Trend) straight(shift uint64) aim {
	return aim{shift: shift, size: sizeOf(shift), bend: noBend, floor: t.floor}
}

// swung returns the aim of a leaf that alternates between two values. Of the two, one value is due
// next: from is the shift from the baseline to its last known state, and drift its expected change
// since then.
func swung(from, drift uint64) aim {
	n := sizeOf(drift)
	return aim{shift: from + drift, size: n, bend: n}
}

// sizeOf returns the number of bits of a number without its sign.
func sizeOf(v uint64) int8 { return int8(bits.Len64(magnitude(v))) }

// swingPart limits the drift of a leaf that counts as alternating to 1/swingPart of the distance
// between its two values.
const swingPart = 8

// aimAt returns the aim of a number from its values in the baseline, in Trend.Older and, if bent,
// in Trend.Oldest.
func (t *Trend) aimAt(base, older, oldest int64, bent bool) aim {
	d := base - older
	a := t.straight(uint64(t.draw(d)))
	before := older - oldest
	if !bent || uint64(before)+maxStep >= 2*maxStep {
		return a
	}
	if drift := d + before; t.swings && d^before < 0 && swingPart*magnitude(uint64(drift)) <= magnitude(uint64(d)) {
		if t.Ahead&1 == 0 {
			return swung(0, uint64(draw(drift, t.Ahead, 2*t.Took)))
		}
		return swung(uint64(-d), uint64(draw(-drift, t.Ahead+t.Took, 2*t.Took)))
	}
	if a.bend = sizeOf(uint64(d - before)); a.bend > 0 {
		a.bend += t.bends
	}
	return a
}

// draw scales d, the change from Older to the baseline in Took ticks, to the Ahead ticks after the
// baseline.
func (t *Trend) draw(d int64) int64 {
	if t.Took == 1 {
		return d * int64(t.Ahead)
	}
	return draw(d, t.Ahead, t.Took)
}

// draw returns d · ahead ÷ took, rounded half away from zero.
func draw(d int64, ahead, took uint64) int64 {
	v := 2*magnitude(uint64(d))*ahead + took
	if v < 1<<24 {
		v = v * inverses[took] >> inverseBits
	} else {
		// Dividend and divisor are below 2^53, so the float quotient, rounded down, is equal to the
		// integer quotient. It takes less time.
		v = uint64(float64(v) / float64(2*took))
	}
	sign := d >> 63
	return (int64(v) ^ sign) - sign
}

// inverses[n] is 2^inverseBits ÷ 2n, rounded up: for v below 2^24, v · inverses[n] >> inverseBits
// is v ÷ 2n, rounded down. A division takes several times as long.
var inverses = func() (list [2*MaxTrend + 1]uint64) {
	for n := range list[1:] {
		list[n+1] = 1<<inverseBits/uint64(2*(n+1)) + 1
	}
	return list
}()

const inverseBits = 40

// aim returns the aim of a moving leaf whose word is a plain number, see Kind.plain.
func (l *leaf) aim(base uint64, t *Trend) aim {
	var oldest uint64
	if t.Bent {
		oldest = t.Oldest.Words[l.pos]
	}
	a := t.aimAt(int64(base), int64(t.Older.Words[l.pos]), int64(oldest), t.Bent)
	if l.kind.ranged() {
		return a.limited(int64(base), int64(l.low), int64(l.low+l.span))
	}
	return a
}

// limited returns the aim with a shift by which the expected value, base + shift, is from low to
// high.
func (a aim) limited(base, low, high int64) aim {
	a.shift = uint64(min(max(base+int64(a.shift), low), high) - base)
	return a
}

// aimFloat returns the aim of a moving leaf that is a float without a step.
func (l *leaf) aimFloat(base uint64, t *Trend) aim {
	b, o := l.float(base), l.float(t.Older.Words[l.pos])
	start := l.line(base)
	place := func(f float64) uint64 { return l.placeOf(f, start) }
	d := b - o
	along := float64(d*float64(t.Ahead)) / float64(t.Took)
	line := place(b + along)
	a := t.straight(line - start)
	if !t.Bent {
		return a
	}
	before := o - l.float(t.Oldest.Words[l.pos])
	drift := d + before
	if t.swings && (d < 0) != (before < 0) && math.Abs(drift)*swingPart <= math.Abs(d) {
		from, ahead := b, t.Ahead
		if t.Ahead&1 != 0 {
			from, ahead, drift = o, t.Ahead+t.Took, -drift
		}
		back := place(from) - start
		to := place(from + float64(drift*float64(ahead))/float64(2*t.Took))
		return swung(back, to-start-back)
	}
	a.bend = a.size
	if turn := d - before; math.Abs(turn) < 2*math.Abs(d) {
		by := float64(turn*float64(t.Ahead*(t.Ahead+t.Took))) / float64(2*t.Took*t.Took)
		to := place(float64(b+along) + by)
		a.bend = sizeOf(to - line)
		a.shift = to - start
		a.size = sizeOf(a.shift)
	}
	return a
}

// float returns the float with the bits of the word w.
func (l *leaf) float(w uint64) float64 {
	if l.kind == Float32 {
		return float64(math.Float32frombits(uint32(w)))
	}
	return math.Float64frombits(w)
}

// placeOf returns the place of f on the line of the leaf (see line), or the argument other if f is
// NaN or too large for the leaf's kind.
func (l *leaf) placeOf(f float64, other uint64) uint64 {
	if l.kind == Float32 {
		if f := float32(f); f-f == 0 {
			return l.line(uint64(math.Float32bits(f)))
		}
	} else if f-f == 0 {
		return l.line(math.Float64bits(f))
	}
	return other
}
