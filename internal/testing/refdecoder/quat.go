package refdecoder

import (
	"math/big"
	"slices"
)

// steps splits a word into the index of the largest of the four components, and the other three in
// steps.
func (l *Leaf) steps(word uint64) (largest int, s [3]int64) {
	n := l.Max
	for i := range s {
		s[2-i] = int64(word>>(n*uint64(i))&(1<<n-1)) - l.m() - 1
	}
	return int(word >> (3 * n)), s
}

// word is the inverse of steps.
func (l *Leaf) word(largest int, s [3]int64) uint64 {
	w := uint64(largest)
	for _, s := range s {
		if s < -l.m() || s > l.m() {
			refuse("%s: a component of %d steps", l.Name, s)
		}
		w = w<<l.Max | uint64(s+l.m()+1)
	}
	return w
}

// m is M.
func (l *Leaf) m() int64 { return 1<<(l.Max-1) - 1 }

func (l *Leaf) wordBits() int { return int(3*l.Max + 2) }

func (l *Leaf) wordSize() uint64 { return uint64(l.wordBits()+7) / 8 }

// rest is R.
func (l *Leaf) rest(s [3]int64) int64 {
	return 2*l.m()*l.m() - s[0]*s[0] - s[1]*s[1] - s[2]*s[2]
}

// isWord reports whether a reader accepts the word.
func (l *Leaf) isWord(word uint64) bool {
	if word == 0 {
		return true
	}
	if word>>l.wordBits() != 0 {
		return false
	}
	largest, s := l.steps(word)
	r := l.rest(s)
	for i, s := range s {
		if s == -l.m()-1 || s*s > r || i < largest && s*s+abs(s) >= r {
			return false
		}
	}
	return true
}

// wordDifference applies the difference in an edit to the word base, and returns the new word.
func (l *Leaf) wordDifference(base, difference uint64) uint64 {
	if difference&1 == 1 {
		return difference >> 1
	}
	if base == 0 {
		refuse("%s: a difference from no rotation", l.Name)
	}
	largest, s := l.steps(base)
	for k := range s {
		var d uint64
		for i := range 21 {
			d |= difference >> 1 >> (3*i + k) & 1 << i
		}
		s[k] += unzigzag(d)
	}
	return l.word(largest, s)
}

// turned returns three of the four components of a word, in steps: all but component leftOut, and
// with inverted signs if that one is negative.
func (l *Leaf) turned(word uint64, leftOut int) (s [3]int64) {
	at, three := l.steps(word)
	largest := new(big.Int)
	if r := l.rest(three); r > 0 {
		largest.Sqrt(big.NewInt(r))
	}
	four := slices.Insert(slices.Clone(three[:]), at, largest.Int64())
	invert := four[leftOut] < 0
	copy(s[:], slices.Delete(four, leftOut, leftOut+1))
	for i := range s {
		if invert {
			s[i] = -s[i]
		}
	}
	return s
}

func abs(n int64) int64 { return max(n, -n) }
