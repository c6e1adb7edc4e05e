package codec

import (
	"bytes"
	"errors"
	"math"
	"math/bits"

	"github.com/netloop/netloop/internal/wire"
)

// A delta leads from a baseline to a value, bit by bit. Of what has moved lately it takes only the
// distance from where it would be by now:
//
//	older ──── took ticks ────▶ baseline ──── ahead ticks ────▶ predicted ··distance··▶ value
//
// A leaf is moving if older and baseline differ in it; both sides know that, and say nothing of it.
// What else has changed a mask says:
//
//	delta = [0 | 1 mask] | mask     the first form with a trend: 0 if only what moves has changed
//	        difference of each leaf that is moving or in the mask
//	mask  = a bit for each leaf that is not moving, the caller's word first; if these are more
//	        than eight, then in groups of eight with a bit before each that says whether any
//	        is set
//
// A distance has about as many bits as the shift that was predicted, and as the distances of its
// neighbours: the other components of a vector. See expected.

// MaxTrend is the most ticks that a trend may take or lead ahead. What has moved so long ago says
// nothing about now.
const MaxTrend = 63

// Trend is what is known of how a value moves: from Older to the baseline in Took ticks. It is
// Ahead ticks since. Both are from 1 to MaxTrend. A zero Trend knows nothing.
type Trend struct {
	Older       Values
	Took, Ahead uint64
}

// maxStep bounds what a word may have moved for its trend to mean anything; what is beyond
// does not overflow when it is drawn ahead.
const maxStep = 1 << 40

// ErrDelta is the error of a delta that no writer makes.
var ErrDelta = errors.New("codec: delta is malformed")

// leafSet is a set of leaves: bit 0 is the caller's word, bit 1+i leaf i.
type leafSet [(1+MaxLeaves)/64 + 1]uint64

func (s *leafSet) set(i int) { s[i>>6] |= 1 << (i & 63) }

func (s *leafSet) has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

// setWords is how many words of a set the leaves reach.
func (p *Plan) setWords() int { return len(p.leaves)>>6 + 1 }

func (s *leafSet) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// moving finds the leaves of base that are drawn ahead.
func (p *Plan) moving(set *leafSet, base *Values, t *Trend) {
	if t.Took == 0 {
		return
	}
	then, before := base.Words[:p.words], t.Older.Words[:p.words]
	for pos, leaf := range p.byWord {
		if w, old := then[pos], before[pos]; w != old && p.leaves[leaf].moves(w, old) {
			set.set(1 + int(leaf))
		}
	}
}

// moves reports whether a leaf whose words differ has a trend.
func (l *leaf) moves(w, old uint64) bool {
	switch l.kind {
	case Bool, RefKind:
		return false
	case Quat:
		return w != 0 && old != 0
	case Float32, Float64:
		return true
	default:
		return w-old+maxStep < 2*maxStep
	}
}

// expected is what the neighbours of a number let expect of it.
type expected struct {
	run   uint16 // of the leaf before
	sizes [2]int // of the last two distances in this run, in bits; -1 is none
}

func (x *expected) next(run uint16) {
	if x.run != run {
		x.run, x.sizes = run, [2]int{-1, -1}
	}
}

func (x *expected) note(distance uint64) {
	x.sizes[1] = x.sizes[0]
	x.sizes[0] = bits.Len64(distance)
}

// magnitude is |v| of a two's complement number.
func magnitude(v uint64) uint64 {
	if int64(v) < 0 {
		return -v
	}
	return v
}

// parameter is that of the Rice code of a distance, or false if its size is anybody's guess. shift
// is how far the leaf was drawn ahead, floor how much that multiplies the rounding of its versions.
func (x *expected) parameter(shift uint64, floor int, moving bool) (k uint, ok bool) {
	near := max(x.sizes[0], x.sizes[1])
	v := bits.Len64(magnitude(shift))
	switch {
	case near < 0 && !moving:
		return 0, false
	case near < 0 && v == 0:
		return 0, true
	case near < 0:
		k = uint(max(floor, v/2+2))
	case v == 0:
		k = uint(max(0, near-1))
	default:
		k = uint(max(floor, (3*v+4*near+6)/8))
	}
	return min(k, wire.MaxRice), true
}

