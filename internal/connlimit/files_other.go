//go:build !linux

package connlimit

import "errors"

// Files returns an error: the number is not known on this system.
func Files() (uint64, error) { return 0, errors.ErrUnsupported }
