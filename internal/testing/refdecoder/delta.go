package refdecoder

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// Deltas.

// difference has the earlier versions of an object from which a delta is decoded.
type difference struct {
	base    *Version
	older   *Version // nil if there is none
	oldest  *Version // the same
	version uint64
	span    uint64 // ticks from older to base, as trends count them
	ahead   uint64 // and from base to version
}

// difference reads a delta and returns the new version.
func (r *bitReader) difference(c *Class, d *difference) *Version {
	v := &Version{Tick: d.version, Owner: d.base.Owner, Fields: slices.Clone(d.base.Fields)}
	moving := make([]bool, 1+len(c.Leaves)) // leaf 0 is the owner
	resting := 0
	for i := range moving {
		moving[i] = i > 0 && d.older != nil && d.moving(&c.Leaves[i-1], i-1)
		if !moving[i] {
			resting++
		}
	}
	changed := make([]bool, resting)
	if d.older == nil || r.bit() {
		changed = r.mask(resting)
		if d.older != nil && !slices.Contains(changed, true) {
			refuse("a mask of nothing behind quiet")
		}
	}
	var run run
	for i := range moving {
		if i > 1 && !sameRun(&c.Leaves[i-2], &c.Leaves[i-1]) {
			run = nil
		}
		if !moving[i] {
			is := changed[0]
			changed = changed[1:]
			if !is {
				continue
			}
		}
		if i == 0 {
			v.Owner += uint64(unzigzag(r.len()))
			continue
		}
		was := past{base: d.base.Fields[i-1]}
		if moving[i] {
			r.trends++
			if was.older = &d.older.Fields[i-1]; d.oldest != nil {
				was.oldest = &d.oldest.Fields[i-1]
			}
		}
		v.Fields[i-1] = r.leaf(&c.Leaves[i-1], d, was, &run)
	}
	return v
}

// mask reads n flags. More than 8 flags are in groups of 8, each behind a bit: after a bit of 0 the
// group is left out, and its flags are false.
func (r *bitReader) mask(n int) (mask []bool) {
	for len(mask) < n {
		size := n
		if n > 8 {
			size = min(8, n-len(mask))
			if !r.bit() {
				mask = append(mask, make([]bool, size)...)
				continue
			}
		}
		for range size {
			mask = append(mask, r.bit())
		}
		if n > 8 && !slices.Contains(mask[len(mask)-size:], true) {
			refuse("a group of nothing")
		}
	}
	return mask
}

// past has the earlier values of a leaf; older and oldest are nil unless the leaf is moving.
type past struct {
	base          Value
	older, oldest *Value
}

// moving reports whether leaf i of the class has a trend, from which its next value is estimated:
// from older to base, or in a float in steps that then kept its value, from oldest to older.
func (d *difference) moving(l *Leaf, i int) bool {
	base, older := d.base.Fields[i].Number, d.older.Fields[i].Number
	if base == older && d.oldest != nil && l.stepped() {
		return older != d.oldest.Fields[i].Number
	}
	return l.moving(older, base)
}

// moving reports whether the change from older to base is a trend: only in numbers other than
// references, and in quaternions, and in whole numbers only within ±2^40.
func (l *Leaf) moving(older, base uint64) bool {
	switch {
	case older == base:
		return false
	case l.Kind == kindQuat:
		return older != 0 && base != 0
	case l.float():
		return true
	case l.Kind == kindRef || !l.isNumber():
		return false
	}
	d := int64(base - older)
	return d >= -1<<40 && d < 1<<40
}

