package logging

import (
	"io"

	"github.com/netloop/netloop/internal/boundedio"
)

// DefaultMaxPending is how many bytes of lines may wait for the output: about 5 000 lines,
// which is a second of a server that logs far too much, and small beside one room.
const DefaultMaxPending = 1 << 20

// sink takes one line a Write, and loses what does not fit: a caller inside a tick has nothing
// better to do with it.
type sink struct{ *boundedio.Writer }

func newSink(out io.Writer, limit int, notice func(uint64) []byte) sink {
	if limit <= 0 {
		limit = DefaultMaxPending
	}
	return sink{boundedio.New(boundedio.Config{Out: out, Limit: limit, Notice: notice})}
}

// Sync is part of zapcore.WriteSyncer. zap calls it after an entry above error level; it
// does not wait, for the reason that Write does not.
func (sink) Sync() error { return nil }
