package boundedio

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// The errors with which a Writer refuses a piece.
var (
	ErrFull   = errors.New("the output does not keep up")
	ErrClosed = errors.New("write after close")
)

// Config sets the output, the most bytes that may wait, and the behaviour when they exceed it.
type Config struct {
	// Out is called by the writer's goroutine alone, and may block.
	Out io.Writer
	// Limit is the most bytes that may wait for Out.
	Limit int
	// Notice makes a Writer lossy. Pieces that do not fit, that Out refuses, or that arrive after
	// the end are lost and counted, and Write never fails. After the next batch that Out accepts,
	// the Writer writes the result of Notice for the number of pieces lost since the last notice.
	//
	// Without Notice the first error ends the Writer: no piece is accepted or written after it.
	Notice func(lost uint64) []byte
}

// Writer is an io.Writer that never blocks. Any goroutine may call it.
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

// Write queues a whole piece for Out, or returns an error. A lossy Writer counts a piece that it
// cannot queue as lost, and returns no error.
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

// Lost returns the number of pieces that a lossy Writer has lost.
func (w *Writer) Lost() uint64 { return w.lost.Load() }

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run is the writer's goroutine. It ends when the Writer is closed and no piece waits.
func (w *Writer) run() {
	defer close(w.done)
	var batch []byte
	var notices uint64 // reported by notices
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
			} else if missing := w.Lost() - notices; missing > 0 {
				if _, err := w.cfg.Out.Write(w.cfg.Notice(missing)); err == nil {
					notices += missing
				}
			}
		}
	}
}

// swap returns the pending buffer, and makes a written one the next pending buffer.
func (w *Writer) swap(written []byte) (batch []byte, pieces uint64, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch, pieces = w.pending, w.pieces
	w.pending, w.pieces = written[:0], 0
	return batch, pieces, w.closed
}

// refused handles a batch that Out refused. A lossy Writer counts its pieces as lost; any other
// Writer keeps the error and drops the pending pieces.
func (w *Writer) refused(pieces uint64, err error) {
	if w.cfg.Notice != nil {
		w.lost.Add(pieces)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = nil // It would follow a gap.
	w.failLocked(err)
}

func (w *Writer) failLocked(err error) {
	if w.err == nil && w.cfg.Notice == nil {
		w.err = err
	}
}

// Close refuses further pieces, waits until all accepted ones are written or ctx ends, and returns
// the first error, or that of ctx. If ctx ends first, the goroutine ends after the writes of all
// accepted pieces.
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
