package inspect

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// LogLines is the number of newest log lines that Log stores.
	LogLines = 1024
	// maxLogText bounds each text of a stored line, in bytes; maxLogAttrs bounds the number of its
	// attributes.
	maxLogText  = 512
	maxLogAttrs = 16
)

// Log stores the newest lines of a log in a ring: a new line replaces the oldest one. Neither
// writers nor readers wait.
type Log struct {
	next  atomic.Uint64 // number of the newest line
	lines [LogLines]atomic.Pointer[LogLine]
}

// LogLine is one line of a log.
type LogLine struct {
	Number uint64      `json:"number"` // from 1
	Time   time.Time   `json:"time"`   // of the line
	Level  string      `json:"level"`  // DEBUG, INFO, WARN or ERROR
	Text   string      `json:"text"`   // the message
	Attrs  [][2]string `json:"attrs"`  // names and values
}

// Tee returns a handler that stores each record, and passes it to the handler to.
func (l *Log) Tee(to slog.Handler) slog.Handler { return &tee{Handler: to, log: l} }

// After returns the stored lines with higher numbers, the oldest first. Any goroutine may call it.
func (l *Log) After(number uint64) []LogLine {
	all := []LogLine{}
	last := l.next.Load()
	for n := max(number+1, last-min(last, LogLines)+1); n <= last; n++ {
		// A nil line is being written; a line with another number has replaced it.
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

// tee is a handler that stores records in a Log and passes them on.
type tee struct {
	slog.Handler
	log    *Log
	prefix string // names of the open groups, each followed by a dot
	attrs  [][2]string
}

// Enabled implements slog.Handler. The log stores level info and above, even if the other handler
// does not take it.
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

// appendAttr appends an attribute to dst as its name and text. For a group it appends each
// attribute of the group.
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

// cut shortens a text to maxLogText bytes.
func cut(s string) string {
	if len(s) > maxLogText {
		return s[:maxLogText] + "…"
	}
	return s
}
