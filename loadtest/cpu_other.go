//go:build !unix

package loadtest

// ownCPU returns nil: the CPU seconds of this process are unknown on this system.
func ownCPU() *float64 { return nil }
