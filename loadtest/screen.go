package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	tea "charm.land/bubbletea/v2"
)

// screen is stderr: the terminal view, or lines of progress, and notes. Safe for use by many
// goroutines.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	quiet bool
	notes int
	view  *view    // nil without, and after its end
	kept  []string // messages of the view, which are printed after its end
	ended chan struct{}
	quit  func()
}

// The values of --ui.
const (
	uiAuto  = "auto" // the terminal view on a terminal, else lines
	uiTerm  = "tui"
	uiPlain = "plain"
	uiQuiet = "quiet"
)

func newScreen(w io.Writer, quiet bool) *screen { return &screen{w: w, quiet: quiet} }

const (
	// maxNotes bounds the messages of bots and their clients: a handler that panics at every frame
	// would write the same message 6 000 times a second.
	maxNotes = 20
	maxKept  = 200 // messages of the view: a search has some tens of runs
)

// open shows the terminal view until ctx ends, close is called, or the user ends it: then it calls
// interrupt. Keys are read from in.
func (s *screen) open(ctx context.Context, in io.Reader, env []string, interrupt func()) {
	v := newView()
	p := tea.NewProgram(v, tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithFPS(viewRate),
		tea.WithEnvironment(env), tea.WithOutput(s.w), tea.WithInput(in), tea.WithWindowSize(v.width, v.height))
	s.view, s.ended, s.quit = v, make(chan struct{}), p.Quit
	go func() {
		defer close(s.ended)
		_, err := p.Run()
		s.mu.Lock()
		s.view = nil
		for _, text := range s.kept {
			fmt.Fprintln(s.w, text)
		}
		s.mu.Unlock()
		if err != nil && !errors.Is(err, tea.ErrProgramKilled) {
			s.note("--ui tui: " + err.Error())
		}
		if v.stopped {
			interrupt()
		}
	}()
}

// close ends the terminal view, if there is one: the terminal is as before.
func (s *screen) close() {
	if s.ended != nil {
		s.quit()
		<-s.ended
	}
}

// showsStatus reports whether the terminal view is open.
func (s *screen) showsStatus() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view != nil
}

// status shows a point of the series in the terminal view.
func (s *screen) status(st *status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != nil {
		s.view.take(st)
	}
}

// progress prints a line of progress.
func (s *screen) progress(text string) {
	if s.quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printLocked(text)
}

// note prints a message.
func (s *screen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.notes++; {
	case s.notes == maxNotes:
		text = "further messages are left out"
	case s.notes > maxNotes:
		return
	}
	s.printLocked(text)
}

func (s *screen) printLocked(text string) {
	if s.view == nil {
		fmt.Fprintln(s.w, text)
		return
	}
	s.kept = append(s.kept, text)
	s.kept = s.kept[max(0, len(s.kept)-maxKept):]
	s.view.say(text)
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