func (x *expected) put(w *wire.BitWriter, distance, shift uint64, floor int, moving bool) {
	if k, ok := x.parameter(shift, floor, moving); ok {
		w.PutRice(wire.Zigzag(int64(distance)), k)
	} else {
		w.PutLen(wire.Zigzag(int64(distance)))
	}
	x.note(magnitude(distance))
}

func (x *expected) take(r *wire.BitReader, shift uint64, floor int, moving bool) (distance uint64) {
	if k, ok := x.parameter(shift, floor, moving); ok {
		distance = uint64(wire.Unzigzag(r.Rice(k)))
	} else {
		distance = uint64(wire.Unzigzag(r.Len()))
	}
	x.note(magnitude(distance))
	return distance
}

// draw returns d · ahead ÷ took, rounded half away from zero.
func (t *Trend) draw(d int64) int64 {
	if t.Took == 1 {
		return d * int64(t.Ahead)
	}
	// Both numbers are below 2^48, so the quotient of floats is rounded down to the same number,
	// and sooner.
	v := int64(float64(2*magnitude(uint64(d))*t.Ahead+t.Took) / float64(2*t.Took))
	if d < 0 {
		return -v
	}
	return v
}

// floor is the number of bits that rounding alone makes of a distance.
func (t *Trend) floor() int {
	if t.Took == 0 {
		return 0
	}
	return bits.Len64(t.Ahead / t.Took)
}

// predict returns where a float would be by now, on its line: see line.
func (l *leaf) predict(base uint64, t *Trend) uint64 {
	old := t.Older.Words[l.pos]
	switch l.kind {
	case Float32:
		b, o := float64(math.Float32frombits(uint32(base))), float64(math.Float32frombits(uint32(old)))
		f := float32(b + t.drawFloat(b-o))
		if f-f != 0 { // infinite, or NaN
			return l.line(base)
		}
		return l.line(uint64(math.Float32bits(f)))
	case Float64:
		b, o := math.Float64frombits(base), math.Float64frombits(old)
		f := b + t.drawFloat(b-o)
		if f-f != 0 {
			return l.line(base)
		}
		return l.line(math.Float64bits(f))
	default:
		panic("codec: no prediction of " + l.kind.String())
	}
}

// shift returns how far a plain number is drawn.
func (l *leaf) shift(base uint64, t *Trend) uint64 {
	s := t.draw(int64(base - t.Older.Words[l.pos]))
	if l.kind.ranged() {
		s = min(max(int64(base)+s, int64(l.low)), int64(l.low+l.span)) - int64(base)
	}
	return uint64(s)
}

// drawFloat is draw for floats, rounded after each operation on every machine.
func (t *Trend) drawFloat(d float64) float64 {
	return float64(d*float64(t.Ahead)) / float64(t.Took)
}

// line returns the place of a word among all words of its kind, so that the distance of near values
// is small. Floats are in the order of their bits, negative ones upside down. It is its own
// inverse.
func (l *leaf) line(w uint64) uint64 {
	switch l.kind {
	case Float32:
		v := int32(uint32(w))
		return uint64(int64(v ^ int32(uint32(v>>31)>>1)))
	case Float64:
		v := int64(w)
		return uint64(v ^ int64(uint64(v>>63)>>1))
	default:
		return w
	}
}

// unline returns the word at a place of the line.
func (l *leaf) unline(at uint64) uint64 {
	if l.kind == Float32 {
		if at != uint64(int64(int32(uint32(at)))) {
			return math.MaxUint64 // no place; no float32 either
		}
		return uint64(uint32(l.line(at)))
	}
	return l.line(at)
}

// PutDelta writes what leads from base to v. Both have a word of the caller's behind those of
// the plan. A base may have zeros of the plan (see Zero): that makes a whole value.
func (p *Plan) PutDelta(w *wire.BitWriter, v, base *Values, t *Trend) {
	p.putDelta(w, v, base, t, nil, 0)
}

