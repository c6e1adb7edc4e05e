package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// With a state directory each process has larger numbers for its rooms than all before, also if the
// wall clock was set back.
func TestIncarnationsGrowFromProcessToProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	bound := uint64(0)
	for i, wall := range []time.Time{now, now.Add(time.Hour), now.Add(time.Hour), now.Add(-24 * time.Hour), time.Unix(-5, 0), now.Add(72 * time.Hour)} {
		c := &configuration{options: &options{StateDir: dir}}
		first, err := c.incarnation(nil, wall)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(bound, uint64(max(wall.UnixMicro(), 0))); first != want {
			t.Errorf("process %d has %d, want %d", i, first, want)
		}
		bound = first + 1<<32 // A process may open 4 billion rooms.
	}
}

// Without a state directory netloop takes the wall clock, and a directory that cannot be used is an
// error with a remedy.
func TestIncarnationsNeedAStateDirectoryThatWorks(t *testing.T) {
	c := &configuration{options: &options{}}
	if first, err := c.incarnation(nil, time.Now()); first != 0 || err != nil {
		t.Errorf("without a directory: %d, %v", first, err)
	}
	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, "incarnation"), []byte("7seven"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{damaged: "is damaged", file: "can be created"}
	if runtime.GOOS != "windows" && os.Getuid() != 0 {
		readOnly := t.TempDir()
		if err := os.Chmod(readOnly, 0o500); err != nil {
			t.Fatal(err)
		}
		cases[readOnly] = "writable"
	}
	for dir, want := range cases {
		c := &configuration{options: &options{StateDir: dir}}
		if _, err := c.incarnation(nil, time.Now()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "state-dir") {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}
