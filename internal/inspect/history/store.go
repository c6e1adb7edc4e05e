package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"

	"github.com/netloop/netloop/internal/netvar/state"
)

const (
	// maxTicks bounds the ticks of a history: 2.4 hours at 60 Hz. The index takes 80 bytes for
	// each.
	maxTicks = 1 << 19
	// maxFile bounds the temporary file, in bytes: an hour of 20 players takes about 100 MB.
	maxFile = 4 << 30
	// keyEvery is the least number of ticks between two keyframes, keyAtMost the largest. In
	// between, a keyframe is written once the changes since the last keyframe have as many bytes
	// as that keyframe, so that keyframes take at most half of the file.
	keyEvery, keyAtMost = 64, 4096
)

// tickInfo is the index entry of a tick.
type tickInfo struct {
	tick   uint64
	off    int64 // of its changes in the temporary file
	record int64 // of its record in the recording
	late   int64 // time from its deadline to its start, in ns
	size   uint32
	key    int32 // the newest keyframe that is not later; -1: none
	changes
	arrivals
}

// keyframe is all objects as of a tick, in the temporary file.
type keyframe struct {
	position int // of its tick in the index
	off      int64
	size     uint32
}

// storage holds the bytes of a store: a temporary file or memory.
type storage interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// store is the changes of each tick, and their index. One goroutine appends; any goroutine may
// read.
type store struct {
	classes []*state.Class
	file    storage
	ticks   *list[tickInfo]
	keys    *list[keyframe]
	most    int // ticks

	// Only the appending goroutine uses these.
	size  int64 // of the file
	since int64 // bytes of changes since the last keyframe
	buf   []byte
}

// errLimit is the error of a history that has reached one of its limits.
var errLimit = errors.New("the rest of the recording is not shown")

// newStore makes a store with a temporary file in a folder; "" is the system's.
func newStore(t *state.Table, dir string, most int) (*store, error) {
	f, err := newTempFile(dir)
	if err != nil {
		return nil, err
	}
	return storeIn(f, t.Classes(), most), nil
}

// newMemoryStore makes a store of few ticks, which are all appended before the first is read.
func newMemoryStore(classes []*state.Class) *store { return storeIn(new(memory), classes, maxTicks) }

func storeIn(f storage, classes []*state.Class, most int) *store {
	return &store{
		classes: classes, file: f, most: most,
		ticks: newList[tickInfo](maxTicks), keys: newList[keyframe](maxTicks / keyEvery),
	}
}

// memory is a storage in memory.
type memory struct{ bytes.Buffer }

// ReadAt implements io.ReaderAt.
func (m *memory) ReadAt(b []byte, off int64) (int, error) {
	return bytes.NewReader(m.Bytes()).ReadAt(b, off)
}

// Close implements io.Closer.
func (*memory) Close() error { return nil }

// tempFile is a file that Close removes.
type tempFile struct {
	*os.File
	removed bool
}

// newTempFile makes a temporary file in a folder. Where the system permits it, the file loses its
// name at once, so that a process that is killed leaves no file.
func newTempFile(dir string) (*tempFile, error) {
	f, err := os.CreateTemp(dir, "netloop-history-*")
	if err != nil {
		return nil, fmt.Errorf("the temporary file: %w", err)
	}
	return &tempFile{f, os.Remove(f.Name()) == nil}, nil
}

func (f *tempFile) Close() error {
	err := f.File.Close()
	if !f.removed {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// append writes the changes of a tick, which capture appends, and publishes the tick.
func (s *store) append(info tickInfo, capture func(dst []byte) []byte) error {
	if s.ticks.len() >= s.most {
		return fmt.Errorf("a history has %d ticks at most: %w", s.most, errLimit)
	}
	s.buf = capture(s.buf[:0])
	info.off, info.size, info.key = s.size, uint32(len(s.buf)), int32(s.keys.len())-1
	if err := s.write(); err != nil {
		return err
	}
	s.since += int64(len(s.buf))
	s.ticks.add(info)
	return nil
}

// appendKeyframe writes a keyframe of the last appended tick if one is due. capture appends it.
func (s *store) appendKeyframe(capture func(dst []byte) []byte) error {
	position := s.ticks.len() - 1
	after, last := 0, int64(0)
	if n := s.keys.len(); n > 0 {
		after, last = s.keys.at(n-1).position, int64(s.keys.at(n-1).size)
	}
	if n := position - after; n < keyEvery || n < keyAtMost && s.since < last || s.keys.full() {
		return nil
	}
	s.buf = capture(s.buf[:0])
	k := keyframe{position, s.size, uint32(len(s.buf))}
	if err := s.write(); err != nil {
		return err
	}
	s.since = 0
	s.keys.add(k)
	return nil
}

func (s *store) write() error {
	if s.size+int64(len(s.buf)) > maxFile {
		return fmt.Errorf("a history has %d bytes at most: %w", maxFile, errLimit)
	}
	n, err := s.file.Write(s.buf)
	s.size += int64(n)
	if err != nil {
		return fmt.Errorf("the temporary file: %w", err)
	}
	return nil
}

// from returns the position of the first tick that is not earlier.
func (s *store) from(tick uint64) int {
	return sort.Search(s.ticks.len(), func(i int) bool { return s.ticks.at(i).tick >= tick })
}

// state returns all objects as of the tick at a position.
func (s *store) state(position int) (*State, error) {
	info := s.ticks.at(position)
	st := &State{Tick: info.tick, classes: s.classes}
	next, off := 0, int64(0)
	if info.key >= 0 {
		k := s.keys.at(int(info.key))
		frame, err := s.read(k.off, int64(k.size))
		if err == nil {
			err = st.apply(frame)
		}
		if err != nil {
			return nil, err
		}
		next, off = k.position+1, k.off+int64(k.size)
	}
	frames, err := s.read(off, info.off+int64(info.size)-off) // without a keyframe in between
	if err != nil {
		return nil, err
	}
	for ; next <= position; next++ {
		size := s.ticks.at(next).size
		if err := st.apply(frames[:size:size]); err != nil {
			return nil, err
		}
		frames = frames[size:]
	}
	return st, nil
}

// each calls fn with the frame of each tick from a position on, until fn returns false.
func (s *store) each(from, to int, fn func(position int, frame []byte) (more bool, err error)) error {
	var buf []byte
	base := int64(0)
	for i := from; i < to; i++ {
		info := s.ticks.at(i)
		if end := info.off + int64(info.size); end > base+int64(len(buf)) {
			size := min(max(readSize, int64(info.size)), s.end(to-1)-info.off)
			var err error
			if buf, err = s.read(info.off, size); err != nil {
				return err
			}
			base = info.off
		}
		frame := buf[info.off-base:][:info.size:info.size]
		if more, err := fn(i, frame); err != nil || !more {
			return err
		}
	}
	return nil
}

// readSize is the number of bytes that each reads at once.
const readSize = 1 << 20

// end returns the end of the changes of the tick at a position.
func (s *store) end(position int) int64 {
	info := s.ticks.at(position)
	return info.off + int64(info.size)
}

// read reads a part of the temporary file into memory of its own, because a State refers to it.
func (s *store) read(off, size int64) ([]byte, error) {
	b := slices.Grow([]byte(nil), int(size))[:size]
	if _, err := s.file.ReadAt(b, off); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the temporary file: %w", err)
	}
	return b, nil
}
