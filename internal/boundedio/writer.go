package boundedio

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// Why a Writer takes nothing more.
var (
	ErrFull   = errors.New("the output does not keep up")
	ErrClosed = errors.New("written to after its end")
)

// Config says what is written to, how much may wait, and what happens when that is not enough.
type Config struct {
	// Out is called by the writer's goroutine alone, and may block.
	Out io.Writer
	// Limit is how many bytes may wait for Out.
	Limit int
	// Notice makes a Writer lossy. What does not fit, what Out refuses, and what comes after the
	// end is lost and counted, and Write never fails. After the next batch that Out takes, Out
	// is told what Notice makes of the number of pieces lost since it was told last.
	//
	// Without it the first error is the end: nothing is taken or written after it.
	Notice func(lost uint64) []byte
}

// Writer is an io.Writer that never waits. Any goroutine may call it.
type Writer struct {
	cfg  Config
	lost atomic.Uint64 // pieces
	wake chan struct{} // size 1: a signal, not a queue
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	pending []byte
	pieces  uint64 // in pending
	closed  bool
	err     error // the first, unless the Writer is lossy
}

// New starts the goroutine. Close ends it.
func New(cfg Config) *Writer {
	w := &Writer{cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write takes all of a piece or nothing.
func (w *Writer) Write(piece []byte) (int, error) {
	err := w.take(piece)
	switch {
	case err == nil:
		w.signal()
	case w.cfg.Notice != nil:
		w.lost.Add(1)
	default:
		return 0, err
	}
	return len(piece), nil
}

func (w *Writer) take(piece []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return ErrClosed
	case len(w.pending)+len(piece) > w.cfg.Limit:
		w.failLocked(ErrFull)
		return ErrFull
	}
	w.pending = append(w.pending, piece...)
	w.pieces++
	return nil
}

// Lost is how many pieces a lossy Writer has lost so far.
func (w *Writer) Lost() uint64 { return w.lost.Load() }

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run is the writer's goroutine. It ends when the Writer is closed and nothing waits.
func (w *Writer) run() {
	defer close(w.done)
	var batch []byte
	var told uint64 // of the lost, by notices
	for range w.wake {
		for {
			var pieces uint64
			var closed bool
			batch, pieces, closed = w.swap(batch)
			if len(batch) == 0 {
				if closed {
					return
				}
				break
			}
			if _, err := w.cfg.Out.Write(batch); err != nil {
				w.refused(pieces, err)
			} else if missing := w.Lost() - told; missing > 0 {
				if _, err := w.cfg.Out.Write(w.cfg.Notice(missing)); err == nil {
					told += missing
				}
			}
		}
	}
}

// swap hands out what waits, for a buffer that has been written.
func (w *Writer) swap(written []byte) (batch []byte, pieces uint64, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch, pieces = w.pending, w.pieces
	w.pending, w.pieces = written[:0], 0
	return batch, pieces, w.closed
}

// refused accounts for a batch that the output did not take. A lossy Writer has no other place to
// say it: the count is the message.
func (w *Writer) refused(pieces uint64, err error) {
	if w.cfg.Notice != nil {
		w.lost.Add(pieces)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = nil // It would come after a gap.
	w.failLocked(err)
}

func (w *Writer) failLocked(err error) {
	if w.err == nil && w.cfg.Notice == nil {
		w.err = err
	}
}

// Close refuses what comes from now on, waits until all that was taken is written or ctx ends, and
// returns the first error. If ctx ends first, the goroutine ends with the write that holds it.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	select {
	case <-w.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