// leaf reads the difference of one leaf.
func (r *bitReader) leaf(l *Leaf, d *difference, was past, run *run) Value {
	switch {
	case l.Kind == kindBool:
		return Value{Number: 1 - was.base.Number}
	case l.Kind == kindQuat:
		return r.quat(l, d, was)
	case l.Kind == kindRef:
		if !r.bit() {
			return Value{}
		}
		slot := r.rice(8)
		generation := r.len()
		if slot > math.MaxUint32 || generation > math.MaxUint32 || slot == 0 && generation == 0 {
			refuse("%s: not a reference", l.Name)
		}
		return Value{Number: slot<<32 | generation}
	case l.isNumber():
		e := expected{at: l.line(was.base.Number)}
		if was.older != nil {
			e = l.expected(d, was)
		}
		if l.float() && r.bit() {
			length := 64
			if l.Kind == kindFloat32 {
				length = 32
			}
			word := r.take(length)
			*run = append(*run, size(l.line(word)-e.at))
			return l.number(word)
		}
		return l.number(l.unline(e.at + r.distance(run, d, e)))
	}
	in := byteReader{r.wholeBytes(r.len())}
	var v Value
	if l.Kind == kindSlice || l.Kind == kindMap {
		v = in.listDifference(l, was.base)
	} else {
		v = in.value(l)
	}
	in.end()
	return v
}

// line returns the position of a number on its line, as an int64 that ascends with the value: the
// number itself, or for a float without steps its bit pattern in the order of the values.
func (l *Leaf) line(n uint64) int64 {
	switch {
	case l.float() && l.Kind == kindFloat32:
		if b := int32(n); b < 0 {
			return int64(b ^ math.MaxInt32)
		}
		return int64(int32(n))
	case l.float():
		if b := int64(n); b < 0 {
			return b ^ math.MaxInt64
		}
	}
	return int64(n)
}

// unline is the inverse of line. A position without a number is refused, or becomes a value that no
// field has and [Leaf.number] refuses.
func (l *Leaf) unline(at int64) uint64 {
	switch {
	case l.float() && l.Kind == kindFloat32:
		if at != int64(int32(at)) {
			refuse("%s: a value beyond its field", l.Name)
		}
		if b := int32(at); b < 0 {
			return uint64(uint32(b ^ math.MaxInt32))
		}
	case l.float():
		if at < 0 {
			return uint64(at ^ math.MaxInt64)
		}
	}
	return uint64(at)
}

// expected is the expected position of a number on its line, and its certainty.
type expected struct {
	at     int64
	moving bool
	v, u   int // bits of the shift and of the bend
	bent   bool
}

func (l *Leaf) expected(d *difference, was past) expected {
	base, older := was.base.Number, was.older.Number
	if l.float() {
		return l.expectedFloat(d, was)
	}
	var oldest *int64
	if was.oldest != nil {
		oldest = new(int64(was.oldest.Number))
	}
	e := d.expected(int64(base), int64(older), oldest)
	if l.ranged() {
		e.at = min(max(e.at, l.Low), l.High)
	}
	return e
}

// expected is the expected position of a whole number with these earlier positions.
func (d *difference) expected(base, older int64, oldest *int64) expected {
	by := base - older
	s := shift(by, d.ahead, d.span)
	e := expected{at: base + s, moving: true, v: size(s)}
	if oldest == nil {
		return e
	}
	before := older - *oldest
	if before < -1<<40 || before >= 1<<40 {
		return e
	}
	e.bent = true
	drift := by + before
	if opposite := by < 0 && before > 0 || by > 0 && before < 0; opposite && d.span%2 == 1 && 8*abs(drift) <= abs(by) {
		from, ahead := base, d.ahead
		if ahead%2 == 1 {
			from, ahead, drift = older, ahead+d.span, -drift
		}
		s := shift(drift, ahead, 2*d.span)
		e.at, e.v, e.u = from+s, size(s), size(s)
		return e
	}
	if bend := by - before; bend != 0 {
		e.u = size(bend) + bits.Len64(d.ahead*(d.ahead+d.span)/(2*d.span*d.span))
	}
	return e
}

