package golden

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bytes is a bound in bytes.
type Bytes int

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
