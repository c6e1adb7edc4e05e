package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/inspect/term"
)

// screen collects the output of a program.
type screen struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(b)
}

// shows waits until a text was written, and discards the output before it.
func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for limit := time.Now().Add(patience); ; <-look.C {
		s.mu.Lock()
		_, rest, found := strings.Cut(s.all.String(), text)
		if found {
			s.all.Reset()
			s.all.WriteString(rest)
		}
		s.mu.Unlock()
		if found {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the screen does not show %q: %q", text, rest)
		}
	}
}

// inspectedGame serves with tokens, and returns the address of its admin listener and their file.
func inspectedGame(t *testing.T) (r *running, at, tokens string) {
	t.Helper()
	tokens = write(t, "tokens", "read a-token-of-a-reader\nwrite a-token-of-a-writer\n")
	r = start(t, newGame(), nil, "--admin-token-file", tokens)
	return r, adminOf(r), tokens
}

// The terminal shows the views of a running server, removes a client after a question, and says
// that the server has ended.
func TestInspectShowsARunningServer(t *testing.T) {
	server, at, tokens := inspectedGame(t)
	_, listen, _ := strings.Cut(server.banner(), "listen   ")
	listen, _, _ = strings.Cut(listen, " ")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.Dial(ctx, listen, client.Config{Schema: shooter})
	if err != nil {
		t.Fatal(err)
	}
	played := make(chan error, 1)
	go func() { played <- c.Run(ctx) }()

	keyboard, typed := io.Pipe()
	var out screen
	ended := make(chan error, 1)
	s := &inspected{flags: &adminFlags{address: at, tokens: tokens}, start: time.Now()}
	go func() { ended <- term.Run(ctx, s, "", []string{"TERM=xterm"}, keyboard, &out) }()
	press := func(keys string) {
		t.Helper()
		if _, err := io.WriteString(typed, keys); err != nil {
			t.Error(err)
		}
	}
	out.shows(t, "tick p99")
	out.shows(t, "shooter · up for")
	press("2")
	out.shows(t, "causes:")
	press("3")
	out.shows(t, "at tick")
	press("j")
	press("x")
	out.shows(t, "Remove client 1")
	press("y")
	out.shows(t, "client 1 is removed")
	if err := <-played; !kicked(err) {
		t.Errorf("the client ended with %v", err)
	}
	_ = c.Close() // It has ended.
	server.stop()
	out.shows(t, "offline")
	press("q")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = typed.Close() // The program's reader waits for a key.
}

func kicked(err error) bool {
	var closed *netloop.Closed
	return errors.As(err, &closed) && closed.Code == netloop.CodeKicked
}

// Without a terminal the command prints lines until it is interrupted.
func TestInspectPrintsLinesWithoutATerminal(t *testing.T) {
	server, at, tokens := inspectedGame(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out := &ready{come: make(chan struct{})}
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"server", "inspect", "--ui", "term", "--admin", at, "--admin-token-file", tokens}, nil, out, io.Discard, newGame())
	}()
	select {
	case <-out.come:
	case <-time.After(patience):
		t.Error("there is no line")
	}
	interrupt()
	if got := <-exit; got != exitOK || !strings.Contains(out.String(), "Hz, tick p99") {
		t.Errorf("exit %d: %s", got, out.String())
	}
	server.stop()
}

// A mistake is one line that names the remedy.
func TestInspectNamesMistakes(t *testing.T) {
	server, at, tokens := inspectedGame(t)
	defer server.stop()
	for _, c := range []struct {
		exit int
		args []string
		want string
	}{
		{exitUsage, nil, "--admin is missing"},
		{exitUsage, []string{"--admin", at, "--ui", "web"}, `--ui: "web" is not a user interface: use term`},
		{exitFailed, []string{"--admin", at}, "401"},
		{exitFailed, []string{"--admin", at, "--admin-token-file", tokens, "--room", "none"}, "there is no room"},
		{exitFailed, []string{"--admin", "127.0.0.1:1"}, "no answer"},
	} {
		got := command(t, newGame(), nil, append([]string{"inspect"}, c.args...)...)
		if got.exit != c.exit {
			t.Errorf("%q: exit %d", c.args, got.exit)
		}
		oneLineOf(t, got.stderr, c.want)
	}
}
