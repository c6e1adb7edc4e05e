package term

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Numbers for people, as in page/src/format.ts.

// digits formats a number with three digits.
func digits(x float64) string {
	places := 0
	switch a := math.Abs(x); {
	case a < 9.995:
		places = 2
	case a < 99.95:
		places = 1
	}
	return strconv.FormatFloat(x, 'f', places, 64)
}

// span3 formats a duration with three digits.
func span3(d time.Duration) string {
	switch a := d.Abs(); {
	case a == 0:
		return "0"
	case a < time.Microsecond:
		return digits(float64(d)) + " ns"
	case a < 999_500:
		return digits(float64(d)/1e3) + " µs"
	case a < 999_500_000:
		return digits(float64(d)/1e6) + " ms"
	}
	return age(d)
}

// ms formats a duration as milliseconds, for columns.
func ms(d time.Duration) string {
	places := 1
	switch a := d.Abs(); {
	case a < 9_995*time.Microsecond:
		places = 2
	case a >= 999_500*time.Microsecond:
		places = 0
	}
	return strconv.FormatFloat(float64(d)/1e6, 'f', places, 64)
}

// age formats a duration of a second or more.
func age(d time.Duration) string {
	switch s := int(d.Seconds()); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%d d %d h", s/86400, s%86400/3600)
	}
}

// count formats a whole number with spaces between the thousands.
func count[T int | uint64 | float64](n T) string {
	text := strconv.FormatFloat(float64(n), 'f', 0, 64)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// size formats a number of bytes.
func size(n float64) string {
	switch {
	case n < 1000:
		return strconv.FormatFloat(n, 'f', 0, 64) + " B"
	case n < 999.5e3:
		return digits(n/1e3) + " kB"
	case n < 999.5e6:
		return digits(n/1e6) + " MB"
	}
	return digits(n/1e9) + " GB"
}

// rate formats a number per second.
func rate(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 1000:
		return digits(x)
	}
	return count(x)
}

// percent formats a share.
func percent(share float64) string {
	if share < 0.0995 {
		return fmt.Sprintf("%.1f %%", share*100)
	}
	return fmt.Sprintf("%.0f %%", share*100)
}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}
