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

// patience bounds the wait for events: far more than they take.
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
			if !w.follow() {
				t.Fatal("the system has no events here")
			}
			c.change(t, dir)
			select {
			case <-told:
			case <-time.After(patience):
				t.Error("no change was reported")
			}
		})
	}
}

// alone returns a watcher without events; with told, a watcher that expects some first.
func alone(told bool, changed func(), paths ...string) *Watcher {
	w := &Watcher{paths: paths, changed: changed, done: make(chan struct{})}
	w.seen = w.content()
	w.running.Go(func() { w.run(told) })
	return w
}

// Without events a change is detected by polling, and no change is reported twice.
func TestWithoutEventsFilesArePolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "cert")
		write(t, path, "old")
		var n atomic.Int64
		w := alone(false, func() { n.Add(1) }, path)
		for i, want := range []int64{0, 1, 1, 2} {
			if want != n.Load() {
				write(t, path, strconv.FormatInt(want, 10))
			}
			before := n.Load()
			time.Sleep(5*time.Second - 1)
			synctest.Wait()
			if n.Load() != before {
				t.Errorf("look %d: told before the time", i)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if n.Load() != want {
				t.Errorf("look %d: told %d times, want %d", i, n.Load(), want)
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

// With events files are polled too, only less often.
func TestWithEventsFilesArePolledToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "cert")
		var n atomic.Int64
		w := alone(true, func() { n.Add(1) }, path)
		defer w.Close()
		write(t, path, "new")
		time.Sleep(pollWatched - time.Second)
		synctest.Wait()
		if n.Load() != 0 {
			t.Error("reported too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n.Load() != 1 {
			t.Errorf("told %d times", n.Load())
		}
		write(t, path, "newer") // There are no events, as the first look has found.
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n.Load() != 2 {
			t.Errorf("told %d times when there are no events any more", n.Load())
		}
	})
}

// Close waits for a running call.
func TestCloseWaitsForACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "cert")
		may, closed := make(chan struct{}), false
		w := alone(false, func() { <-may }, path)
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

// Events of one folder are not enough, if another one cannot be watched.
func TestAFolderThatIsMissingIsLookedAt(t *testing.T) {
	dir := t.TempDir()
	w := Watch(func() {}, filepath.Join(dir, "missing", "cert"), filepath.Join(dir, "cert"), dir)
	defer w.Close()
	if w.follow() {
		t.Error("a missing folder has events")
	}
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

// The files are read a quarter of a second after the first event, and not at all after Close.
func TestFilesAreReadAfterTheySettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watcher{done: make(chan struct{})}
		for _, want := range []time.Duration{250 * time.Millisecond, 0} {
			begin := time.Now()
			if w.awaitSettle(nil, nil); time.Since(begin) != want {
				t.Errorf("waited for %v, want %v", time.Since(begin), want)
			}
			if want > 0 {
				close(w.done)
			}
		}
	})
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

// Several events within settle cause one read.
func TestSeveralEventsCauseOneRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cert")
	told := make(chan struct{}, 1024)
	w := Watch(func() { told <- struct{}{} }, path)
	defer w.Close()
	const writes = 200
	for i := range writes {
		write(t, path, strconv.Itoa(i))
	}
	select {
	case <-told:
	case <-time.After(patience):
		t.Fatal("no change was reported")
	}
	w.Close()
	if n := len(told); n > writes/4 {
		t.Errorf("reported %d times for %d writes", n+1, writes)
	}
}
