package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/storetest"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, func(t *testing.T) persist.Store { return open(t, dir) })
}

// The name of a key's file never changes: a folder outlives its program.
func TestNamesOfFiles(t *testing.T) {
	s := &Store{dir: "d"}
	for key, want := range map[string]string{"az-09_": "_az-09_", "`{/:": "_%60%7B%2F%3A", "AZ é%": "_%41%5A%20%C3%A9%25", "": "_"} {
		if got := s.name(key); got != filepath.Join("d", want+".record") {
			t.Errorf("the file of %q is %s, want %s", key, got, want)
		}
	}
}

// A file that is no record is not overwritten, and a key that makes too long a name is refused.
func TestForeignFilesAreKept(t *testing.T) {
	s := open(t, t.TempDir())
	if err := os.WriteFile(s.name("a"), []byte("my notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), "a", 1, []byte("x")); err == nil || !strings.Contains(err.Error(), "not a record") {
		t.Errorf("Save: %v", err)
	}
	if b, _ := os.ReadFile(s.name("a")); string(b) != "my notes" {
		t.Errorf("the file has %q", b)
	}
	if err := s.Save(t.Context(), strings.Repeat("ä", 41), 1, nil); err == nil || !strings.Contains(err.Error(), "82 bytes") {
		t.Errorf("Save of a long key: %v", err)
	}
	if err := s.Save(t.Context(), strings.Repeat("Ä", 40), 1, []byte("x")); err != nil {
		t.Errorf("Save of the longest key: %v", err)
	}
}

func TestPrune(t *testing.T) {
	s := open(t, t.TempDir())
	for _, key := range []string{"old", "new"} {
		if err := s.Save(t.Context(), key, 1, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	// A killed process leaves the second one.
	other, left := filepath.Join(s.dir, "notes"), filepath.Join(s.dir, ".new-1")
	for _, name := range []string{s.name("old"), other, left} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	kept := s.name("kept") // A folder with a file cannot be deleted.
	if err := errors.Join(os.MkdirAll(filepath.Join(kept, "x"), 0o700), os.Chtimes(kept, time.Time{}, time.Now().Add(-2*time.Hour))); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := s.Prune(ended, time.Hour); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d records are deleted after the end of the context: %v", n, err)
	}
	if n, err := s.Prune(t.Context(), time.Hour); n != 2 || err != nil {
		t.Errorf("%d files are deleted, want 2: %v", n, err)
	}
	if b, err := s.Load(t.Context(), "new", 1); string(b) != "x" || err != nil {
		t.Errorf("the new record is %q: %v", b, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// kills is how often the writer of [TestAKilledWriterLeavesWholeRecords] is killed.
const kills = 20

// A process that is killed at any moment leaves a whole record: the last one that it reported, or
// the one after it.
func TestAKilledWriterLeavesWholeRecords(t *testing.T) {
	if dir := os.Getenv("NETLOOP_TEST_WRITES"); dir != "" {
		write(t, dir)
		return
	}
	dir, n := t.TempDir(), kills
	if os.Getenv("NETLOOP_VERIFY") != "" {
		n = 1000
	}
	for i := range n {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAKilledWriterLeavesWholeRecords$")
		cmd.Env = append(os.Environ(), "NETLOOP_TEST_WRITES="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var told strings.Builder
		buf := make([]byte, 256)
		for strings.Count(told.String(), "\n") <= i%7 { // A different moment each time.
			k, err := out.Read(buf)
			told.Write(buf[:k])
			if err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Process.Kill()
		for {
			k, err := out.Read(buf)
			told.Write(buf[:k])
			if err != nil {
				break
			}
		}
		_ = cmd.Wait()
		lines := strings.Split(told.String(), "\n")
		last, _ := strconv.Atoi(lines[len(lines)-2])
		s := open(t, dir)
		b, err := s.Load(t.Context(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		is, _, _ := strings.Cut(string(b), " ")
		if got, err := strconv.Atoi(is); err != nil || got < last || got > last+1 || len(b) != len(is)+recordSize {
			t.Fatalf("kill %d: the record is of write %q with %d bytes, and write %d was reported", i, is, len(b), last)
		}
	}
}

const recordSize = 1 << 16

// write stores one record after the other, and reports each.
func write(t *testing.T, dir string) {
	s := open(t, dir)
	for n := 1; ; n++ {
		if err := s.Save(t.Context(), "a", 1, []byte(strconv.Itoa(n)+" "+strings.Repeat("x", recordSize-1))); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stdout.WriteString(strconv.Itoa(n) + "\n"); err != nil {
			return
		}
	}
}

// A folder that cannot be used is an error of the call, not of a later one.
func TestAFolderThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	if err := os.Mkdir(s.name("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), "folder", 1, nil); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("Save over a folder: %v", err)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(t.Context(), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Prune: %v", err)
	}
	if err := s.write(s.name("a"), 1, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("write: %v", err)
	}
	if err := syncDir(s.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("syncDir: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil {
		t.Error("a file is opened as a folder")
	}
}

// A call waits for other goroutines and processes until its context ends, and leaves nothing
// locked.
func TestWaitingEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir) // as two processes
	unlock, err := a.lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Store{"a goroutine": a, "a process": b} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := s.Save(ctx, "k", 1, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("behind %s: %v", name, err)
		}
		cancel()
	}
	unlock()
	for _, s := range []*Store{a, b} {
		if err := s.Save(t.Context(), "k", 1, nil); err != nil {
			t.Error(err)
		}
	}
}
