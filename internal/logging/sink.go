package logging

import (
	"io"

	"github.com/netloop/netloop/internal/boundedio"
)

// DefaultMaxPending is the largest number of bytes that wait for the output: about 5 000 lines,
// which a server that logs far too much writes in a second. It is small compared to the memory of a
// room.
const DefaultMaxPending = 1 << 20

// sink gets one line per Write. It drops a line that does not fit, and returns no error, because a
// caller inside a tick could only ignore the error.
type sink struct{ *boundedio.Writer }

func newSink(out io.Writer, limit int, notice func(uint64) []byte) sink {
	if limit <= 0 {
		limit = DefaultMaxPending
	}
	return sink{boundedio.New(boundedio.Config{Out: out, Limit: limit, Notice: notice})}
}

// Sync implements zapcore.WriteSyncer. zap calls it after an entry above error level; like Write,
// it never waits.
func (sink) Sync() error { return nil }
