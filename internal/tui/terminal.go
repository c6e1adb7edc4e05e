package tui

import (
	"os"
	"slices"
)

// IsTerminal reports whether a stream is a terminal with a cursor that can be moved.
func IsTerminal(file *os.File, env []string) bool {
	if slices.Contains(env, "TERM=dumb") {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
