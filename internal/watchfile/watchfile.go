package watchfile

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is the time from the first event until the files are read: a program that renews a
	// certificate and its key writes both within it.
	settle = 250 * time.Millisecond
	// pollWatched is the interval at which the files are read while there are no events, on a
	// system that sends them: a symbolic link further up the path may have changed, for which no
	// system sends an event.
	pollWatched = time.Minute
	// pollAlone is the interval at which the files are read if the system sends no events.
	pollAlone = 5 * time.Second

	// maxBytes and maxEntries bound the reads of each file and folder, so that a wrong path does
	// not take much memory or time. Beyond maxBytes, a change is noticed only by a file's size.
	maxBytes   = 1 << 20
	maxEntries = 1024
)

// Watcher watches some files until Close.
type Watcher struct {
	paths   []string
	changed func()
	notify  *fsnotify.Watcher // nil if the system has none
	seen    [sha256.Size]byte // belongs to run
	done    chan struct{}
	running sync.WaitGroup
	once    sync.Once
}

// Watch calls changed, one call at a time and on a goroutine of its own, whenever the content of a
// file changes, a file appears or disappears, or a folder's list of files changes. A path need not
// exist yet. Watch first, then read: changes in between are reported.
func Watch(changed func(), paths ...string) *Watcher {
	w := &Watcher{paths: slices.Clone(paths), changed: changed, done: make(chan struct{})}
	w.notify, _ = fsnotify.NewWatcher() // Without one only the timer triggers reads.
	told := w.follow()
	w.seen = w.content()
	w.running.Go(func() { w.run(told) })
	return w
}

// Close ends the watch, and waits for a running call of changed; changed itself must not call it.
// It may be called again.
func (w *Watcher) Close() {
	w.once.Do(func() { close(w.done) })
	w.running.Wait()
	if w.notify != nil {
		_ = w.notify.Close() // No event is needed any more.
	}
}

// run waits for events or the timer, and reads the files.
func (w *Watcher) run(told bool) {
	events, failures := w.channels()
	for {
		period := pollAlone
		if told {
			period = pollWatched
		}
		select {
		case <-events:
			w.awaitSettle(events, failures)
		case <-failures: //nolint:errcheck // Events were lost: read the files.
			w.awaitSettle(events, failures)
		case <-time.After(period):
		case <-w.done:
			return
		}
		told = w.follow()
		if now := w.content(); now != w.seen {
			w.seen = now
			w.changed()
		}
	}
}

// channels returns the channels of events and errors, nil without a notifier.
func (w *Watcher) channels() (<-chan fsnotify.Event, <-chan error) {
	if w.notify == nil {
		return nil, nil
	}
	return w.notify.Events, w.notify.Errors
}

// awaitSettle waits for settle, so that writers finish, and drops the events meanwhile.
func (w *Watcher) awaitSettle(events <-chan fsnotify.Event, failures <-chan error) {
	over := time.After(settle)
	for {
		select {
		case <-events:
		case <-failures: //nolint:errcheck // The files are read anyway.
		case <-over:
			return
		case <-w.done:
			return
		}
	}
}

// follow asks for events of the folders that contain the paths, and of paths that are folders.
// Folders may be replaced, so it asks again each time. It reports whether the system sends events
// of all of them.
func (w *Watcher) follow() bool {
	if w.notify == nil {
		return false
	}
	all := true
	for _, path := range w.paths {
		all = w.notify.Add(filepath.Dir(path)) == nil && all
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			all = w.notify.Add(path) == nil && all
		}
	}
	return all
}

// content returns a hash of the files' contents.
func (w *Watcher) content() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, path := range w.paths {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			addFile(h, path)
			continue
		}
		for _, name := range names(path) {
			addFile(h, filepath.Join(path, name))
		}
	}
	h.Sum(sum[:0])
	return sum
}

// names returns the names in a folder, sorted.
func names(folder string) []string {
	d, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }() // It was only read.
	all, _ := d.Readdirnames(maxEntries)
	slices.Sort(all)
	return all
}

// addFile hashes a file's name, its size and its content. Only regular files are read: reading
// others, such as pipes, would block.
func addFile(h hash.Hash, path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		fmt.Fprintf(h, "%q is not there\n", path)
		return
	}
	fmt.Fprintf(h, "%q %d\n", path, info.Size())
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // It was only read.
	_, _ = io.CopyN(h, f, maxBytes)
}
