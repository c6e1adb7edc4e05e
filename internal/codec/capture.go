package codec

import (
	"math"
	"unsafe"
)

// CaptureMark does the work of Capture into now and of Mark against last, in one pass. This is most
// of the work for an object that changes in every tick. It sets ticks[i] = tick for each changed
// leaf i.
func (p *Plan) CaptureMark(v unsafe.Pointer, now, last *Values, ticks []uint64, tick uint64) (clamped int, changed bool) {
	words, old := now.Words, last.Words
	for i := range p.leaves {
		l := &p.leaves[i]
		var w uint64
		switch {
		case l.absent || l.kind.Blob():
			clamped += l.capture(v, now)
			if !l.equal(now, last) {
				ticks[i], changed = tick, true
			}
			continue
		case l.kind == Quant32 || l.kind == Range32: // most leaves of a state
			f := float64(*(*float32)(unsafe.Add(v, l.off)))
			s := f * l.den
			if l.num != 1 {
				s /= l.num
			}
			if s = math.RoundToEven(s); s >= l.least && s <= l.most {
				w = uint64(int64(s))
				break
			}
			fallthrough
		default:
			var c int
			w, c = l.load(v)
			clamped += c
		}
		words[l.pos] = w
		if w != old[l.pos] {
			ticks[i], changed = tick, true
		}
	}
	return clamped, changed
}

// capture captures a leaf that is a blob, or that the struct has no field for: such a leaf is zero.
func (l *leaf) capture(v unsafe.Pointer, to *Values) (clamped int) {
	if l.absent {
		l.captureZero(to)
		return 0
	}
	var rep report
	to.Blobs[l.pos] = l.appendBlob(to.Blobs[l.pos][:0], v, &rep)
	return rep.clamped
}
