package recording

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/netloop/netloop/internal/boundedio"
)

// MaxPending is how many bytes of a recording may wait for the disk: what a full room
// of 256 clients writes in a few seconds.
const MaxPending = 64 << 20

// ErrBehind says that the output took too little for too long. A recording without one
// of its ticks is worth nothing from there on, so it ends.
var ErrBehind = errors.New("recording: the output does not keep up")

// Sink is a writer that never waits for what it writes to: a goroutine does. It ends with its first
// error.
type Sink struct{ w *boundedio.Writer }

// NewSink starts the goroutine. Close ends it.
func NewSink(out io.Writer) *Sink { return newSink(out, MaxPending) }

func newSink(out io.Writer, limit int) *Sink {
	return &Sink{boundedio.New(boundedio.Config{Out: out, Limit: limit})}
}

// Write takes one record, or none of it.
func (s *Sink) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	return n, named(err)
}

// Close waits until everything is written, and returns the first error.
func (s *Sink) Close() error { return named(s.w.Close(context.Background())) }

// named says of an error that it is the recording's.
func named(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, boundedio.ErrFull):
		return ErrBehind
	}
	return fmt.Errorf("recording: %w", err)
}
