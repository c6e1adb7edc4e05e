package recording

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/netloop/netloop/internal/boundedio"
)

// MaxPending limits the bytes of a recording that wait for the disk: as many as a full room of 256
// clients writes in a few seconds.
const MaxPending = 64 << 20

// ErrBehind is returned if the output is too slow for too long. The recording ends, because a
// replay cannot continue after a missing tick.
var ErrBehind = errors.New("recording: output is too slow")

// Sink is a writer that never waits for its output: a goroutine writes to it. It ends with its
// first error.
type Sink struct{ w *boundedio.Writer }

// NewSink starts the goroutine. Close ends it.
func NewSink(out io.Writer) *Sink { return newSink(out, MaxPending) }

func newSink(out io.Writer, limit int) *Sink {
	return &Sink{boundedio.New(boundedio.Config{Out: out, Limit: limit})}
}

// Write accepts one record, either completely or not at all.
func (s *Sink) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	return n, named(err)
}

// Close waits until all records are written, and returns the first error.
func (s *Sink) Close() error { return named(s.w.Close(context.Background())) }

// named marks an error as an error of the recording.
func named(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, boundedio.ErrFull):
		return ErrBehind
	}
	return fmt.Errorf("recording: %w", err)
}
