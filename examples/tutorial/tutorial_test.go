package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	prediction "github.com/netloop/netloop/examples/tutorial/2-prediction"
	rounds "github.com/netloop/netloop/examples/tutorial/3-rounds"
	lobby "github.com/netloop/netloop/examples/tutorial/4-lobby"
	records "github.com/netloop/netloop/examples/tutorial/6-records"
	"github.com/netloop/netloop/netlooptest"
)

// join lets a client join, and waits until it plays.
func join(t *testing.T, w *netlooptest.World, params any, l netlooptest.Link) *client.Client {
	t.Helper()
	c := w.Join("", params, l)
	w.Until(120, func() bool { return c.State().Phase == client.Playing })
	return c
}

// until runs the world until done, and lets work outside of rooms end in between.
func until(t *testing.T, w *netlooptest.World, what string, done func() bool) {
	t.Helper()
	for range 600 {
		if done() {
			return
		}
		w.Step(1)
		w.Settle()
	}
	t.Fatalf("timed out: %s", what)
}

// Part 2: with a round trip of 200 ms a dot moves on its page at once, and no prediction is wrong.
func TestPartTwoPredicts(t *testing.T) {
	w := netlooptest.New(t, prediction.Game{})
	c := join(t, w, nil, netlooptest.Link{Delay: 100 * time.Millisecond})
	var next prediction.Control
	client.Inputs(c, prediction.Controls, func(*netloop.Tick) prediction.Control { return next })
	client.Predict(c, prediction.Dots, prediction.Controls, func(d *prediction.Dot, _ *netloop.Tick, in prediction.Control) { d.Move(in) })
	w.Tick(func(t *netloop.Tick) {
		for o := range prediction.Dots.All(t) {
			o.Edit(t).X, o.Edit(t).Y = 10, 50
		}
		for o := range prediction.Coins.All(t) {
			*o.Edit(t) = prediction.Coin{X: 80, Y: 50}
		}
	})
	w.Step(60)
	next.DX = 100 // A cheat is no faster.
	w.Step(8)
	var page, server prediction.Dot
	look := func() {
		w.Look(c, func(t *netloop.Tick) {
			for o := range prediction.Dots.Owned(t, c.ID()) {
				page, _ = client.PredictedState(c, o)
			}
		})
		w.Tick(func(t *netloop.Tick) {
			for o := range prediction.Dots.All(t) {
				server = o.State()
			}
		})
	}
	if look(); page.X < 14 || page.X > 15 || server.X != 10 {
		t.Errorf("after eight steps the page has %v, and the server %v", page.X, server.X)
	}
	w.Step(120)
	if look(); server.Score != 1 || server.X < 80 {
		t.Errorf("the server has %+v after the coin", server)
	}
	for _, m := range client.Mispredictions(c, prediction.Dots) {
		if m.Field != "Score" { // The server alone takes coins.
			t.Errorf("mispredicted: %+v", m)
		}
	}
}

// Part 3: a round ends after a minute with a winner, and the next one begins with no scores.
func TestPartThreeHasRounds(t *testing.T) {
	w := netlooptest.New(t, rounds.Game{}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(10)}))
	ada := join(t, w, rounds.JoinParams{Name: "ada"}, netlooptest.Link{})
	nameless := w.Join("", nil, netlooptest.Link{})
	w.Until(60, func() bool { return nameless.Closed() != nil })
	w.Tick(func(t *netloop.Tick) {
		for o := range rounds.Dots.Owned(t, ada.ID()) {
			o.Edit(t).Score = 3
		}
	})
	var winner string
	var score int32
	look := func() {
		w.Look(ada, func(t *netloop.Tick) {
			for o := range rounds.Rounds.All(t) {
				winner = o.State().Winner
			}
			for o := range rounds.Dots.All(t) {
				score = o.State().Score
			}
		})
	}
	w.Advance(58 * time.Second)
	if look(); winner != "" || score != 3 {
		t.Errorf("before the end %q has won, the score is %d", winner, score)
	}
	w.Advance(5 * time.Second)
	if look(); winner != "ada" {
		t.Errorf("after a minute %q has won", winner)
	}
	w.Advance(5 * time.Second)
	if look(); winner != "" || score != 0 {
		t.Errorf("in the next round %q has won, the score is %d", winner, score)
	}
}

// Part 4: players move from the lobby to one arena, and back. The lobby lists it.
func TestPartFourHasALobby(t *testing.T) {
	w := netlooptest.New(t, lobby.Game{})
	ada := join(t, w, lobby.JoinParams{Name: "ada"}, netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.05})
	bob := join(t, w, lobby.JoinParams{Name: "bob"}, netlooptest.Link{})
	sees := func(c *client.Client) (dots int, listed uint8) {
		w.Look(c, func(t *netloop.Tick) {
			dots = lobby.Dots.Len(t)
			for o := range lobby.Listings.All(t) {
				listed = o.State().Players
			}
		})
		return dots, listed
	}
	client.Send(ada, lobby.Play, lobby.Request{})
	until(t, w, "ada plays", func() bool { dots, _ := sees(ada); return dots == 1 })
	until(t, w, "bob sees that", func() bool { _, listed := sees(bob); return listed == 1 })
	client.Send(bob, lobby.Play, lobby.Request{})
	until(t, w, "they meet", func() bool { a, _ := sees(ada); b, _ := sees(bob); return a == 2 && b == 2 })
	client.Send(bob, lobby.Leave, lobby.Request{})
	until(t, w, "bob is back", func() bool { dots, listed := sees(bob); return dots == 0 && listed == 1 })
}

