//go:build race

package seeds

// Race tells whether the race detector watches.
const Race = true
