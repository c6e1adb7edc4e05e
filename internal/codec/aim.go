package codec

import (
	"math"
	"math/bits"
)

// aim is where a leaf is expected. Mostly that is where its trend leads in a straight line. What
// swings there and back from tick to tick is expected where it was an even number of ticks ago, as
// far apart from the other end as the ends have come lately, and a float without a step follows the
// bend of its trend.
type aim struct {
	shift  uint64 // from the baseline, on the line of the leaf
	size   int8   // bits of how far it was drawn
	bend   int8   // bits of how much the trend has changed; noBend if nobody knows
	floor  int8   // the least parameter where there is no bend
	moving bool
}

const noBend = -1

// rests is the aim of what is not moving.
var rests = aim{bend: noBend}

// straight is the aim of what is drawn on in a line.
func (t *Trend) straight(shift uint64) aim {
	return aim{shift: shift, size: sizeOf(shift), bend: noBend, floor: t.floor, moving: true}
}

// swung is the aim of what swings: it is drawn by a drift from where it was before.
func swung(from, drift uint64) aim {
	n := sizeOf(drift)
	return aim{shift: from + drift, size: n, bend: n, moving: true}
}

// sizeOf is how many bits a number has without its sign.
func sizeOf(v uint64) int8 { return int8(bits.Len64(magnitude(v))) }

// swingPart is which part of a swing its ends may drift apart by.
const swingPart = 8

// aimAt returns the aim of a number that was at three places, or at two of them if it is not bent.
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

// draw returns how far a distance leads by now.
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
		// Both numbers are below 2^53, so the quotient of floats is rounded down to the same
		// number, and sooner.
		v = uint64(float64(v) / float64(2*took))
	}
	sign := d >> 63
	return (int64(v) ^ sign) - sign
}

// inverses are 2^inverseBits ÷ 2n, rounded up to more than that: a number below 2^24 times that has
// the quotient by 2n above its lowest inverseBits bits. Dividing takes several times as long.
var inverses = func() (list [2*MaxTrend + 1]uint64) {
	for n := range list[1:] {
		list[n+1] = 1<<inverseBits/uint64(2*(n+1)) + 1
	}
	return list
}()

const inverseBits = 40

// aim returns that of a plain number that is moving.
func (l *leaf) aim(base uint64, t *Trend) aim {
	var oldest uint64
	if t.Bent {
		oldest = t.Oldest.Words[l.pos]
	}
	a := t.aimAt(int64(base), int64(t.Older.Words[l.pos]), int64(oldest), t.Bent)
	if l.kind.ranged() {
		a.limit(int64(base), int64(l.low), int64(l.low+l.span))
	}
	return a
}

// limit moves an aim from a baseline to the nearest place in a range.
func (a *aim) limit(base, low, high int64) {
	a.shift = uint64(min(max(base+int64(a.shift), low), high) - base)
}

// aimFloat returns the aim of a float that is moving.
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

// float is the number that the word of a float stands for.
func (l *leaf) float(w uint64) float64 {
	if l.kind == Float32 {
		return float64(math.Float32frombits(uint32(w)))
	}
	return math.Float64frombits(w)
}

// placeOf returns where a number lies on the line of a float, or another place if it is infinite or
// none.
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
