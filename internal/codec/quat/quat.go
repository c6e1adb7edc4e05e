// Package quat packs rotations into words: quaternions as their smallest three components.
package quat

import "math"

// A quaternion is sent as its smallest three: the largest of the four components of a unit
// quaternion can be computed from the others, and it can be made positive, because q and -q are the
// same rotation. With n bits and M = 2^(n-1) - 1 the other three, which are within ±1/√2, are whole
// numbers of steps of 1/(√2·M):
//
//	word = largest:2 a:n b:n c:n  in that order from the top; a, b, c in the order of the
//	                              components without the largest, each as steps + M + 1, which
//	                              is never 0
//	word = 0                      four zeros: a rotation that was never set, or is not shown
//
// So a component of 0 remains 0, and the capture of a restored word is the same word. This requires
// a rule for components that are nearly equal: in whole numbers, with R = 2·M² - Σsteps², the
// square of the largest component, no other component is larger, and a component before it is at
// least half a step smaller.

// The bits of a component. With 3 bits the largest error of a rotation is about 20 degrees, and
// with 9 bits a quarter of a degree. 20 bits are the precision of a float32, and the largest number
// that fits a word.
const (
	MinBits = 3
	MaxBits = 20
)

// Size returns the number of bytes of a whole quaternion.
func Size(n int) int { return (3*n + 2 + 7) / 8 }

// Pack normalises the four floats and returns their word, with n bits per component. Four zeros
// have the word 0; so have NaN and infinity, which count as clamped.
func Pack(q *[4]float32, n int) (w uint64, clamped int) {
	var norm, most float64
	at := 0
	for i, f := range q {
		c := float64(f)
		norm += c * c // The product is exact: fused or not, the sum is the same.
		if a := math.Abs(c); a > most {
			most, at = a, i
		}
	}
	switch {
	case norm == 0:
		return 0, 0
	case math.IsNaN(norm) || math.IsInf(norm, 0):
		return 0, 1
	}
	m := int64(1)<<(n-1) - 1
	scale := math.Sqrt2 / math.Sqrt(norm)
	if q[at] < 0 {
		scale = -scale
	}
	var s [3]int64
	for i, j := 0, 0; i < 4; i++ {
		if i != at {
			unit := float64(q[i]) * scale
			s[j] = int64(math.RoundToEven(unit * float64(m)))
			j++
		}
	}
	for i := settle(&s, at, m); i >= 0; i = settle(&s, at, m) {
		if s[i] > 0 { // The rounded component is as large as the largest one.
			s[i]--
		} else {
			s[i]++
		}
	}
	w = uint64(at)
	for _, c := range s {
		w = w<<n | uint64(c+m+1)
	}
	return w, 0
}

// settle returns the index in s of a component that is too large compared to the largest component,
// at, by the rule at the top of this file, or -1 if there is none.
func settle(s *[3]int64, at int, m int64) int {
	r := 2*m*m - s[0]*s[0] - s[1]*s[1] - s[2]*s[2]
	for i, c := range s {
		c = max(c, -c)
		if i < at && c*c+c >= r || c*c > r {
			return i
		}
	}
	return -1
}

// Split splits a word that is not 0 into the steps of three components and the index of the
// largest, which is not among them.
func Split(w uint64, n int) (s [3]int64, at int) {
	m, bits := int64(1)<<(n-1)-1, uint64(1)<<n-1
	for i := 2; i >= 0; i-- {
		s[i] = int64(w&bits) - m - 1
		w >>= n
	}
	return s, int(w)
}

// Sound reports whether Pack could have made the word.
func Sound(w uint64, n int) bool {
	if w == 0 {
		return true
	}
	m := int64(1)<<(n-1) - 1
	s, at := Split(w, n)
	return min(s[0], s[1], s[2]) >= -m && settle(&s, at, m) < 0
}

// Unpack converts a word into a unit quaternion.
func Unpack(q *[4]float32, w uint64, n int) {
	if w == 0 {
		*q = [4]float32{}
		return
	}
	m := int64(1)<<(n-1) - 1
	s, at := Split(w, n)
	unit := math.Sqrt(float64(2 * m * m))
	for i, j := 0, 0; i < 4; i++ {
		if i != at {
			q[i] = float32(float64(s[j]) / unit)
			j++
		}
	}
	q[at] = float32(math.Sqrt(float64(2*m*m-s[0]*s[0]-s[1]*s[1]-s[2]*s[2])) / unit)
}

// Turn returns the steps of a word that is not 0 in a form that leaves out component at and not the
// largest one. It is the same rotation, with component at positive.
func Turn(w uint64, n, at int) [3]int64 {
	s, largest := Split(w, n)
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

// root returns the square root of v, rounded down, or 0 if v is negative. v is below 2^52, so a
// float is exact.
func root(v int64) int64 { return int64(math.Sqrt(float64(max(v, 0)))) }

// Slerp stores the rotation at the part t of the way from a to b, the short way round. It reports
// false if a or b was never set.
func Slerp(q *[4]float32, a, b uint64, n int, t float64) bool {
	if a == 0 || b == 0 {
		return false
	}
	var x, y [4]float32
	Unpack(&x, a, n)
	Unpack(&y, b, n)
	var dot float64
	for i := range x {
		dot += float64(x[i]) * float64(y[i])
	}
	sign := 1.0 // q and -q are the same rotation: take the nearer one.
	if dot < 0 {
		dot, sign = -dot, -1
	}
	from, to := 1-t, t
	if dot < nearlyOne {
		angle := math.Acos(dot)
		sin := math.Sin(angle)
		from, to = math.Sin(from*angle)/sin, math.Sin(to*angle)/sin
	}
	to *= sign
	var r [4]float64
	var norm float64
	for i := range r {
		r[i] = float64(float64(x[i])*from) + float64(float64(y[i])*to)
		norm += float64(r[i] * r[i])
	}
	norm = math.Sqrt(norm)
	for i := range r {
		q[i] = float32(r[i] / norm)
	}
	return true
}

// nearlyOne is the cosine of an angle at which arc and chord differ by less than the precision of a
// float32.
const nearlyOne = 1 - 1e-9
