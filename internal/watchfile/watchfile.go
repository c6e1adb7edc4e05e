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
	// settle is the time from the first sign of a change until the files are read: who
	// writes a certificate and its key writes both within it.
	settle = 250 * time.Millisecond
	// pollWatched is how often the files are read although nothing was told: a link to a
	// folder further up may have moved.
	pollWatched = time.Minute
	// pollAlone is that while nothing will be told.
	pollAlone = 5 * time.Second

	// maxBytes and maxEntries bound what is read of each file and folder, lest a wrong path
	// cost the server its memory or its time. What lies beyond counts by its size.
	maxBytes   = 1 << 20
	maxEntries = 1024
)

// Watcher looks at some files until Close.
type Watcher struct {
	paths   []string
	changed func()
	notify  *fsnotify.Watcher // nil where the system has none to give
	seen    [sha256.Size]byte // belongs to run
	done    chan struct{}
	running sync.WaitGroup
	once    sync.Once
}

// Watch calls changed, one call at a time and on a goroutine of its own, whenever the
// content of a file changes, a file comes or goes, or a folder has other files. A path may
// name nothing yet. Begin to watch, then read: what changes in between is told.
func Watch(changed func(), paths ...string) *Watcher {
	w := &Watcher{paths: slices.Clone(paths), changed: changed, done: make(chan struct{})}
	w.notify, _ = fsnotify.NewWatcher() // Without one the timer does it alone.
	told := w.follow()
	w.seen = w.content()
	w.running.Go(func() { w.run(told) })
	return w
}

// Close ends the watch, and waits for a call of changed that is under way; changed itself
// must not call it. It may be called again.
func (w *Watcher) Close() {
	w.once.Do(func() { close(w.done) })
	w.running.Wait()
	if w.notify != nil {
		_ = w.notify.Close() // There is nothing left to lose.
	}
}

// run waits for signs, and looks.
func (w *Watcher) run(told bool) {
	events, failures := w.signs()
	for {
		period := pollAlone
		if told {
			period = pollWatched
		}
		poll := time.NewTimer(period)
		select {
		case <-events:
			w.rest(events, failures)
		case <-failures: //nolint:errcheck // Events were lost, so anything may have happened.
			w.rest(events, failures)
		case <-poll.C:
		case <-w.done:
			poll.Stop()
			return
		}
		poll.Stop()
		told = w.follow()
		if now := w.content(); now != w.seen {
			w.seen = now
			w.changed()
		}
	}
}

// signs returns what the system tells. Channels that are nil never do.
func (w *Watcher) signs() (<-chan fsnotify.Event, <-chan error) {
	if w.notify == nil {
		return nil, nil
	}
	return w.notify.Events, w.notify.Errors
}

// rest lets writers finish, and forgets the signs that come meanwhile.
func (w *Watcher) rest(events <-chan fsnotify.Event, failures <-chan error) {
	over := time.NewTimer(settle)
	defer over.Stop()
	for {
		select {
		case <-events:
		case <-failures: //nolint:errcheck // The files are read in any case.
		case <-over.C:
			return
		case <-w.done:
			return
		}
	}
}

// follow asks to be told about the folders in which the paths stand, and about those that
// they are. Folders come and go, so it asks anew each time. It reports whether the system
// tells about all of them.
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

// content is a hash of what the paths hold.
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

// names returns what stands in a folder, in order.
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

// addFile adds a file's name, its size and what it holds. Only regular files are read:
// others, such as pipes, would make the reader wait.
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
