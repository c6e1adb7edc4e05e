package logging

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// DefaultMaxPending is how many bytes of lines may wait for the output: about 5 000 lines,
// which is a second of a server that logs far too much, and small beside one room.
const DefaultMaxPending = 1 << 20

// sink is the bounded buffer between callers and the output. Callers append a whole line
// under the lock; the writer goroutine swaps the buffer for the one it has written out, so
// two buffers are all the memory there is.
type sink struct {
	out     io.Writer
	notice  func(n uint64) []byte // the line that says how many are missing
	limit   int                   // bytes pending at most
	dropped atomic.Uint64         // lines
	wake    chan struct{}         // size 1: a signal, not a queue
	done    chan struct{}         // closed when the writer has ended

	mu      sync.Mutex
	pending []byte
	lines   uint64 // in pending
	closed  bool
}

func newSink(out io.Writer, limit int, notice func(uint64) []byte) *sink {
	if limit <= 0 {
		limit = DefaultMaxPending
	}
	s := &sink{out: out, notice: notice, limit: limit, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go s.run()
	return s
}

// Write takes one line. It never blocks and never fails: a line that does not fit is
// dropped and counted, because a caller inside a tick has nothing better to do with it.
func (s *sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	fits := !s.closed && len(s.pending)+len(line) <= s.limit
	if fits {
		s.pending = append(s.pending, line...)
		s.lines++
	}
	s.mu.Unlock()
	if !fits {
		s.dropped.Add(1)
		return len(line), nil
	}
	s.signal()
	return len(line), nil
}

// Sync is part of zapcore.WriteSyncer. zap calls it after an entry above error level; it
// does not wait, for the reason that Write does not.
func (s *sink) Sync() error { return nil }

func (s *sink) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run is the writer goroutine. It ends when the sink is closed and empty.
func (s *sink) run() {
	defer close(s.done)
	var batch []byte
	var told uint64 // drops that a notice has told
	for range s.wake {
		for {
			s.mu.Lock()
			batch, s.pending = s.pending, batch[:0]
			lines, closed := s.lines, s.closed
			s.lines = 0
			s.mu.Unlock()
			if len(batch) == 0 {
				if closed {
					return
				}
				break
			}
			if _, err := s.out.Write(batch); err != nil {
				// There is no other place to say it: the count is the message.
				s.dropped.Add(lines)
				continue
			}
			if missing := s.dropped.Load() - told; missing > 0 {
				if _, err := s.out.Write(s.notice(missing)); err == nil {
					told += missing
				}
			}
		}
	}
}

func (s *sink) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.signal()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("logging: the output did not take the last lines: %w", ctx.Err())
	}
}