// putDelta adds to sizes the bits of each leaf, times a factor, unless it is nil.
func (p *Plan) putDelta(w *wire.BitWriter, v, base *Values, t *Trend, sizes []uint64, times uint64) {
	var set, moving leafSet
	p.moving(&moving, base, t)
	p.differ(&set, v, base)
	quiet := true
	for i := range p.setWords() {
		quiet = quiet && set[i]&^moving[i] == 0
	}
	if t.Took != 0 {
		w.Bit(!quiet)
	}
	if t.Took == 0 || !quiet {
		p.putMask(w, &set, &moving)
	}
	x, floor := expected{run: noRun}, t.floor()
	for at := range p.setWords() {
		for s := set[at] | moving[at]; s != 0; s &= s - 1 {
			i, before := at<<6+bits.TrailingZeros64(s), 0
			if sizes != nil {
				before = w.Len()
			}
			if i == 0 {
				w.PutLen(wire.Zigzag(int64(v.Words[p.words] - base.Words[p.words])))
			} else if l := &p.leaves[i-1]; l.plain {
				b, shift, moves := base.Words[l.pos], uint64(0), moving.has(i)
				if moves {
					shift = l.shift(b, t)
				}
				x.next(l.run)
				x.put(w, v.Words[l.pos]-b-shift, shift, floor, moves)
			} else if l.kind.Blob() {
				l.putBlob(w, v, base)
			} else {
				l.putWord(w, &x, v.Words[l.pos], base.Words[l.pos], t, floor, moving.has(i))
			}
			if sizes != nil {
				sizes[i] += times * uint64(w.Len()-before)
			}
		}
	}
}

// differ finds the leaves that have another value.
func (p *Plan) differ(set *leafSet, v, base *Values) {
	now, then := v.Words[:p.words+1], base.Words[:p.words+1]
	if now[p.words] != then[p.words] {
		set.set(0)
	}
	for pos, leaf := range p.byWord {
		if now[pos] != then[pos] {
			set.set(1 + int(leaf))
		}
	}
	for pos, b := range v.Blobs[:p.blobs] {
		if !bytes.Equal(b, base.Blobs[pos]) {
			set.set(1 + int(p.byBlob[pos]))
		}
	}
}

const maskGroup = 8

// putMask writes which of the leaves that are not moving are in the set.
func (p *Plan) putMask(w *wire.BitWriter, set, moving *leafSet) {
	left := 1 + len(p.leaves) - moving.count()
	if left == 1+len(p.leaves) && left <= maskGroup {
		w.Put(set[0], uint(left))
		return
	}
	grouped := left > maskGroup
	var group uint64
	n := 0
	for i := range 1 + len(p.leaves) {
		if moving.has(i) {
			continue
		}
		if set.has(i) {
			group |= 1 << n
		}
		left--
		if n++; n == maskGroup || left == 0 {
			switch {
			case !grouped:
				w.Put(group, uint(n))
			case group == 0:
				w.Put(0, 1)
			default:
				w.Put(group<<1|1, uint(n)+1)
			}
			group, n = 0, 0
		}
	}
}

// takeMask adds the leaves of the mask to set, which holds those that are moving.
func (p *Plan) takeMask(r *wire.BitReader, set *leafSet) {
	left := 1 + len(p.leaves) - set.count()
	grouped := left > maskGroup
	for i := 0; left > 0; {
		n := min(left, maskGroup)
		left -= n
		var group uint64
		if !grouped || r.Bit() {
			if group = r.Take(uint(n)); group == 0 && grouped {
				r.Fail(ErrDelta)
			}
		}
		for ; n > 0; i++ {
			if set.has(i) {
				continue
			}
			if n--; group&1 != 0 {
				set.set(i)
			}
			group >>= 1
		}
	}
}

