package history

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/netloop/netloop/internal/room"
)

const (
	// maxFiles bounds the files in the list of a folder, the newest first.
	maxFiles = 1000
	// maxUpload bounds an uploaded file, in bytes: hours of a full room.
	maxUpload = 2 << 30
)

// RecordingsConfig configures Recordings.
type RecordingsConfig struct {
	// Dir is the folder of the files that can be opened by name; empty: none.
	Dir string
	// Temp is the folder of temporary files; empty is the system's.
	Temp string
	// Replay opens the recorded game. The function is not called while another replay runs: a game
	// may have settings that its replays share.
	Replay func(io.ReadSeeker) (*room.Replay, error)
}

// Recordings has at most one open recording. Any goroutine may use it.
type Recordings struct {
	cfg RecordingsConfig

	changing sync.Mutex // held while a recording is opened or closed
	// mu is held for reading while an answer is made, and for writing only to exchange the pointer.
	mu   sync.RWMutex
	open *Recording // nil: none
	file file       // of open
}

// NewRecordings returns Recordings without an open one. Close ends it.
func NewRecordings(cfg RecordingsConfig) *Recordings { return &Recordings{cfg: cfg} }

// Close closes the open recording.
func (s *Recordings) Close() error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.exchange(nil, nil)
}

// exchange replaces the open recording by another one, or by none, and closes it. The other one may
// have the same file.
func (s *Recordings) exchange(open *Recording, f file) (err error) {
	s.mu.Lock()
	was, wasFile := s.open, s.file
	s.open, s.file = open, f
	s.mu.Unlock()
	if was != nil {
		err = was.Close()
	}
	if wasFile != nil && wasFile != f {
		err = errors.Join(err, wasFile.Close())
	}
	return err
}

// errNone is the answer while no recording is open.
var errNone = refusef(http.StatusNotFound, "no recording is open: open one first")

// use calls fn with the open recording, which is not closed meanwhile.
func (s *Recordings) use(fn func(r *Recording) (any, error)) (any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.open == nil {
		return nil, errNone
	}
	return fn(s.open)
}

// FileRow is a file of the folder.
type FileRow struct {
	Name  string `json:"name"`  // within the folder
	Bytes int64  `json:"bytes"` // size of the file
	// Modified is the time of the last write, in seconds since 1970.
	Modified int64 `json:"modified_seconds"`
}

// Files returns the files of the folder, the newest first, and the number of those left out.
func (s *Recordings) Files() (rows []FileRow, more int, err error) {
	rows = []FileRow{}
	if s.cfg.Dir == "" {
		return rows, 0, nil
	}
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		rows = append(rows, FileRow{e.Name(), info.Size(), info.ModTime().Unix()})
	}
	slices.SortStableFunc(rows, func(a, b FileRow) int { return int(b.Modified - a.Modified) })
	more = max(0, len(rows)-maxFiles)
	return rows[:len(rows)-more], more, nil
}

// OpenFile opens a file of the folder by its name.
func (s *Recordings) OpenFile(name string) error {
	if s.cfg.Dir == "" {
		return refusef(http.StatusNotFound, "there is no folder of recordings")
	}
	if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return refusef(http.StatusBadRequest, "name: %.100q is no name of a file: /api/recordings lists them", name)
	}
	return s.change(func() (file, error) {
		f, err := os.OpenInRoot(s.cfg.Dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, refusef(http.StatusNotFound, "there is no file %.100q: /api/recordings lists them", name)
		}
		return f, err
	}, name)
}

// OpenPath opens a file of any folder.
func (s *Recordings) OpenPath(path string) error {
	return s.change(func() (file, error) { return os.Open(path) }, filepath.Base(path))
}

// Upload opens a recording that is read from in, of at most maxUpload bytes.
func (s *Recordings) Upload(in io.Reader, name string) error {
	return s.change(func() (file, error) {
		f, err := newTempFile(s.cfg.Temp)
		if err != nil {
			return nil, err
		}
		n, err := io.Copy(f, io.LimitReader(in, maxUpload+1))
		if err == nil && n > maxUpload {
			err = refusef(http.StatusRequestEntityTooLarge, "the file has more than %d bytes: copy it to the folder of recordings", maxUpload)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}, name)
}

// file is the file of a recording.
type file interface {
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// change opens the file that get returns, and then closes the recording that was open. If it fails,
// that one remains open.
func (s *Recordings) change(get func() (file, error), name string) error {
	if !s.changing.TryLock() {
		return refusef(http.StatusConflict, "another recording is being opened: try again")
	}
	defer s.changing.Unlock()
	f, err := get()
	if err != nil {
		return err
	}
	// Only one replay may run, and opening a file may change the settings that it reads.
	stopped := s.open != nil && s.open.stop()
	r, err := s.openFile(f, name)
	if err == nil {
		return s.exchange(r, f)
	}
	err = errors.Join(refusef(http.StatusBadRequest, "cannot open %.100q: %v", name, err), f.Close())
	if stopped {
		err = errors.Join(err, s.reopen())
	}
	return err
}

// reopen begins the replay of the open recording anew.
func (s *Recordings) reopen() error {
	r, err := s.openFile(s.file, s.open.cfg.Name)
	if err != nil {
		return err // Its answers cover the ticks that were replayed.
	}
	return s.exchange(r, s.file)
}

func (s *Recordings) openFile(f file, name string) (*Recording, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	return Open(Config{Name: name, File: f, Size: info.Size(), Replay: s.cfg.Replay, Temp: s.cfg.Temp})
}
