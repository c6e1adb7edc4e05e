package watchfile

import (
	"time"

	"github.com/netloop/netloop/internal/limits"
)

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name:    "files that are read again when they change",
			Default: limits.Say("%v and %v files of each path", limits.Bytes(maxBytes), maxEntries),
			Full:    "further bytes count by their number",
		},
		{
			Name: "… looks at them", Default: int(time.Second / settle), Unit: "a second", Full: "they are looked at a moment later",
		},
	}}
}
