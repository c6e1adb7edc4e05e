package plain

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// Deltas.

// difference says what a delta leads from.
type difference struct {
	base    *Version
	older   *Version // nil if there is none
	version uint64
	span    uint64 // ticks from older to base, as trends count them
	ahead   uint64 // and from base to version
}

// difference reads a delta and returns the version that it leads to.
func (r *bitReader) difference(c *Class, d *difference) *Version {
	v := &Version{Tick: d.version, Owner: d.base.Owner, Fields: slices.Clone(d.base.Fields)}
	moving := make([]bool, 1+len(c.Leaves)) // leaf 0 is the owner
	resting := 0
	for i := range moving {
		moving[i] = i > 0 && d.older != nil && c.Leaves[i-1].moving(d.older.Fields[i-1].Number, d.base.Fields[i-1].Number)
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
		var older *Value
		if moving[i] {
			r.trends++
			older = &d.older.Fields[i-1]
		}
		v.Fields[i-1] = r.leaf(&c.Leaves[i-1], d, d.base.Fields[i-1], older, &run)
	}
	return v
}

// mask reads n bits, in groups if they are many.
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

// moving tells whether the leaf has a trend from older to base.
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

// leaf reads the difference of one leaf; older is nil unless it is moving.
func (r *bitReader) leaf(l *Leaf, d *difference, base Value, older *Value, run *run) Value {
	switch {
	case l.Kind == kindBool:
		return Value{Number: 1 - base.Number}
	case l.Kind == kindQuat:
		return r.quat(l, d, base, older)
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
		from := l.line(base.Number)
		to := from
		if older != nil {
			to = l.expected(d, base.Number, older.Number)
		}
		to += r.distance(run, d, older != nil, to-from)
		return l.number(l.unline(to))
	}
	in := byteReader{r.wholeBytes(r.len())}
	var v Value
	if l.Kind == kindSlice || l.Kind == kindMap {
		v = in.listDifference(l, base)
	} else {
		v = in.value(l)
	}
	in.end()
	return v
}

// line is the place of a number on its line.
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

// unline is the inverse of line. A place where no number lies is a value that no field holds.
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

// expected is where on its line a moving number is expected.
func (l *Leaf) expected(d *difference, base, older uint64) int64 {
	if !l.float() {
		at := int64(base) + shift(int64(base-older), d)
		if l.ranged() {
			at = min(max(at, l.Low), l.High)
		}
		return at
	}
	b, o := l.Float(Value{Number: base}), l.Float(Value{Number: older})
	difference := float64(b - o)
	product := float64(difference * float64(d.ahead))
	quotient := float64(product / float64(d.span))
	e := float64(b + quotient)
	bits := math.Float64bits(e)
	if l.Kind == kindFloat32 {
		bits = uint64(math.Float32bits(float32(e)))
		e = float64(float32(e))
	}
	if math.IsInf(e, 0) || math.IsNaN(e) {
		bits = base
	}
	return l.line(bits)
}

// shift is d · A ÷ S, rounded to the nearest integer, halves away from zero.
func shift(by int64, d *difference) int64 {
	n := new(big.Int).Mul(big.NewInt(by), new(big.Int).SetUint64(d.ahead))
	negative := n.Sign() < 0
	n.Abs(n)
	n.Lsh(n, 1).Add(n, new(big.Int).SetUint64(d.span))
	n.Div(n, new(big.Int).SetUint64(2*d.span))
	if negative {
		n.Neg(n)
	}
	return n.Int64()
}

// run are the numbers of bits of the distances of neighbouring leaves of one kind and step.
type run []int

func sameRun(a, b *Leaf) bool { return a.Kind == b.Kind && a.Num == b.Num && a.Den == b.Den }

// distance reads a distance from where a number is expected, which is off from where it was.
func (r *bitReader) distance(past *run, d *difference, moving bool, off int64) int64 {
	v := size(off)
	f := bits.Len64(0)
	if d.span > 0 {
		f = bits.Len64(d.ahead / d.span)
	}
	k := -1 // unknown
	if n := len(*past); n > 0 {
		p := slices.Max((*past)[max(0, n-2):])
		if v == 0 {
			k = max(0, p-1)
		} else {
			k = max(f, (3*v+4*p+6)/8)
		}
	} else if moving {
		if v == 0 {
			k = 0
		} else {
			k = max(f, v/2+2)
		}
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

func (r *bitReader) quat(l *Leaf, d *difference, base Value, older *Value) Value {
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
	var then [3]int64
	if older != nil {
		then = l.turned(older.Number, largest)
	}
	for k, from := range s {
		if older != nil {
			s[k] = min(max(from+shift(from-then[k], d), -l.m()), l.m())
		}
		s[k] += r.distance(&run, d, older != nil, s[k]-from)
	}
	return l.number(l.word(largest, s))
}
