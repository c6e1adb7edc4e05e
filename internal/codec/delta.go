package codec

import (
	"bytes"
	"errors"
	"math"
	"math/bits"

	"github.com/netloop/netloop/internal/wire"
)

// A delta encodes the difference from a baseline to a value, in bits. For a leaf that changed
// recently it contains only the distance from the extrapolated value:
//
//	oldest ── took ──▶ older ── took ──▶ baseline ── ahead ──▶ expected ··distance··▶ value
//
// A leaf is moving if older and baseline differ in it, and a float with a step also if one of its
// neighbours is moving; both sides compute that, so it is not sent. A mask marks the other changed
// leaves:
//
//	delta = [0 | 1 mask] | mask     the first form with a trend: 0 if only moving leaves changed
//	        difference of each leaf that is moving or in the mask
//	mask  = a bit for each leaf that is not moving, the caller's word first; if there are more
//	        than eight, in groups of eight, each after a bit that is set if any of its bits
//	        is
//
// See aim.go for the expected value of a leaf, and distance.go for the encoding of its distance.

// MaxTrend limits Took and Ahead of a [Trend], in ticks. Older movement is of no use for a
// prediction.
const MaxTrend = 63

// Trend describes the movement of a value: it changed from Older to the baseline in Took ticks, and
// the baseline is Ahead ticks old. Took and Ahead are from 1 to MaxTrend. If Bent is set, Oldest is
// the value Took ticks before Older, so that a change of the movement is known too. A zero Trend
// has no information.
type Trend struct {
	Older, Oldest Values
	Took, Ahead   uint64
	Bent          bool

	floor  int8 // bits of distance caused by the rounding of the versions
	bends  int8 // bits to add to a bend by extrapolation
	swings bool // values that alternate from tick to tick can be detected
}

// begin computes the fields floor, bends and swings, which are the same for all leaves.
func (t *Trend) begin() {
	if t.Took == 0 {
		return
	}
	t.floor = int8(bits.Len64(t.Ahead / t.Took))
	if t.Bent {
		t.bends = int8(bits.Len64(t.Ahead * (t.Ahead + t.Took) / (2 * t.Took * t.Took)))
		t.swings = t.Took&1 != 0
	}
}

// maxStep limits the change of a word that counts as movement. A leaf with a larger change is not
// extrapolated, so the extrapolation does not overflow.
const maxStep = 1 << 40

// ErrDelta is the error of a delta that no writer produces.
var ErrDelta = errors.New("codec: delta is malformed")

// leafSet is a set of leaves: bit 1+i is leaf i, and bit 0 the caller's word, which follows the
// words of the plan (see PutDelta).
type leafSet [(1+MaxLeaves)/64 + 1]uint64

func (s *leafSet) set(i int) { s[i>>6] |= 1 << (i & 63) }

func (s *leafSet) has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

// setWords returns the number of words of a set that are in use.
func (p *Plan) setWords() int { return len(p.leaves)>>6 + 1 }

func (s *leafSet) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// moving sets the bits of the leaves of base that are extrapolated.
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
	if !t.Bent {
		return
	}
	first := t.Oldest.Words[:p.words]
	for pos, leaf := range p.byWord {
		if old := before[pos]; old == then[pos] && old != first[pos] && p.leaves[leaf].kind.Steps() {
			set.set(1 + int(leaf))
		}
	}
}

// moves reports whether a leaf that changed from old to w is extrapolated. Bools and references are
// never extrapolated.
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

// line returns the place of a word: its position in the order of the values of its kind, so that
// near values have a small distance. Floats are ordered by their bits, with the bits of negative
// floats inverted. line is its own inverse.
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

// unline is the inverse of line. For a place outside of the float32 values it returns a word that
// is out of range.
func (l *leaf) unline(at uint64) uint64 {
	if l.kind == Float32 {
		if at != uint64(int64(int32(uint32(at)))) {
			return math.MaxUint64 // out of range: no float32 either
		}
		return uint64(uint32(l.line(at)))
	}
	return l.line(at)
}

// PutDelta writes the difference from base to v. Both have one more word, the caller's, after those
// of the plan. If base is the zero value of the plan (see Zero), the delta contains a whole value.
func (p *Plan) PutDelta(w *wire.BitWriter, v, base *Values, t *Trend) {
	p.putDelta(w, v, base, t, nil, 0)
}

