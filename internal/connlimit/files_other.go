//go:build !linux

package connlimit

import "errors"

// Files is how many files this process may open: not known here.
func Files() (uint64, error) { return 0, errors.ErrUnsupported }
