package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/netloop/netloop/internal/inspect/term"
	"github.com/netloop/netloop/internal/tui"
)

// inspectFlags are the flags of inspect.
type inspectFlags struct {
	adminFlags
	ui, room, listen string
}

// inspectServer shows a running server in this terminal.
func (p *program) inspectServer(ctx context.Context, f *inspectFlags) error {
	switch {
	case f.ui != "term":
		return fmt.Errorf("--ui: %q is not a user interface: use term", f.ui)
	case f.address == "":
		return errNoAdmin
	}
	s := &inspected{flags: &f.adminFlags, start: time.Now()}
	if err := term.Check(ctx, s, f.room); err != nil {
		return err
	}
	show := func() error { return term.Print(ctx, s, f.room, p.stdout) }
	if p.onTerminal() {
		show = func() error { return term.Run(ctx, s, f.room, p.env, nil, p.stdout) }
	}
	return failed(show())
}

// onTerminal reports whether stdout is a terminal with a cursor that can be moved.
func (p *program) onTerminal() bool {
	file, ok := p.stdout.(*os.File)
	return ok && tui.IsTerminal(file, p.env)
}

// inspected is a running server. It implements term.Server.
type inspected struct {
	flags *adminFlags
	start time.Time
}

// Now implements term.Server.
func (s *inspected) Now() time.Duration { return time.Since(s.start) }

// Ask implements term.Server.
func (s *inspected) Ask(ctx context.Context, method, page string, query url.Values) ([]byte, error) {
	body, _, err := s.flags.ask(ctx, method, page, query)
	return body, err
}

// Stream implements term.Server.
func (s *inspected) Stream(ctx context.Context, page string, query url.Values) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	silent := time.AfterFunc(viewTimeout, cancel)
	resp, _, err := s.flags.open(ctx, http.MethodGet, page, query) //nolint:bodyclose // by Close
	if err != nil {
		cancel()
		silent.Stop()
		if network := (*url.Error)(nil); errors.As(err, &network) {
			err = errors.New("the server does not answer")
		}
		return nil, err
	}
	return &stream{resp.Body, silent, cancel}, nil
}

// stream ends when it has been silent for viewTimeout. A stream of the admin listener has an event
// each second.
type stream struct {
	io.ReadCloser
	silent *time.Timer
	cancel context.CancelFunc
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	s.silent.Reset(viewTimeout)
	return n, err
}

func (s *stream) Close() error {
	s.silent.Stop()
	s.cancel()
	return s.ReadCloser.Close()
}
