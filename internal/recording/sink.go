package recording

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxPending is how many bytes of a recording may wait for the disk: what a full room
// of 256 clients writes in a few seconds.
const MaxPending = 64 << 20

// ErrBehind says that the output took too little for too long. A recording without one
// of its ticks is worth nothing from there on, so it ends.
var ErrBehind = errors.New("recording: the output does not keep up")

// Sink is a writer that never waits for what it writes to: a goroutine does. Write
// belongs to one goroutine at a time, Close to any.
type Sink struct {
	out   io.Writer
	limit int           // bytes pending at most
	wake  chan struct{} // size 1: a signal, not a queue
	done  chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	pending []byte
	closed  bool
	err     error // of the output; nothing is written after it
}

// NewSink starts the goroutine. Close ends it.
func NewSink(out io.Writer) *Sink { return newSink(out, MaxPending) }

func newSink(out io.Writer, limit int) *Sink {
	s := &Sink{out: out, limit: limit, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go s.run()
	return s
}

// Write takes one record, or none of it.
func (s *Sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return 0, s.err
	case s.closed:
		return 0, errors.New("recording: written to after its end")
	case len(s.pending)+len(b) > s.limit:
		s.err = ErrBehind
		return 0, s.err
	}
	s.pending = append(s.pending, b...)
	s.signal()
	return len(b), nil
}

func (s *Sink) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run is the writer goroutine. It ends when the sink is closed and empty.
func (s *Sink) run() {
	defer close(s.done)
	var batch []byte
	for range s.wake {
		for {
			s.mu.Lock()
			batch, s.pending = s.pending, batch[:0]
			closed := s.closed
			s.mu.Unlock()
			if len(batch) == 0 {
				if closed {
					return
				}
				break
			}
			if _, err := s.out.Write(batch); err != nil {
				s.fail(err)
			}
		}
	}
}

func (s *Sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = nil
	if s.err == nil {
		s.err = fmt.Errorf("recording: %w", err)
	}
}

// Close waits until everything is written, and returns the first error.
func (s *Sink) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.signal()
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