// putDelta is PutDelta. Unless sizes is nil, it also adds the bits of each leaf, multiplied by
// times, to sizes.
func (p *Plan) putDelta(w *wire.BitWriter, v, base *Values, t *Trend, sizes []uint64, times uint64) {
	var set, moving leafSet
	t.begin()
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
	x := expected{run: noRun}
	for at := range p.setWords() {
		for s := set[at] | moving[at]; s != 0; s &= s - 1 {
			i, before := at<<6+bits.TrailingZeros64(s), 0
			if sizes != nil {
				before = w.Len()
			}
			if i == 0 {
				w.PutLen(wire.Zigzag(int64(v.Words[p.words] - base.Words[p.words])))
			} else if l := &p.leaves[i-1]; l.plain {
				b, a := base.Words[l.pos], rests
				if moving.has(i) {
					a = l.aim(b, t)
				}
				x.next(l.run)
				x.put(w, v.Words[l.pos]-b-a.shift, a)
			} else if l.kind.Blob() {
				l.putBlob(w, v, base)
			} else {
				l.putWord(w, &x, v.Words[l.pos], base.Words[l.pos], t, moving.has(i))
			}
			if sizes != nil {
				sizes[i] += times * uint64(w.Len()-before)
			}
		}
	}
}

// differ adds the leaves that differ between v and base to set, and the caller's word if it
// differs.
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

// putMask writes one bit for each leaf that is not moving: 1 if it is in set.
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

// takeMask reads the output of putMask and adds its leaves to set, which contains the moving
// leaves.
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

// TakeDelta reads the output of PutDelta into v, which contains the words and blobs of the
// baseline, and validates it completely. New blobs alias scratch, which is returned with their
// bytes appended.
func (p *Plan) TakeDelta(r *wire.BitReader, v *Values, t Trend, scratch []byte) []byte {
	var set leafSet
	t.begin()
	p.moving(&set, v, &t)
	moving := set
	if t.Took == 0 || r.Bit() {
		before := set.count()
		if p.takeMask(r, &set); t.Took != 0 && set.count() == before {
			r.Fail(ErrDelta) // an empty mask, for which a writer writes only one bit
		}
	}
	x := expected{run: noRun}
	for at := range p.setWords() {
		for s := set[at]; s != 0 && r.Err() == nil; s &= s - 1 {
			i := at<<6 + bits.TrailingZeros64(s)
			if i == 0 {
				v.Words[p.words] += uint64(wire.Unzigzag(r.Len()))
			} else if l := &p.leaves[i-1]; l.plain {
				b, a := v.Words[l.pos], rests
				if moving.has(i) {
					a = l.aim(b, &t)
				}
				x.next(l.run)
				w := b + a.shift + x.take(r, a)
				if w-l.low > l.span {
					r.Fail(ErrRange)
				}
				v.Words[l.pos] = w
			} else if l.kind.Blob() {
				scratch = l.takeBlob(r, v, scratch)
			} else {
				v.Words[l.pos] = l.takeWord(r, &x, v.Words[l.pos], &t, moving.has(i))
			}
		}
	}
	return scratch
}

// putWord writes the difference of the word to from the word base; the two words differ unless the
// leaf is moving.
func (l *leaf) putWord(w *wire.BitWriter, x *expected, to, base uint64, t *Trend, moving bool) {
	switch l.kind {
	case Bool: // a bool differs, so its value is implied
	case RefKind:
		putRef(w, to)
	case Quat:
		l.putQuat(w, to, base, t, moving)
	default:
		x.next(l.run)
		a := rests
		if moving {
			a = l.aimFloat(base, t)
		}
		l.putFloat(w, x, to, l.line(base)+a.shift, a)
	}
}

func (l *leaf) takeWord(r *wire.BitReader, x *expected, base uint64, t *Trend, moving bool) uint64 {
	var w uint64
	switch l.kind {
	case Bool:
		w = base ^ 1
	case RefKind:
		w = takeRef(r)
	case Quat:
		w = l.takeQuat(r, base, t, moving)
	default:
		x.next(l.run)
		a := rests
		if moving {
			a = l.aimFloat(base, t)
		}
		w = l.takeFloat(r, x, l.line(base)+a.shift, a)
	}
	if !l.check(w) {
		r.Fail(ErrRange)
		return 0
	}
	return w
}

// slotRice is the parameter of the Rice code of a reference's slot. A reference is written
// independent of its baseline: one bit for no reference, or one bit, slot and generation.
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

// putBlob writes the difference of a blob between base and v: the number of its bytes, then the
// output of appendBlobDiff.
func (l *leaf) putBlob(w *wire.BitWriter, v, base *Values) {
	w.Scratch = l.appendBlobDiff(w.Scratch[:0], v.Blobs[l.pos], base.Blobs[l.pos])
	w.PutLen(uint64(len(w.Scratch)))
	w.PutBytes(w.Scratch)
}

func (l *leaf) takeBlob(r *wire.BitReader, v *Values, scratch []byte) []byte {
	n, start := r.Len(), len(scratch)
	scratch = r.TakeBytes(scratch, int(min(n, math.MaxInt))) // at most the available bytes
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
