package watchfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Polling the paths leaves no file and no folder open.
func TestPollingLeavesNoFileOpen(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "cert"), "new")
	w := &Watcher{paths: []string{dir, filepath.Join(dir, "cert")}}
	w.content()
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, fd := range open {
		if path, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(path, dir) {
			t.Errorf("%s is open", path)
		}
	}
}
