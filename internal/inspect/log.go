package inspect

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// LogLines is the number of the last log lines that are kept.
	LogLines = 1024
	// maxLogText limits a text of a kept line, in bytes, and maxLogAttrs its attributes.
	maxLogText  = 512
	maxLogAttrs = 16
)

// Log keeps the last lines of a log. A line that is kept replaces the oldest one; neither writers
// nor readers wait.
type Log struct {
	next  atomic.Uint64 // number of the newest line
	lines [LogLines]atomic.Pointer[LogLine]
}

// LogLine is one line of a log.
type LogLine struct {
	Number uint64      `json:"number"` // from 1
	Time   time.Time   `json:"time"`
	Level  string      `json:"level"`
	Text   string      `json:"text"`
	Attrs  [][2]string `json:"attrs"`
}

// Tee returns a handler that passes each record to another one, and keeps it.
func (l *Log) Tee(to slog.Handler) slog.Handler { return &tee{Handler: to, log: l} }

// After returns the kept lines after a number, the oldest first. Any goroutine may call it.
func (l *Log) After(number uint64) []LogLine {
	all := []LogLine{}
	last := l.next.Load()
	for n := max(number+1, last-min(last, LogLines)+1); n <= last; n++ {
		// Without the line it is being written, and a later line may have replaced it.
		if line := l.lines[n%LogLines].Load(); line != nil && line.Number == n {
			all = append(all, *line)
		}
	}
	return all
}

func (l *Log) keep(line LogLine) {
	line.Number = l.next.Add(1)
	l.lines[line.Number%LogLines].Store(&line)
}

// tee is the handler of a kept log.
type tee struct {
	slog.Handler
	log    *Log
	prefix string // of open groups, with a dot behind each
	attrs  [][2]string
}

// Enabled implements slog.Handler. Without another handler's interest, the level info is kept.
func (t *tee) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || t.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (t *tee) Handle(ctx context.Context, r slog.Record) error {
	line := LogLine{Time: r.Time, Level: r.Level.String(), Text: cut(r.Message), Attrs: append([][2]string{}, t.attrs...)}
	r.Attrs(func(a slog.Attr) bool {
		line.Attrs = appendAttr(line.Attrs, t.prefix, a)
		return len(line.Attrs) < maxLogAttrs
	})
	t.log.keep(line)
	if !t.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t *tee) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := &tee{Handler: t.Handler.WithAttrs(attrs), log: t.log, prefix: t.prefix, attrs: append([][2]string{}, t.attrs...)}
	for _, a := range attrs {
		with.attrs = appendAttr(with.attrs, t.prefix, a)
	}
	return with
}

// WithGroup implements slog.Handler.
func (t *tee) WithGroup(name string) slog.Handler {
	if name == "" {
		return t
	}
	return &tee{Handler: t.Handler.WithGroup(name), log: t.log, prefix: t.prefix + name + ".", attrs: t.attrs}
}

// appendAttr appends an attribute as texts, those of a group one by one.
func appendAttr(dst [][2]string, prefix string, a slog.Attr) [][2]string {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, member := range v.Group() {
			dst = appendAttr(dst, prefix, member)
		}
		return dst
	}
	if a.Key == "" || len(dst) >= maxLogAttrs {
		return dst
	}
	return append(dst, [2]string{cut(prefix + a.Key), cut(v.String())})
}

// cut limits a text.
func cut(s string) string {
	if len(s) > maxLogText {
		return s[:maxLogText] + "…"
	}
	return s
}
