package loop

import (
	"fmt"
	"math/bits"
	"sort"
	"time"
)

const (
	// MaxScale limits the ratio of scaled time to game time: at a higher ratio, systems that catch
	// up would only drop calls.
	MaxScale = 16
	// MaxScaleDen limits the denominator of a Scale. A millionth is finer than any game can show,
	// and many changes of scale remain exact: see Scale.
	MaxScaleDen = 1_000_000
)

// Scale maps a time to a time that runs Num/Den times as fast, in a straight line:
//
//	At(t) = ⌊To + Frac/2⁶⁴ + (t − From) · Num/Den⌋ ns, and ⌊To⌋ up to From
//
// A change of scale begins another line at the end of the last one, with its fraction of a
// nanosecond, rounded up to a multiple of 2⁻⁶⁴. After k changes the line is too high by less than
// k·2⁻⁶⁴ ns. The true fractions are multiples of 1/L, L being the least common multiple of the
// denominators, so that At is exactly the floor of the true value while (k+1)·L ≤ 2⁶⁴, and one
// nanosecond above it at most for all k below 2⁶⁴.
type Scale struct {
	Num, Den uint64
	From, To time.Duration
	Frac     uint64
}

// Unscaled is the Scale of a loop without SetScale or Rescale.
var Unscaled = Scale{Num: 1, Den: 1}

// Speed returns the speed, such as "1/2", or "" at the speed of game time.
func (s Scale) Speed() string {
	if s.Num == s.Den {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Num, s.Den)
}

// CheckScale returns an error unless num/den is a scale: from 0 to MaxScale, with
// a denominator from 1 to MaxScaleDen.
func CheckScale(num, den uint64) error {
	if den == 0 || den > MaxScaleDen || num > MaxScale*den {
		return fmt.Errorf("a time scale of %d/%d: use 0 to %d, with a denominator from 1 to %d", num, den, MaxScale, MaxScaleDen)
	}
	return nil
}

// At returns the scaled time at t. Beyond 292 years it is constant.
func (s Scale) At(t time.Duration) time.Duration {
	at, _ := s.at(t)
	return at
}

// at returns the scaled time with its fraction.
func (s Scale) at(t time.Duration) (time.Duration, uint64) {
	past := max(t-s.From, 0)
	if s.Num == s.Den { // This is nearly always the case, and needs no division.
		return later(s.To, past), s.Frac
	}
	ns, rem := mulDiv(uint64(past), s.Num, s.Den)
	frac, more := bits.Div64(rem, 0, s.Den) // rem is less than Den.
	if more > 0 {
		frac++
	}
	frac, carry := bits.Add64(frac, s.Frac, 0)
	return later(s.To, later(clampDuration(ns), time.Duration(carry))), frac
}

// Until returns the first time at which the scaled time is at least at, or never. It is not
// earlier than From.
func (s Scale) Until(at time.Duration) time.Duration {
	if at <= s.To {
		return s.From
	}
	if s.Num == 0 || at == never {
		return never
	}
	most, rem := mulDiv(uint64(at-s.To), s.Den, s.Num) // without the current fraction
	if rem > 0 {
		most, _ = bits.Add64(most, 1, 0)
	}
	to := later(s.From, clampDuration(most))
	if to == never {
		return never
	}
	less := clampDuration(1 + s.Den/s.Num) // the largest error of to
	from := max(s.From, to-less)
	return from + time.Duration(sort.Search(int(to-from), func(i int) bool { return s.At(from+time.Duration(i)) >= at }))
}

// turned returns the Scale that continues at t with another speed.
func (s Scale) turned(t time.Duration, num, den uint64) Scale {
	to, frac := s.at(t)
	return Scale{Num: num, Den: den, From: t, To: to, Frac: frac}
}

// Rescale makes scaled time run num/den times as fast as game time, from the end of the current or
// last tick on, so that all systems of a tick see the same speed. It returns the line that begins
// there. If it is called several times in a tick, the last call applies. num and den must pass
// CheckScale.
func (l *Loop[C]) Rescale(num, den uint64) Scale {
	a, b := num, den
	for b > 0 {
		a, b = b, a%b
	}
	num, den = num/a, den/a
	l.coming = l.scale
	if num != l.scale.Num || den != l.scale.Den {
		l.coming = l.scale.turned(l.now.GameTime, num, den)
	}
	return l.coming
}

// SetScale sets, from the next Step on, a line that Rescale of another loop has returned, such as
// the loop of a server. Periods and deltas continue without a jump.
func (l *Loop[C]) SetScale(s Scale) { l.coming = s }

// Scale returns the line of the next tick.
func (l *Loop[C]) Scale() Scale { return l.coming }

// beginScale lets a requested scale take effect at the start of a tick.
func (l *Loop[C]) beginScale() {
	if l.coming == l.scale {
		return
	}
	l.scale = l.coming
	for kind := range l.kinds {
		k := &l.kinds[kind]
		k.flow = k.flow.turned(l.flows[kind].now, l.scale.Num, l.scale.Den)
		k.even = k.even.turned(k.sum, l.scale.Num, l.scale.Den)
	}
}

// scaling scales the time of one kind of pass.
type scaling struct {
	flow Scale // line of the flow
	even Scale // line of sum
	sum  time.Duration
	done time.Duration // even.At(sum)
}

// advance adds a delta to the sum of deltas of systems without a period, and returns its scaled
// length. The remainders are carried over, so that the lengths add up to the scaled sum.
func (k *scaling) advance(delta time.Duration) time.Duration {
	before := k.done
	k.sum += delta
	k.done = k.even.At(k.sum)
	return k.done - before
}