// Part 6: the winner of a round is in the lobby's list, also after a crash of the server.
func TestPartSixKeepsRecords(t *testing.T) {
	folder := t.TempDir()
	open := func() *records.Game { return &records.Game{Settings: records.Settings{Records: folder}} }
	w := netlooptest.New(t, open())
	ada := join(t, w, records.JoinParams{Name: "ada"}, netlooptest.Link{})
	bob := join(t, w, records.JoinParams{Name: "bob"}, netlooptest.Link{})
	client.Send(ada, records.Play, records.Request{})
	arena := ""
	until(t, w, "ada plays", func() bool { arena = ada.Room(); return strings.HasPrefix(arena, "arena/") })
	w.Advance(50 * time.Second)
	w.Room(arena).Tick(func(t *netloop.Tick) {
		for o := range records.Dots.All(t) {
			o.Edit(t).Score = 3
		}
	})
	w.Advance(12 * time.Second)
	best := func() (list []records.Record) {
		w.Look(bob, func(t *netloop.Tick) {
			for o := range records.Bests.All(t) {
				list = slices.Clone(o.State().Records)
			}
		})
		return list
	}
	won := func() bool { return slices.Equal(best(), []records.Record{{Name: "ada", Score: 3}}) }
	until(t, w, "bob sees the record", won)
	w.Settle() // The record is saved.
	w.Restart(open())
	until(t, w, "bob is back", func() bool { return bob.State().Phase == client.Playing && won() })
}

// parts are the folders of the code of each part, with the folders that it continues. Without
// folders a part changes no code.
var parts = []struct{ code, continues []string }{
	{[]string{"../starters/blank", "../starters/blank/game"}, nil},
	{[]string{"2-prediction"}, []string{"../starters/blank/game"}},
	{[]string{"3-rounds"}, []string{"2-prediction"}},
	{[]string{"4-lobby"}, []string{"3-rounds"}},
	{[]string{"5-bots"}, []string{"../starters/blank/bots"}},
	{[]string{"6-records"}, []string{"4-lobby"}},
	{[]string{"../starters/common", "../../deploy/host"}, nil},
}

// Each listing of docs/TUTORIAL.md is a piece of the part's code. Each line of code that a part
// adds or changes is in its listings, so a reader gets the folder. Style sheets are left out, and
// of the last part only the listings are compared.
func TestThePageShowsTheCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/TUTORIAL.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(page), "\n## ")[1:]
	if len(sections) != len(parts) {
		t.Fatalf("docs/TUTORIAL.md has %d parts, want %d", len(sections), len(parts))
	}
	for i, part := range parts {
		was, code := lines(t, part.continues), files(t, part.code)
		shown := map[string]bool{}
		for _, listing := range listings(sections[i]) {
			for line := range strings.Lines(listing) {
				shown[line] = true
			}
			if !slices.ContainsFunc(code, func(text string) bool { return strings.Contains("\n"+text, "\n"+listing) }) {
				t.Errorf("part %d shows a listing that is not in %v:\n%s", i+1, part.code, listing)
			}
		}
		if i == len(parts)-1 {
			continue
		}
		for line := range lines(t, part.code) {
			if !was[line] && !shown[line] && !strings.HasPrefix(line, "package ") && !strings.Contains(line, "examples/") {
				t.Errorf("part %d does not show this line of %v: %q", i+1, part.code, line)
			}
		}
	}
}

// listings returns the fenced code of a part, except commands.
func listings(section string) (all []string) {
	for i, text := range strings.Split(section, "```") {
		kind, code, _ := strings.Cut(text, "\n")
		if i%2 == 1 && kind != "sh" {
			all = append(all, code)
		}
	}
	return all
}

// files returns the texts of the code in folders and their pages, without style sheets.
func files(t *testing.T, folders []string) (all []string) {
	t.Helper()
	for _, folder := range folders {
		for _, pattern := range []string{"*", "web/*"} {
			names, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if info, err := os.Stat(name); err != nil || info.IsDir() || slices.Contains([]string{".css", ".svg", ".md"}, path.Ext(name)) || strings.HasSuffix(name, "_test.go") {
					continue
				}
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(text))
			}
		}
	}
	return all
}

// lines returns the lines of the code in folders.
func lines(t *testing.T, folders []string) map[string]bool {
	all := map[string]bool{}
	for _, text := range files(t, folders) {
		for line := range strings.Lines(text) {
			all[line] = true
		}
	}
	return all
}
