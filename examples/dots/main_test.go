package main

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// TestDotMoves plays the game over a bad link: the dot moves on the server and at the client.
func TestDotMoves(t *testing.T) {
	w := netlooptest.New(t, Game{})
	c := w.Join("", nil, netlooptest.Link{Delay: 30 * time.Millisecond, Loss: 0.1})
	w.Until(120, func() bool { return c.State().Phase == client.Playing })
	client.Send(c, Moves, Move{DX: 60})
	w.Step(120)
	client.Send(c, Moves, Move{})
	w.Step(60)

	var want Dot
	w.Tick(func(t *netloop.Tick) {
		for dot := range Dots.Owned(t, c.ID()) {
			want = dot.State()
		}
	})
	if want.X < 60 {
		t.Errorf("after two seconds at 60 units a second the dot is at %v", want.X)
	}
	var got Dot
	client.Watch(c, Dots, client.Watcher[Dot]{Spawn: func(_ *netloop.Tick, o *netloop.Object[Dot]) { got = o.State() }})
	w.Step(1)
	if got.X-want.X > 1.0/8 || want.X-got.X > 1.0/8 || got.Score != want.Score {
		t.Errorf("the client has %+v, the server has %+v", got, want)
	}
}

// TestReadmeShowsThisGame keeps the README's listing equal to the game.
func TestReadmeShowsThisGame(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	game, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+string(game)+"```") {
		t.Error("README.md does not show examples/dots/main.go: copy it there")
	}
	if n := strings.Count(string(game), "\n"); n > 50 {
		t.Errorf("the game has %d lines, and the README says at most 50", n)
	}
}

// TestBookShowsThisPage keeps the listings of docs/GUIDE.md equal to the page.
func TestBookShowsThisPage(t *testing.T) {
	book, err := os.ReadFile("../../docs/GUIDE.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for name, kind := range map[string]string{"index.html": "html", "dots.js": "js"} {
		page, err := fs.ReadFile(Game{}.Web(), name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(book), "```"+kind+"\n"+string(page)+"```") {
			t.Errorf("docs/GUIDE.md does not show examples/dots/web/%s: copy it there", name)
		}
		lines += strings.Count(string(page), "\n")
	}
	if lines > 60 {
		t.Errorf("the page has %d lines, and the documentation says 50", lines)
	}
}
