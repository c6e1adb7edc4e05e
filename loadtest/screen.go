package loadtest

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
)

// screen is stderr: one line of progress that is redrawn on a terminal, or a line each time
// elsewhere, and notes between them. Safe for use by many goroutines.
type screen struct {
	quiet    bool
	terminal bool

	mu    sync.Mutex
	w     io.Writer
	drawn bool // the terminal shows a line of progress
	notes int
}

func newScreen(w io.Writer, quiet bool) *screen {
	s := &screen{w: w, quiet: quiet}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		s.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

const (
	lineWidth = 79 // a line that wraps could not be redrawn
	// maxNotes bounds the messages of bots and their clients: a handler that panics at every frame
	// would write the same message 6 000 times a second.
	maxNotes = 20
)

// progress shows a line in place of the last one.
func (s *screen) progress(line string) {
	if s.quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		fmt.Fprintln(s.w, line)
		return
	}
	if runes := []rune(line); len(runes) > lineWidth {
		line = string(runes[:lineWidth])
	}
	fmt.Fprint(s.w, "\r\x1b[K", line)
	s.drawn = true
}

// line prints a permanent line of progress.
func (s *screen) line(text string) {
	if s.quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
	fmt.Fprintln(s.w, text)
}

// note prints a permanent message.
func (s *screen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.notes++; {
	case s.notes == maxNotes:
		text = "further messages are left out"
	case s.notes > maxNotes:
		return
	}
	s.clearLocked()
	fmt.Fprintln(s.w, text)
}

// clear removes the line of progress.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
}

func (s *screen) clearLocked() {
	if s.drawn {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.drawn = false
	}
}

// Write shows a line of the clients' log as a note.
func (s *screen) Write(line []byte) (int, error) {
	n := len(line)
	if n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	s.note(string(line))
	return n, nil
}

// logger returns a logger for the clients' warnings and errors, most of all panics of the bot.
func (s *screen) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
