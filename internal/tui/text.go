package tui

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Numbers for people, as in page/src/format.ts.

// Digits formats a number with three digits.
func Digits(x float64) string {
	places := 0
	switch a := math.Abs(x); {
	case a < 9.995:
		places = 2
	case a < 99.95:
		places = 1
	}
	return strconv.FormatFloat(x, 'f', places, 64)
}

// Span3 formats a duration with three digits.
func Span3(d time.Duration) string {
	switch a := d.Abs(); {
	case a == 0:
		return "0"
	case a < time.Microsecond:
		return Digits(float64(d)) + " ns"
	case a < 999_500:
		return Digits(float64(d)/1e3) + " µs"
	case a < 999_500_000:
		return Digits(float64(d)/1e6) + " ms"
	}
	return Age(d)
}

// Millis formats a duration as milliseconds, for columns.
func Millis(d time.Duration) string {
	places := 1
	switch a := d.Abs(); {
	case a < 9_995*time.Microsecond:
		places = 2
	case a >= 999_500*time.Microsecond:
		places = 0
	}
	return strconv.FormatFloat(float64(d)/1e6, 'f', places, 64)
}

// Age formats a duration of a second or more.
func Age(d time.Duration) string {
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

// Count formats a whole number with spaces between the thousands.
func Count[T int | uint64 | float64](n T) string {
	text := strconv.FormatFloat(float64(n), 'f', 0, 64)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// Size formats a number of bytes.
func Size(n float64) string {
	switch {
	case n < 1000:
		return strconv.FormatFloat(n, 'f', 0, 64) + " B"
	case n < 999.5e3:
		return Digits(n/1e3) + " kB"
	case n < 999.5e6:
		return Digits(n/1e6) + " MB"
	}
	return Digits(n/1e9) + " GB"
}

// Rate formats a number per second.
func Rate(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 1000:
		return Digits(x)
	}
	return Count(x)
}

// Percent formats a share.
func Percent(share float64) string {
	if share < 0.0995 {
		return fmt.Sprintf("%.1f %%", share*100)
	}
	return fmt.Sprintf("%.0f %%", share*100)
}

// Plural returns a number with its noun.
func Plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Count(n) + " " + noun
}
