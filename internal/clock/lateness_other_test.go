//go:build !linux

package clock

import "time"

// systemWaits are those of Linux only.
var systemWaits []waiting

func processTime() time.Duration { return 0 }
