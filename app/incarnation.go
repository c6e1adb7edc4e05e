package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// incarnations is the distance between the room numbers of two processes: a process may open so
// many rooms, 4 billion.
const incarnations = 1 << 32

// incarnation returns the number of the server's default room, see netloop.Config: the wall clock
// in microseconds, or, with a state directory, a larger number if an earlier process has used it.
func (c *configuration) incarnation(environ []string, wall time.Time) (uint64, error) {
	dir := c.options.stateDir(environ)
	if dir == "" {
		return 0, nil // netloop takes the wall clock.
	}
	first, err := keptIncarnation(dir, uint64(max(wall.UnixMicro(), 1)))
	if err != nil {
		return 0, c.bad("state-dir", dir, err.Error())
	}
	return first, nil
}

// keptIncarnation returns a number that is at least least, and above all numbers of earlier
// processes with this directory. It stores a bound of the numbers of this process before it
// returns, so no number is used twice, even after a crash. Its errors name a remedy.
func keptIncarnation(dir string, least uint64) (first uint64, err error) {
	if err := makeStateDir(dir); err != nil {
		return 0, err
	}
	path := filepath.Join(dir, "incarnation")
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		first = least
	case err != nil:
		return 0, fmt.Errorf("use a directory that may be read: %w", err)
	default:
		bound, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 62)
		if err != nil {
			return 0, fmt.Errorf("%s is damaged: write a number into it that is above all incarnations in the game's store", path)
		}
		first = max(least, bound)
	}
	if err := replaceFile(path, fmt.Appendf(nil, "%d\n", first+incarnations)); err != nil {
		return 0, fmt.Errorf("use a writable directory: %w", err)
	}
	return first, nil
}

// replaceFile replaces a file's content atomically: a crash leaves the old or the new content.
func replaceFile(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename survive a power cut, if the system supports it.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = dir.Sync() // Some file systems have no such call for a directory.
	return dir.Close()
}
