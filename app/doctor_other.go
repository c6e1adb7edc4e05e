//go:build !linux

package app

import "errors"

// udpBuffers is supported on Linux only, as is its remedy.
func udpBuffers(int) (receive, send int, err error) { return 0, 0, errors.ErrUnsupported }

func clockSynchronised() (bool, error) { return false, errors.ErrUnsupported }
