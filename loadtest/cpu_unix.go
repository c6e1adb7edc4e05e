//go:build unix

package loadtest

import "golang.org/x/sys/unix"

// ownCPU returns the CPU seconds that this process has used.
func ownCPU() *float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return nil
	}
	return new(float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9)
}
