//go:build !linux

package clock

import "time"

// systemWaits are empty on systems other than Linux.
var systemWaits []waiting

func processTime() time.Duration { return 0 }
