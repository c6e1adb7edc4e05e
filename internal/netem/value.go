package netem

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The parsers of single values. Their errors continue a sentence that begins with the value: "9h"
// is not ….

func duration(text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("is not a time from %v to %v", least, most)
	}
	return d, nil
}

// shortDuration formats a duration for time.ParseDuration, empty for 0.
func shortDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// portion reads a share: 5% or 0.05.
func portion(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if isPercent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, errors.New("is not a share from 0% to 100%")
	}
	return f + 0, nil // The sum has no negative zero.
}

// percent formats a share in the shortest form that portion reads as the same value, empty for 0.
func percent(f float64) string {
	if f == 0 {
		return ""
	}
	const digits = 6
	text := strconv.FormatFloat(f*100, 'g', digits, 64) + "%"
	if back, err := portion(text); err == nil && back == f {
		return text
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// units of a rate, the largest first.
var units = []struct {
	name string
	size int
}{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}}

const (
	minRate = 1e3 // bit/s
	maxRate = 1e9
)

// bitRate reads a rate such as 100kbit/s or 1.5Mbit/s, in bit/s.
func bitRate(text string) (int, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(number, 64)
		if f *= float64(u.size); err == nil && f >= minRate && f <= maxRate {
			return int(math.Round(f)), nil
		}
		break
	}
	return 0, errors.New("is not a rate from 1kbit/s to 1Gbit/s")
}

// shortRate formats a rate in the largest unit of which it is a multiple, empty for 0.
func shortRate(rate int) string {
	for _, u := range units {
		if rate > 0 && rate%u.size == 0 {
			return strconv.Itoa(rate/u.size) + u.name
		}
	}
	return ""
}

// sizes lists the units in which a buffer's size can be written, and the bytes of each. The longest
// name is first, because B is the end of every other name.
var sizes = []struct {
	name string
	size float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"kB", 1e3}, {"MB", 1e6}, {"B", 1}}

// queue reads the size of a router's buffer, as a time or in bytes, and returns the time in which
// the link sends it at rate, in bit/s.
func queue(text string, rate int) (time.Duration, error) {
	if rate == 0 {
		return 0, errors.New("is a buffer without a rate: give a rate too")
	}
	d, err := time.ParseDuration(text)
	for _, u := range sizes {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		var n float64
		if n, err = strconv.ParseFloat(number, 64); err == nil {
			// Above the allowed maximum a float may be infinite, which a Duration cannot hold.
			d = time.Duration(min(n*u.size*8/float64(rate), 2*maxDelay.Seconds()) * float64(time.Second))
		}
		break
	}
	if err != nil || d < time.Millisecond || d > maxDelay {
		return 0, fmt.Errorf("is not a time from 1ms to %v, or as many bytes as pass in it, such as 25kB", maxDelay)
	}
	return d, nil
}

// hole reads FOR@AT.
func hole(text string) (h Hole, err error) {
	length, at, _ := strings.Cut(text, "@")
	if h.For, err = duration(length, time.Millisecond, maxTime); err == nil {
		h.At, err = duration(at, 0, maxTime)
	}
	if err != nil {
		return Hole{}, errors.New("is not a length, an @ and a start, counted from a client's first datagram")
	}
	return h, nil
}
