//go:build !race

package seeds

// Race reports whether the race detector is on.
const Race = false
