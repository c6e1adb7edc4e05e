package tui

import (
	"testing"
	"time"
)

// Numbers have the form of the page.
func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0": Span3(0), "154 ns": Span3(154), "7.02 µs": Span3(7020), "1.00 ms": Span3(time.Millisecond), "-3.00 ms": Span3(-3 * time.Millisecond), "59 s": Age(59 * time.Second),
		"1 min 2 s": Age(62 * time.Second), "3 h 0 min": Age(3 * time.Hour), "2 d 1 h": Age(49 * time.Hour), "1 234 567": Count(1234567), "999": Count(999), "-1 000": Count(-1000.0),
		"999 B": Size(999), "1.00 kB": Size(1000), "2.50 MB": Size(2.5e6), "3.00 GB": Size(3e9), "1 500": Rate(1500), "0.5 %": Percent(0.005), "81 %": Percent(0.81),
		"1 room": Plural(1, "room"), "1958": Millis(1958 * time.Millisecond), "325.5": Millis(325500 * time.Microsecond), "0.21": Millis(210 * time.Microsecond),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Numbers change their unit where the smaller unit would have four digits.
func TestNumbersAtTheBoundsOfUnits(t *testing.T) {
	for want, got := range map[string]string{
		"999 ns": Span3(999), "1.00 µs": Span3(1000), "999 µs": Span3(999_499), "1.00 ms": Span3(999_500), "999 ms": Span3(999_499_999), "1.0 s": Span3(999_500_000),
		"9.99": Digits(9.994), "10.0": Digits(9.996), "99.9": Digits(99.94), "100": Digits(99.96), "9.9 %": Percent(0.099), "10 %": Percent(0.0995),
		"10.0 kB": Size(9995), "1.00 MB ": Size(999.5e3) + " ", "1.00 GB ": Size(999.5e6) + " ", "100 B": Size(100), "99.9 B": Digits(99.949) + " B", "100 MB": Size(99.95e6),
		"9.99 ms": Millis(9_994*time.Microsecond) + " ms", "10.0 ms": Millis(9_995*time.Microsecond) + " ms", "999.4": Millis(999_400 * time.Microsecond), "1000": Millis(999_500 * time.Microsecond),
		"1.00 kB": Size(1000), "999 kB": Size(999.4e3), "1.00 MB": Size(999.6e3), "999 MB": Size(999.4e6), "1.00 GB": Size(999.6e6), "999": Rate(999), "1 000": Rate(1000), "0": Rate(0),
		"10 s": Age(10 * time.Second), "1 min 0 s": Age(time.Minute), "1 h 0 min": Age(time.Hour), "1 d 0 h": Age(24 * time.Hour),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
