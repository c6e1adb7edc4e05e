package codec

import (
	"github.com/netloop/netloop/internal/codec/quat"
	"github.com/netloop/netloop/internal/wire"
)

// The delta of a quaternion. Its largest component is often that of the baseline:
//
//	delta = 0 distance*3                 the largest component is the same
//	      | 1 largest:2 distance*3       it is another: the baseline is converted to it first
//	      | 1 largest:2 word:3n+2        the baseline's largest component, then the whole word
//	      | word:3n+2                    without a flag, if the baseline is 0
//
// A distance is the difference between a step and its extrapolated value.

// aims converts the baseline to a form without component at. It returns the steps of the other
// three components (from), and their expected changes (aims).
func (l *leaf) aims(base uint64, t *Trend, at int, moving bool) (from [3]int64, aims [3]aim) {
	n := l.max
	from = quat.Turn(base, n, at)
	if !moving {
		return from, [3]aim{rests, rests, rests}
	}
	older, oldest := quat.Turn(t.Older.Words[l.pos], n, at), [3]int64{}
	bent := t.Bent && t.Oldest.Words[l.pos] != 0
	if bent {
		oldest = quat.Turn(t.Oldest.Words[l.pos], n, at)
	}
	m := int64(1)<<(n-1) - 1
	for i := range aims {
		aims[i] = t.aimAt(from[i], older[i], oldest[i], bent).limited(from[i], -m, m)
	}
	return from, aims
}

func (l *leaf) putQuat(w *wire.BitWriter, to, base uint64, t *Trend, moving bool) {
	n := l.max
	size := uint(3*n + 2)
	if base == 0 {
		w.Put(to, size)
		return
	}
	_, was := quat.Split(base, n)
	if to == 0 {
		w.Put(1|uint64(was)<<1, 3)
		w.Put(to, size)
		return
	}
	s, at := quat.Split(to, n)
	if at == was {
		w.Put(0, 1)
	} else {
		w.Put(1|uint64(at)<<1, 3)
	}
	x := expected{sizes: [2]int{-1, -1}}
	from, aims := l.aims(base, t, at, moving)
	for i, a := range aims {
		x.put(w, uint64(s[i]-from[i])-a.shift, a)
	}
}

func (l *leaf) takeQuat(r *wire.BitReader, base uint64, t *Trend, moving bool) uint64 {
	n := l.max
	if base == 0 {
		return r.Take(uint(3*n + 2))
	}
	_, at := quat.Split(base, n)
	if r.Bit() {
		was := at
		if at = int(r.Take(2)); at == was {
			return r.Take(uint(3*n + 2))
		}
	}
	x := expected{sizes: [2]int{-1, -1}}
	from, aims := l.aims(base, t, at, moving)
	w, m := uint64(at), int64(1)<<(n-1)-1
	for i, a := range aims {
		c := from[i] + int64(a.shift+x.take(r, a))
		if c < -m || c > m {
			r.Fail(ErrRange)
			return 0
		}
		w = w<<n | uint64(c+m+1)
	}
	return w
}
