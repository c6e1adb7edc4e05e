// Package limits defines the form in which the packages of netloop declare their bounds. Each
// package with bounds has a function Bounds that returns their rows, which refer to the constants
// themselves, so that a number in the documentation cannot drift from the effective one. The test
// of this package assembles the rows into docs/LIMITS.md; make limits writes it anew.
//
// The package imports no other package of netloop, so that the packages of the core may import it.
package limits

//go:generate go test -run ^TestEveryLimitIsDocumented$ -rewrite

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Part is a stage on a packet's path: a section of the page.
type Part uint8

// The parts, in the order of that path.
const (
	Door      Part = iota // admission
	Session               // the messages of one client, sent and under way
	Queues                // messages that wait for the tick, and the share that one tick runs
	State                 // objects, and their state that is sent to clients
	Answers               // data that waits to be sent to a client
	Operation             // monitoring
	Client                // the bounds of a client of the Go package
	NumParts
)

// Table contains the rows of one package, by part.
type Table map[Part][]Limit

// Limit is a row of docs/LIMITS.md.
type Limit struct {
	// Name describes the limited quantity.
	Name string
	// Default is the bound, unless it is configured: an int, a float64, [Bytes], a time.Duration,
	// or several in a [Text].
	Default any
	// Unit names the counted items. Bytes and durations have their unit beside the number.
	Unit string
	// Config names the settings that change the bound, separated by commas: fields and methods by
	// their type, such as RoomSpec.MaxClients, options by their name, such as CatchUp, and flags of
	// the server, such as --max-clients. Empty is a fixed bound.
	Config string
	// Counter names the series that count violations of the bound, separated by commas:
	// queue/reason of netloop_queue_drops_total, or another series. Empty is none.
	Counter string
	// Full describes the behaviour at the bound.
	Full string
}

// Bytes is a bound in bytes.
type Bytes int

// Text is a bound in words.
type Text string

// Say formats a Text of several bounds. Each %v is one.
func Say(format string, bounds ...any) Text {
	written := make([]any, len(bounds))
	for i, b := range bounds {
		written[i] = Written(b)
	}
	return Text(fmt.Sprintf(format, written...))
}

// Written formats a bound for a page: 1 024, 64 KiB, 50 ms.
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

// writtenTime formats a time in the largest unit of which it is a multiple.
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
