package tracedump

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// dumpEvery is the minimum time between two files of a dumper: repeated slow ticks have the
	// same cause, and a file costs the process some milliseconds.
	dumpEvery = 30 * time.Second
	// maxFiles and maxBytes bound the files in the directory, so that no clean-up is needed: ten
	// minutes of a server that is always slow. The oldest are deleted first.
	maxFiles = 20
	maxBytes = 64 << 20
)

// The names of files sort by time, and no other file in the directory is touched.
const (
	prefix = "netloop-"
	suffix = ".trace"
	layout = "20060102T150405.000"
)

// Config is the configuration of a Dumper.
type Config struct {
	// Dir is the directory of the files. It is made if it does not exist.
	Dir string
	// Name distinguishes this dumper's files from other dumpers' files in the directory.
	Name string
	// Log receives a line for each file, written or failed.
	Log *slog.Logger
}

// Tick describes a slow tick.
type Tick struct {
	Number   uint64
	Start    time.Duration // by a monotonic clock
	Wall     time.Time
	Duration time.Duration
	System   string // the slowest system
}

// Dumper writes the files of one server.
type Dumper struct {
	cfg   Config
	ticks chan Tick // size 1: the next tick to dump
	stop  chan struct{}

	started bool          // a tick was accepted; belongs to the goroutine of the ticks
	last    time.Duration // start of that tick; belongs to the goroutine of the ticks
	done    sync.WaitGroup

	written, skipped, failed atomic.Uint64

	mu    sync.Mutex
	files []File // under mu: the last written ones, the oldest first
}

// File is a written trace.
type File struct {
	Tick  uint64 `json:"tick"`  // the slow tick
	Name  string `json:"name"`  // of the file
	Bytes int64  `json:"bytes"` // size
}

// Files returns the last written files, the oldest first. Any goroutine may call it.
func (d *Dumper) Files() []File {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.files)
}

// OpenFile opens the file about a tick; fs.ErrNotExist is the error if there is none.
func (d *Dumper) OpenFile(tick uint64) (*os.File, error) {
	for _, f := range d.Files() {
		if f.Tick == tick {
			return os.Open(filepath.Join(d.cfg.Dir, f.Name))
		}
	}
	return nil, fs.ErrNotExist
}

// add adds a written file to the list, in place of the oldest if it is full.
func (d *Dumper) add(tick uint64, path string) {
	info, err := os.Stat(path)
	if err != nil {
		return // Another process has deleted it.
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = append(d.files, File{tick, info.Name(), info.Size()})
	d.files = d.files[max(0, len(d.files)-maxFiles):]
}

// Open returns a dumper and starts to record. An error names the required permission of the
// directory.
func Open(cfg Config) (*Dumper, error) {
	if err := os.MkdirAll(cfg.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("use a directory that may be made: %w", err)
	}
	probe, err := os.CreateTemp(cfg.Dir, prefix+"probe-*")
	if err != nil {
		return nil, fmt.Errorf("use a directory that may be written to: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("use a directory whose files may be deleted: %w", err)
	}
	if err := shared.open(); err != nil {
		return nil, err
	}
	d := &Dumper{cfg: cfg, ticks: make(chan Tick, 1), stop: make(chan struct{})}
	d.done.Go(d.run)
	return d, nil
}

// Slow requests a file about a tick that has just ended, unless the last requested file is too
// recent or another one is pending. It never waits. The goroutine of the ticks calls it.
func (d *Dumper) Slow(t Tick) {
	if d.started && t.Start-d.last < dumpEvery {
		d.skipped.Add(1)
		return
	}
	select {
	case d.ticks <- t:
		d.started, d.last = true, t.Start
	default:
		d.skipped.Add(1)
	}
}

// Close returns once the last file is written. Later calls of Slow have no effect.
func (d *Dumper) Close() {
	close(d.stop)
	d.done.Wait()
	shared.close()
}

// Counts returns the numbers of written files, of ticks without a file because another file was too
// recent or pending, and of failed files.
func (d *Dumper) Counts() (written, skipped, failed uint64) {
	return d.written.Load(), d.skipped.Load(), d.failed.Load()
}

func (d *Dumper) run() {
	for {
		select {
		case t := <-d.ticks:
			d.dump(t)
		case <-d.stop:
			select {
			case t := <-d.ticks:
				d.dump(t)
			default:
			}
			return
		}
	}
}

// dump writes a file, deletes old ones, and logs the file.
func (d *Dumper) dump(t Tick) {
	path, err := d.write(t)
	if err = errors.Join(err, prune(d.cfg.Dir)); err != nil {
		d.failed.Add(1)
		d.cfg.Log.Error("the trace of a slow tick could not be written", "tick", t.Number, "file", path, "error", err)
		return
	}
	d.add(t.Number, path)
	d.written.Add(1)
	d.cfg.Log.Warn("a tick over budget: see its trace with go tool trace", "tick", t.Number, "took", t.Duration, "system", t.System, "file", path)
}

// write makes one file.
func (d *Dumper) write(t Tick) (path string, err error) {
	name := fmt.Sprintf("%s%s-%s-tick%d%s", prefix, t.Wall.UTC().Format(layout), d.cfg.Name, t.Number, suffix)
	path = filepath.Join(d.cfg.Dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return path, err
	}
	err = errors.Join(shared.writeTo(f), f.Close())
	if err != nil {
		return path, errors.Join(err, os.Remove(path)) // A partial trace is useless.
	}
	return path, nil
}

// prune deletes the oldest files beyond the limits.
func prune(dir string) error {
	type file struct {
		name string
		size int64
	}
	var files []file
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		if info, err := e.Info(); err == nil { // Otherwise another process has deleted it.
			files = append(files, file{e.Name(), info.Size()})
		}
	}
	// the newest first
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(b.name, a.name) })
	var total int64
	for i, f := range files {
		if total += f.size; i == 0 || i < maxFiles && total <= maxBytes {
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
