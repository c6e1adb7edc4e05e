// Package limits is how the packages of netloop say what they bound. Each that bounds something
// has a function Bounds with its rows, which refer to the constants themselves, so that a number
// in the documentation cannot drift from the one that acts. The test of this package assembles
// the rows to docs/LIMITS.md. It is written anew by make limits.
//
// It imports nothing of netloop, so that the packages of the core may import it.
package limits

//go:generate go test -run ^TestEveryLimitIsDocumented$ -rewrite

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Part is a part of the way that a packet goes: a section of the page.
type Part uint8

// The parts, in the order of the way.
const (
	Door      Part = iota // who gets in
	Session               // what one client may send, and have under way
	Queues                // what waits for the tick, and what of it one tick runs
	State                 // objects, and what clients are sent of them
	Answers               // what waits to leave for a client
	Operation             // what watches, and is watched
	Client                // what a client of the Go package bounds
	NumParts
)

// Table has the rows of one package, by part.
type Table map[Part][]Limit

// Limit is a row of docs/LIMITS.md.
type Limit struct {
	// Name says of what it is a limit.
	Name string
	// Default is the bound, unless it is configured: an int, a float64, [Bytes], a time.Duration,
	// or several in a [Text].
	Default any
	// Unit says what is counted. Bytes and durations have theirs beside the number.
	Unit string
	// Config names what changes the bound, separated by commas: fields and methods by their type,
	// such as RoomSpec.MaxClients, options by their name, such as CatchUp, and flags of the server,
	// such as --max-clients. Empty is a bound that is fixed.
	Config string
	// Counter names what counts that the bound was reached, separated by commas: queue/reason
	// of netloop_queue_drops_total, or another series. Empty is nothing.
	Counter string
	// Full says what happens then.
	Full string
}

// Bytes is a bound in bytes.
type Bytes int

// Text is a bound in words.
type Text string

// Say makes a Text of several bounds. Each %v is one.
func Say(format string, bounds ...any) Text {
	written := make([]any, len(bounds))
	for i, b := range bounds {
		written[i] = Written(b)
	}
	return Text(fmt.Sprintf(format, written...))
}

// Written is how a page writes a bound: 1 024, 64 KiB, 50 ms.
func Written(bound any) string {
	switch v := bound.(type) {
	case int:
		if v < 1000 {
			return strconv.Itoa(v)
		}
		return fmt.Sprintf("%s %03d", Written(v/1000), v%1000)
	case Bytes:
		unit := " bytes"
		for _, larger := range []string{" KiB", " MiB"} {
			if v%1024 == 0 {
				v, unit = v/1024, larger
			}
		}
		return Written(int(v)) + unit
	case time.Duration:
		return writtenTime(v)
	}
	return fmt.Sprint(bound)
}

// writtenTime is a time in the largest unit of which it is a multiple.
func writtenTime(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d%u.unit == 0 {
			return Written(int(d/u.unit)) + " " + u.name
		}
	}
	return strings.Replace(d.String(), "ns", " ns", 1)
}
