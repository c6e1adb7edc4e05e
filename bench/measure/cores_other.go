//go:build !linux

package measure

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

var errSystem = errors.New("programs are pinned to cores on Linux alone")

// TwoCores returns an error.
func TwoCores() (server, player int, err error) { return 0, 0, errSystem }

// Pinned returns a function that returns an error.
func Pinned(int) func(*exec.Cmd) error { return func(*exec.Cmd) error { return errSystem } }

// CPUTime returns an error.
func CPUTime(int) (time.Duration, error) { return 0, errSystem }

// Now returns the time since the program's start.
func Now() time.Duration { return time.Since(start) }

var start = time.Now()

// The signals of a measurement, for which other systems have none.
var Stall, Pause, Resume = os.Kill, os.Kill, os.Kill