// expectedFloat is the expected position of a float.
func (l *Leaf) expectedFloat(d *difference, was past) expected {
	b, o := l.Float(was.base), l.Float(*was.older)
	start := l.line(was.base.Number)
	place := func(f float64) int64 {
		bits := math.Float64bits(f)
		if l.Kind == kindFloat32 {
			bits = uint64(math.Float32bits(float32(f)))
			f = float64(float32(f))
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return start
		}
		return l.line(bits)
	}
	ahead, span := float64(d.ahead), float64(d.span)
	by := float64(b - o)
	along := float64(float64(by*ahead) / span)
	straight := place(float64(b + along))
	e := expected{at: straight, moving: true, v: size(straight - start)}
	if was.oldest == nil {
		return e
	}
	e.bent = true
	before := float64(o - l.Float(*was.oldest))
	drift := float64(by + before)
	if d.span%2 == 1 && (by < 0) != (before < 0) && float64(math.Abs(drift)*8) <= math.Abs(by) {
		from, ahead := b, ahead
		if d.ahead%2 == 1 {
			from, ahead, drift = o, ahead+span, -drift
		}
		e.at = place(float64(from + float64(float64(drift*ahead)/(2*span))))
		e.v = size(e.at - place(from))
		e.u = e.v
		return e
	}
	e.u = e.v
	if bend := float64(by - before); math.Abs(bend) < 2*math.Abs(by) {
		bow := float64(float64(bend*(ahead*(ahead+span))) / (2 * span * span))
		e.at = place(float64(float64(b+along) + bow))
		e.v, e.u = size(e.at-start), size(e.at-straight)
	}
	return e
}

// shift is d · A ÷ S, as docs/WIRE.md names by, ahead and span, rounded to the nearest integer,
// halves away from zero.
func shift(by int64, ahead, span uint64) int64 {
	n := new(big.Int).Mul(big.NewInt(by), new(big.Int).SetUint64(ahead))
	negative := n.Sign() < 0
	n.Abs(n)
	n.Lsh(n, 1).Add(n, new(big.Int).SetUint64(span))
	n.Div(n, new(big.Int).SetUint64(2*span))
	if negative {
		n.Neg(n)
	}
	return n.Int64()
}

// run has the size in bits of each distance read so far for neighbouring leaves of one kind and
// step.
type run []int

func sameRun(a, b *Leaf) bool { return a.Kind == b.Kind && a.Num == b.Num && a.Den == b.Den }

// distance reads a distance from an expected position.
func (r *bitReader) distance(past *run, d *difference, e expected) int64 {
	f := 0
	if d.span > 0 && !e.bent {
		f = bits.Len64(d.ahead / d.span)
	}
	k := -1 // unknown
	p := -1
	if n := len(*past); n > 0 {
		p = slices.Max((*past)[max(0, n-2):])
	}
	switch {
	case p < 0 && !e.moving:
	case e.v == 0 && e.u == 0:
		k = max(0, p-1)
	case e.bent && p < 0:
		k = (7*e.v + 6*e.u + 14) / 16
	case e.bent:
		k = (5*e.v + 4*e.u + 7*p + 7) / 16
	case p < 0:
		k = max(f, e.v/2+2)
	default:
		k = max(f, (3*e.v+4*p+6)/8)
	}
	var u uint64
	if k < 0 {
		u = r.len()
	} else {
		u = r.rice(min(k, 40))
	}
	distance := unzigzag(u)
	*past = append(*past, size(distance))
	return distance
}

// size is the number of bits of |n|.
func size(n int64) int {
	if n < 0 {
		return bits.Len64(-uint64(n))
	}
	return bits.Len64(uint64(n))
}

// Quaternions in deltas.

func (r *bitReader) quat(l *Leaf, d *difference, was past) Value {
	base := was.base
	if base.Number == 0 {
		return l.number(r.take(l.wordBits()))
	}
	at, _ := l.steps(base.Number)
	largest := at
	if r.bit() {
		if largest = int(r.take(2)); largest == at {
			return l.number(r.take(l.wordBits()))
		}
	}
	s := l.turned(base.Number, largest)
	var run run
	var then, first [3]int64
	bent := was.oldest != nil && was.oldest.Number != 0
	if was.older != nil {
		then = l.turned(was.older.Number, largest)
	}
	if bent {
		first = l.turned(was.oldest.Number, largest)
	}
	for k, from := range s {
		e := expected{at: from}
		if was.older != nil {
			var oldest *int64
			if bent {
				oldest = &first[k]
			}
			e = d.expected(from, then[k], oldest)
			e.at = min(max(e.at, -l.m()), l.m())
		}
		s[k] = e.at + r.distance(&run, d, e)
	}
	return l.number(l.word(largest, s))
}
