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
)

const (
	// period is the interval at which the files are read.
	period = time.Second

	// maxBytes and maxEntries bound the reads of each file and folder, so that a wrong path does
	// not take much memory or time. Beyond maxBytes, a change is noticed only by a file's size.
	maxBytes   = 1 << 20
	maxEntries = 1024
)

// Watcher watches some files until Close.
type Watcher struct {
	paths   []string
	changed func()
	seen    [sha256.Size]byte // belongs to run
	done    chan struct{}
	running sync.WaitGroup
	once    sync.Once
}

// Watch calls changed, one call at a time and on a goroutine of its own, whenever the content of a
// file changes, a file appears or disappears, or a folder's list of files changes, at most two
// seconds after the last change. A path need not exist yet. Watch first, then read: changes in
// between are reported.
func Watch(changed func(), paths ...string) *Watcher {
	w := &Watcher{paths: slices.Clone(paths), changed: changed, done: make(chan struct{})}
	w.seen = w.content()
	w.running.Go(w.run)
	return w
}

// Close ends the watch, and waits for a running call of changed; changed itself must not call it.
// It may be called again.
func (w *Watcher) Close() {
	w.once.Do(func() { close(w.done) })
	w.running.Wait()
}

// run reads the files. A change is reported when two reads in a row have the same content, so that
// a program that renews a certificate and its key can write both.
func (w *Watcher) run() {
	before := w.seen
	for {
		select {
		case <-time.After(period):
		case <-w.done:
			return
		}
		now := w.content()
		if now != w.seen && now == before {
			w.seen = now
			w.changed()
		}
		before = now
	}
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
