package connlimit

import "golang.org/x/sys/unix"

// Files returns the number of files that this process may open.
func Files() (uint64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return limit.Cur, err
}
