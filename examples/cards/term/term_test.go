package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/bot"
)

// screen collects a program's output.
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
	for end := time.Now().Add(20 * time.Second); ; <-look.C {
		s.mu.Lock()
		all := s.all.String()
		if strings.Contains(all, text) {
			s.all.Reset()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if time.Now().After(end) {
			t.Fatalf("the screen did not show %q:\n%s", text, all)
		}
	}
}

// The program plays on a server: it shows the lobby, takes a seat, waits for a second player, plays
// a turn, and moves back; when the server closes it reports that, and a key ends it.
func TestTheTerminalProgramPlays(t *testing.T) {
	g := cards.New(nil)
	g.Config().(*cards.Config).Players = 2
	server, err := netloop.New(netloop.Config{Offline: true}, g)
	if err != nil {
		t.Fatal(err)
	}
	serving, closeServer := context.WithCancel(t.Context())
	defer closeServer()
	served := make(chan error, 1)
	go func() { served <- server.Run(serving) }()

	s := newSession("this process", "ann")
	s.local = server
	keyboard, typed := io.Pipe()
	var out screen
	ended := make(chan error, 1)
	go func() {
		ended <- show(t.Context(), s, tea.WithInput(keyboard), tea.WithOutput(&out), tea.WithoutSignals(), tea.WithWindowSize(80, 24))
	}()
	press := func(text string) {
		t.Helper()
		if _, err := io.WriteString(typed, text); err != nil {
			t.Error(err)
		}
	}
	out.shows(t, "There is no table yet")
	press("p")
	out.shows(t, "Waiting for 1 more player")

	c, err := client.Dial(serving, "", client.Config{Schema: cards.Schema, Local: server, Token: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // Its server has ended.
	b := bot.New(c)
	b.Roams = true
	running := make(chan struct{})
	go func() { defer close(running); _ = c.Run(serving) }()
	out.shows(t, "Your turn")
	press("d")
	out.shows(t, "bob") // The match has continued.
	press("\x1b")
	out.shows(t, "your match")
	closeServer()
	if err := <-served; err != nil {
		t.Error(err)
	}
	out.shows(t, "Looking for it again")
	press("q")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-running
}

// A spectator returns to a full table as a spectator, and to the lobby as a player.
func TestASpectatorReturnsToWatching(t *testing.T) {
	g := cards.New(nil)
	g.Config().(*cards.Config).Players = 2
	server, err := netloop.New(netloop.Config{Offline: true}, g)
	if err != nil {
		t.Fatal(err)
	}
	serving, closeServer := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Run(serving) }()
	dial := func(name, room string, watching bool) {
		t.Helper()
		s := newSession("this process", name)
		s.local, s.watching = server, watching
		c, err := s.dial(t.Context(), room)
		if err != nil {
			t.Fatalf("%s in room %q: %v", name, room, err)
		}
		t.Cleanup(func() { _ = c.Close() }) // Its server has ended.
	}
	dial("ann", "table/oak", false)
	dial("bob", "table/oak", false)
	dial("eve", "table/oak", true)
	dial("eve", "", true)
	closeServer()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
