package codec

import (
	"math"

	"github.com/netloop/netloop/internal/wire"
)

// The delta of a quaternion. Its largest component is often that of the baseline:
//
//	delta = 0 distance*3                 the largest component is the same
//	      | 1 largest:2 distance*3       it is another: the baseline is converted to it first
//	      | 1 largest:2 word:3n+2        the baseline's largest component, then the whole word
//	      | word:3n+2                    without a flag, if the baseline is 0
//
// Distances are those of the steps from their extrapolated values.

// turn returns the steps of a word that is not 0, with component at left out instead of the
// largest: the same rotation, with that component positive.
func turn(w uint64, n, at int) [3]int64 {
	s, largest := splitQuat(w, n)
	if largest == at {
		return s
	}
	m := int64(1)<<(n-1) - 1
	var q [4]int64
	for i, j := 0, 0; i < 4; i++ {
		if i != largest {
			q[i] = s[j]
			j++
		}
	}
	q[largest] = root(2*m*m - s[0]*s[0] - s[1]*s[1] - s[2]*s[2])
	sign := int64(1)
	if q[at] < 0 {
		sign = -1
	}
	for i, j := 0, 0; i < 4; i++ {
		if i != at {
			s[j] = sign * q[i]
			j++
		}
	}
	return s
}

// root returns the square root, rounded down; 0 for a negative v. v is below 2^52, for which a
// float is exact.
func root(v int64) int64 { return int64(math.Sqrt(float64(max(v, 0)))) }

// aims returns the expected steps of a word, relative to those of the baseline, which is converted
// to leave out component at.
func (l *leaf) aims(base uint64, t *Trend, at int, moving bool) (from [3]int64, aims [3]aim) {
	n := l.max
	from = turn(base, n, at)
	if !moving {
		return from, [3]aim{rests, rests, rests}
	}
	older, oldest := turn(t.Older.Words[l.pos], n, at), [3]int64{}
	bent := t.Bent && t.Oldest.Words[l.pos] != 0
	if bent {
		oldest = turn(t.Oldest.Words[l.pos], n, at)
	}
	m := int64(1)<<(n-1) - 1
	for i := range aims {
		a := t.aimAt(from[i], older[i], oldest[i], bent)
		a.limit(from[i], -m, m)
		aims[i] = a
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
	_, was := splitQuat(base, n)
	if to == 0 {
		w.Put(1|uint64(was)<<1, 3)
		w.Put(to, size)
		return
	}
	s, at := splitQuat(to, n)
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
	_, at := splitQuat(base, n)
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
