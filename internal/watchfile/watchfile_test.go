package watchfile

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the wait for a report: far more than it takes.
const patience = 20 * time.Second

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Each way of changing a file's content is reported.
func TestChangesAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		path        string // below a folder of the test
		set, change func(t *testing.T, dir string)
	}{
		"written in place": {"cert",
			func(t *testing.T, dir string) { write(t, dir+"/cert", "old") },
			func(t *testing.T, dir string) { write(t, dir+"/cert", "new") }},
		"renamed into place": {"cert",
			func(t *testing.T, dir string) { write(t, dir+"/cert", "old"); write(t, dir+"/temp", "new") },
			func(t *testing.T, dir string) { must(t, os.Rename(dir+"/temp", dir+"/cert")) }},
		"it appears": {"cert",
			func(*testing.T, string) {},
			func(t *testing.T, dir string) { write(t, dir+"/cert", "") }},
		"it goes": {"cert",
			func(t *testing.T, dir string) { write(t, dir+"/cert", "old") },
			func(t *testing.T, dir string) { must(t, os.Remove(dir+"/cert")) }},
		"a link beside it points elsewhere, as in a Kubernetes volume": {"cert",
			func(t *testing.T, dir string) {
				for _, version := range []string{"..1", "..2"} {
					must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
					write(t, filepath.Join(dir, version, "cert"), version)
				}
				must(t, os.Symlink("..1", dir+"/..data"))
				must(t, os.Symlink("..data/cert", dir+"/cert"))
			},
			func(t *testing.T, dir string) {
				must(t, os.Symlink("..2", dir+"/..new"))
				must(t, os.Rename(dir+"/..new", dir+"/..data"))
			}},
		"a file comes into a folder": {"keys",
			func(t *testing.T, dir string) { must(t, os.Mkdir(dir+"/keys", 0o700)); write(t, dir+"/keys/a", "a") },
			func(t *testing.T, dir string) { write(t, dir+"/keys/b", "b") }},
		"a file of a folder has another name": {"keys",
			func(t *testing.T, dir string) { must(t, os.Mkdir(dir+"/keys", 0o700)); write(t, dir+"/keys/a", "a") },
			func(t *testing.T, dir string) { must(t, os.Rename(dir+"/keys/a", dir+"/keys/b")) }},
		"its folder is replaced": {"now/cert",
			func(t *testing.T, dir string) {
				for _, version := range []string{"now", "next"} {
					must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
					write(t, filepath.Join(dir, version, "cert"), version)
				}
			},
			func(t *testing.T, dir string) {
				must(t, os.Rename(dir+"/now", dir+"/old"))
				must(t, os.Rename(dir+"/next", dir+"/now"))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.set(t, dir)
			told := make(chan struct{}, 16)
			w := Watch(func() { told <- struct{}{} }, filepath.Join(dir, c.path))
			defer w.Close()
			c.change(t, dir)
			select {
			case <-told:
			case <-time.After(patience):
				t.Error("no change was reported")
			}
		})
	}
}

// A change is reported once, when two reads have found the same content.
func TestAChangeIsReportedWhenItIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "cert")
		write(t, path, "old")
		var n atomic.Int64
		w := Watch(func() { n.Add(1) }, path)
		time.Sleep(time.Second / 2) // The reads come between the seconds of the test.
		for i, c := range []struct {
			text string
			want int64
		}{{"old", 0}, {"a", 0}, {"ab", 0}, {"abc", 0}, {"abc", 1}, {"abc", 1}, {"old", 1}, {"old", 2}, {"b", 2}, {"old", 2}, {"old", 2}} {
			write(t, path, c.text)
			time.Sleep(time.Second)
			synctest.Wait()
			if n.Load() != c.want {
				t.Errorf("read %d: reported %d times, want %d", i, n.Load(), c.want)
			}
		}
		w.Close()
		w.Close()
		write(t, path, "later")
		time.Sleep(time.Hour)
		if n.Load() != 2 {
			t.Errorf("reported %d times after Close", n.Load()-2)
		}
	})
}

// Close waits for a running call.
func TestCloseWaitsForACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "cert")
		may, closed := make(chan struct{}), false
		w := Watch(func() { <-may }, path)
		write(t, path, "new")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		go func() { w.Close(); closed = true }()
		if synctest.Wait(); closed {
			t.Error("it does not wait")
		}
		close(may)
		if synctest.Wait(); !closed {
			t.Error("it waits for ever")
		}
	})
}

// Only a change of content is reported, not one of a file's time, of its neighbours, or of the
// bytes beyond maxBytes.
func TestOnlyChangesOfContentAreReported(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cert")
	write(t, path, strings.Repeat("x", 1<<20)+"old")
	w := &Watcher{paths: []string{path, dir + "/missing"}}
	before := w.content()
	write(t, path, strings.Repeat("x", 1<<20)+"new")
	must(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	write(t, dir+"/other", "new")
	if w.content() != before {
		t.Error("the time of a file, a byte beyond the first MiB, or another file counts")
	}
	must(t, os.Mkdir(dir+"/missing", 0o700))
	if w.content() == before {
		t.Error("a path that appears as an empty folder does not count")
	}
}

// Of a folder with too many files only the first ones are read.
func TestTheFilesOfAFolderAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 1025 {
		write(t, filepath.Join(dir, strconv.Itoa(i)), "")
	}
	if all := names(dir); len(all) != 1024 || !slices.IsSorted(all) {
		t.Errorf("%d files are read, in order: %v", len(all), slices.IsSorted(all))
	}
	if got := names(dir + "/missing"); got != nil {
		t.Errorf("a missing folder has the files %q", got)
	}
}

// Different names and contents have different hashes: the end of one file cannot be mistaken for
// the start of the next.
func TestDifferentContentsHaveDifferentHashes(t *testing.T) {
	dir := t.TempDir()
	w := &Watcher{paths: []string{dir}}
	write(t, dir+"/a", "")
	write(t, dir+"/b", "x")
	one := w.content()
	write(t, dir+"/a", "x")
	write(t, dir+"/b", "")
	if w.content() == one {
		t.Error("two different folders have one hash")
	}
}
