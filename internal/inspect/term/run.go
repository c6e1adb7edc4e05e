package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop/internal/logging"
)

// Run shows a server on a terminal, first the given room, until the user quits or ctx ends. env,
// the environment, tells which colors the terminal has. If in is nil, Run reads keys from the
// terminal of the process.
func Run(ctx context.Context, s Server, room string, env []string, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f := &feed{server: s, room: room}
	m := newModel(room, &effects{ctx, f})
	o := []tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithFPS(30), tea.WithEnvironment(env), tea.WithOutput(out), tea.WithWindowSize(m.width, m.height)}
	if in != nil {
		o = append(o, tea.WithInput(in))
	}
	p := tea.NewProgram(m, o...)
	f.send = p.Send
	var reading sync.WaitGroup
	reading.Go(func() { f.run(ctx) })
	_, err := p.Run()
	stop()
	reading.Wait()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil { // A signal is a normal end.
		return nil
	}
	return err
}

// effects are the effects of keys on the server.
type effects struct {
	ctx  context.Context
	feed *feed
}

func (e *effects) follow(room string)        { e.feed.follow(room) }
func (e *effects) worst(room string) tea.Msg { return e.feed.worst(e.ctx, room) }
func (e *effects) kick(room string, client uint64) tea.Msg {
	return e.feed.kick(e.ctx, room, client)
}

// linesEvery is the number of overviews between two lines of Print; one overview arrives each
// second.
const linesEvery = 5

// Print writes one line with the server's main figures every five seconds until ctx ends. It is
// for an output that is not a terminal.
func Print(ctx context.Context, s Server, room string, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	m, overviews, was := newModel(room, nil), 0, link{}
	write := func(text string) {
		if _, err := fmt.Fprintln(out, logging.Escape(text)); err != nil {
			failed = err
			stop()
		}
	}
	f := &feed{server: s, room: room}
	f.send = func(msg tea.Msg) {
		m.take(msg)
		switch msg := msg.(type) {
		case overviewEvent:
			if overviews++; overviews%linesEvery == 1 {
				write(m.summary())
			}
		case link:
			overviews = 0
			if !msg.up && msg != was {
				write(msg.text)
			}
			was = msg
		}
	}
	f.run(ctx)
	return failed
}

// Check returns an error if the server answers unlike this version, or does not have the room.
func Check(ctx context.Context, s Server, room string) error {
	if _, err := s.Ask(ctx, http.MethodGet, "ticks", inRoom(room)); err != nil {
		return err
	}
	body, err := s.Ask(ctx, http.MethodGet, "api/overview", nil)
	if err == nil {
		_, err = decode("overview", body, 0)
	}
	return err
}
