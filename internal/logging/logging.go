package logging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"
)

// Config sets the level, the format and the output of the log. Out must be set.
type Config struct {
	// Level is the least level logged: debug, info, warn or error. Empty means info.
	Level string
	// Format is json or text. Empty means text.
	Format string
	// Out receives the lines. Only the writer goroutine calls it; it may block.
	Out io.Writer
	// MaxPending bounds the bytes that wait for Out. 0 means DefaultMaxPending.
	MaxPending int
}

// Logger is a zap core behind a bounded sink. All methods may be called from any goroutine.
type Logger struct {
	zap   *zap.Logger
	level zap.AtomicLevel
	sink  sink
}

// New starts the writer goroutine, which runs until Close. Errors name the key and the remedy.
func New(cfg Config) (*Logger, error) {
	level, err := ParseLevel(cfg.Level)
	if err != nil {
		return nil, err
	}
	enc, err := newEncoder(cfg.Format)
	if err != nil {
		return nil, err
	}
	l := &Logger{level: zap.NewAtomicLevelAt(level)}
	l.sink = newSink(cfg.Out, cfg.MaxPending, noticeWith(enc.Clone()))
	l.zap = zap.New(zapcore.NewCore(enc, l.sink, l.level), zap.ErrorOutput(l.sink))
	return l, nil
}

// Slog returns the logger that game code and the runtime use.
func (l *Logger) Slog() *slog.Logger { return Slog(l.zap) }

// Dropped returns the number of lines lost so far, because the buffer was full or the output
// failed.
func (l *Logger) Dropped() uint64 { return l.sink.Lost() }

// SetLevel changes the level of all loggers made from this one, at once.
func (l *Logger) SetLevel(level string) error {
	lv, err := ParseLevel(level)
	if err != nil {
		return err
	}
	l.level.SetLevel(lv)
	return nil
}

// Close writes the pending lines and ends the writer goroutine. Lines logged afterwards are dropped
// and counted. If the output still blocks when ctx ends, its error is returned and the goroutine
// ends after the write that blocks it.
func (l *Logger) Close(ctx context.Context) error {
	if err := l.sink.Close(ctx); err != nil {
		return fmt.Errorf("logging: writing the last lines failed: %w", err)
	}
	return nil
}

// Slog puts slog in front of a zap logger that the caller made. Errors are logged without a stack:
// their text names the failure, and the stack of a panic is logged by the code that recovers it.
func Slog(z *zap.Logger) *slog.Logger {
	return slog.New(zapslog.NewHandler(z.Core(), zapslog.WithName(z.Name()), zapslog.AddStacktraceAt(noStack)))
}

// noStack is a level above every level in use, so that no stack is logged.
const noStack = slog.Level(1 << 20)

// ParseLevel reads debug, info, warn or error; empty means info.
func ParseLevel(s string) (zapcore.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return zapcore.DebugLevel, nil
	case "", "info":
		return zapcore.InfoLevel, nil
	case "warn":
		return zapcore.WarnLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	}
	return 0, fmt.Errorf("log-level: %q is not a level: use debug, info, warn or error", s)
}