// TakeDelta reads what PutDelta wrote into v, which holds the words and blobs of the baseline, and
// checks it wholly. New blobs alias scratch, which is returned longer.
func (p *Plan) TakeDelta(r *wire.BitReader, v *Values, t Trend, scratch []byte) []byte {
	var set leafSet
	p.moving(&set, v, &t)
	moving := set
	if t.Took == 0 || r.Bit() {
		before := set.count()
		if p.takeMask(r, &set); t.Took != 0 && set.count() == before {
			r.Fail(ErrDelta) // the mask has nothing in it: one bit would have said so
		}
	}
	x, floor := expected{run: noRun}, t.floor()
	for at := range p.setWords() {
		for s := set[at]; s != 0 && r.Err() == nil; s &= s - 1 {
			i := at<<6 + bits.TrailingZeros64(s)
			if i == 0 {
				v.Words[p.words] += uint64(wire.Unzigzag(r.Len()))
			} else if l := &p.leaves[i-1]; l.plain {
				b, shift, moves := v.Words[l.pos], uint64(0), moving.has(i)
				if moves {
					shift = l.shift(b, &t)
				}
				x.next(l.run)
				w := b + shift + x.take(r, shift, floor, moves)
				if w-l.low > l.span {
					r.Fail(ErrRange)
				}
				v.Words[l.pos] = w
			} else if l.kind.Blob() {
				scratch = l.takeBlob(r, v, scratch)
			} else {
				v.Words[l.pos] = l.takeWord(r, &x, v.Words[l.pos], &t, floor, moving.has(i))
			}
		}
	}
	return scratch
}

// putWord writes how w differs from base, which it does unless it is moving.
func (l *leaf) putWord(w *wire.BitWriter, x *expected, to, base uint64, t *Trend, floor int, moving bool) {
	switch l.kind {
	case Bool: // it differs, so it is known
	case RefKind:
		putRef(w, to)
	case Quat:
		l.putQuat(w, to, base, t, floor, moving)
	default:
		x.next(l.run)
		from, start := l.line(base), l.line(base)
		if moving {
			from = l.predict(base, t)
		}
		x.put(w, l.line(to)-from, from-start, floor, moving)
	}
}

func (l *leaf) takeWord(r *wire.BitReader, x *expected, base uint64, t *Trend, floor int, moving bool) uint64 {
	var w uint64
	switch l.kind {
	case Bool:
		w = base ^ 1
	case RefKind:
		w = takeRef(r)
	case Quat:
		w = l.takeQuat(r, base, t, floor, moving)
	default:
		x.next(l.run)
		from, start := l.line(base), l.line(base)
		if moving {
			from = l.predict(base, t)
		}
		w = l.unline(from + x.take(r, from-start, floor, moving))
	}
	if !l.check(w) {
		r.Fail(ErrRange)
		return 0
	}
	return w
}

// A reference is written whole: one bit for none, then slot and generation.
const slotRice = 8

func putRef(w *wire.BitWriter, id uint64) {
	if w.Bit(id != 0); id != 0 {
		w.PutRice(id>>32, slotRice)
		w.PutLen(id & math.MaxUint32)
	}
}

func takeRef(r *wire.BitReader) uint64 {
	if !r.Bit() {
		return 0
	}
	slot, gen := r.Rice(slotRice), r.Len()
	if slot > math.MaxUint32 || gen > math.MaxUint32 || slot == 0 && gen == 0 {
		r.Fail(ErrDelta)
		return 0
	}
	return slot<<32 | gen
}

// putBlob writes how a blob differs: the number of bytes, and then those of appendBlobDiff.
func (l *leaf) putBlob(w *wire.BitWriter, v, base *Values) {
	w.Scratch = l.appendBlobDiff(w.Scratch[:0], v.Blobs[l.pos], base.Blobs[l.pos])
	w.PutLen(uint64(len(w.Scratch)))
	w.PutBytes(w.Scratch)
}

func (l *leaf) takeBlob(r *wire.BitReader, v *Values, scratch []byte) []byte {
	n, start := r.Len(), len(scratch)
	scratch = r.TakeBytes(scratch, int(min(n, math.MaxInt))) // no more than there are
	if r.Err() != nil {
		return scratch
	}
	in := wire.NewReader(scratch[start:len(scratch):len(scratch)])
	v.Blobs[l.pos] = l.readBlobDiff(&in, v.Blobs[l.pos])
	if err := in.Done(); err != nil {
		r.Fail(err)
	}
	return scratch
}
