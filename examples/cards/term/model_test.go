package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/player"
	"github.com/netloop/netloop/seats"
)

var rewrite = flag.Bool("rewrite", false, "write the screens of testdata")

// card makes a card of a rank from 0 for the ace.
func card(rank int, s cards.Suit) cards.Card { return cards.Card(13*int(s) + rank) }

func inLobby(l ...cards.Listing) seen {
	return seen{&player.View{State: client.State{Phase: client.Playing}, Place: -1, Listings: l}}
}

// atTable is a table of three at which ann has a hand and the turn.
func atTable(change func(*player.View)) seen {
	v := &player.View{
		State: client.State{Phase: client.Playing}, AtTable: true, Left: 12 * time.Second, Place: 1,
		Table: cards.Table{Name: "oak", Phase: cards.Playing, Top: card(10, cards.Hearts), Suit: cards.Hearts, Turn: 1, Pile: 31, Round: 2, Players: 3, Goal: 100, Turns: 4},
		Seats: []cards.Seat{
			{Place: 0, Player: "Ada (bot)", Cards: 4, Score: 23},
			{Place: 1, Player: "ann", Cards: 5, Hand: []cards.Card{card(2, cards.Clubs), card(7, cards.Clubs), card(9, cards.Diamonds), card(0, cards.Hearts), card(10, cards.Spades)}},
			{Place: 2, Player: "bob", Cards: 1, Score: 7, Presence: seats.Presence{Status: seats.Away}},
		},
	}
	if change != nil {
		change(v)
	}
	return seen{v}
}

var (
	oak = cards.Listing{Table: "oak", Players: []string{"Ada (bot)", "bob"}, Taken: 2, Seats: 4}
	elm = cards.Listing{Table: "elm", Players: []string{"Blaise (bot)", "Carl (bot)", "Dana (bot)", "Emmy (bot)"}, Taken: 4, Seats: 4, Phase: cards.Playing, Round: 3}
	fir = cards.Listing{Table: "fir", Players: []string{"ann", "eve\x1b[2J"}, Taken: 1, Seats: 2, Phase: cards.Pausing, Round: 1}
)

// keys makes key messages of a text's letters, or of the names of other keys.
func keys(names ...string) (all []tea.Msg) {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "backspace": tea.KeyBackspace}
	for _, name := range names {
		k := tea.KeyPressMsg{Code: codes[name]}
		switch {
		case name == "ctrl+c":
			k = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		case k.Code == 0:
			k = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		all = append(all, k)
	}
	return all
}

// colors are the sequences that set a colour or a weight.
var colors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// after returns the model after messages, and its actions.
func after(msgs ...tea.Msg) (m model, did []action, quit bool) {
	m = newModel("ann", func(a action) { did = append(did, a) })
	for _, msg := range msgs {
		next, do := m.Update(msg)
		m = next.(model)
		if do != nil {
			_, ended := do().(tea.QuitMsg)
			quit = quit || ended
		}
	}
	return m, did, quit
}

// Every screen fits a terminal of 80 columns and 24 lines, is readable without colours, and equals
// its file in testdata.
func TestScreens(t *testing.T) {
	manyCards := func(v *player.View) {
		for c := range cards.Card(26) {
			v.Seats[1].Hand = append(v.Seats[1].Hand, 2*c+1)
		}
		v.Seats[1].Cards = 31
	}
	over := func(v *player.View) {
		v.Table.Phase, v.Table.Winner, v.Seats[1].Score, v.Seats[1].Hand, v.Seats[1].Cards = cards.Over, 1, 104, nil, 0
	}
	for name, msgs := range map[string][]tea.Msg{
		"connecting":  nil,
		"nobody":      {trouble{"Nobody answers at 127.0.0.1:4433. Is the server running? Trying again…"}},
		"lobby-empty": {inLobby()},
		"lobby":       {record{cards.Won{Played: 12, Won: 3}}, inLobby(oak, elm, fir)},
		"lobby-watch": append([]tea.Msg{inLobby(oak, elm, fir)}, keys("down")...),
		"lobby-code":  append([]tea.Msg{inLobby(oak)}, keys("c", "a", "b", "2")...),
		"lobby-full":  {inLobby(slices.Repeat([]cards.Listing{elm}, 40)...)},
		"lobby-note":  {inLobby(oak), refused{"No table opens with that code."}},
		"turn":        {atTable(nil)},
		"no-fit":      append([]tea.Msg{atTable(nil)}, keys("left", "enter")...),
		"suit":        append([]tea.Msg{atTable(nil)}, keys("enter")...),
		"eight":       {atTable(func(v *player.View) { v.Table.Top, v.Table.Turn, v.Table.Mover = card(7, cards.Clubs), 2, 1 })},
		"many-cards":  {atTable(manyCards)},
		"pause":       {atTable(func(v *player.View) { v.Table.Phase, v.Table.Winner = cards.Pausing, 0 })},
		"over":        {atTable(over)},
		"watching":    {atTable(func(v *player.View) { v.Place, v.Seats[1].Hand = -1, nil })},
		"waiting": {atTable(func(v *player.View) {
			v.Table = cards.Table{Name: "1-ab", Code: "K7MPQ2", Players: 4}
			v.Seats = v.Seats[:2]
			v.Seats[1].Hand = nil
		})},
		"reconnecting": {atTable(func(v *player.View) {
			v.State = client.State{Phase: client.Reconnecting, Attempt: 3, Left: 50 * time.Second}
		})},
		"small": {atTable(nil), tea.WindowSizeMsg{Width: 50, Height: 12}},
	} {
		m, _, _ := after(msgs...)
		got := colors.ReplaceAllString(m.screen(), "")
		lines := strings.Split(got, "\n")
		for i, line := range lines {
			lines[i] = strings.TrimRight(line, " ")
			if lipgloss.Width(line) > m.width {
				t.Errorf("%s: line %d is %d columns wide", name, i, lipgloss.Width(line))
			}
		}
		if len(lines) > 24 || name != "small" && len(lines) != 24 {
			t.Errorf("%s has %d lines", name, len(lines))
		}
		got = strings.Join(lines, "\n") + "\n"
		if strings.ContainsRune(got, '\x1b') {
			t.Errorf("%s: an escape reaches the screen: %q", name, got)
		}
		file := filepath.Join("testdata", name+".txt")
		if *rewrite {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || string(want) != got {
			t.Errorf("%s differs from %s (-rewrite updates it): %v\n%s", name, file, err, got)
		}
	}
}

// The actions of keys, on each screen.
func TestKeys(t *testing.T) {
	lobby, turn := inLobby(oak, elm, fir), atTable(nil)
	others := atTable(func(v *player.View) { v.Table.Turn = 0 })
	for what, c := range map[string]struct {
		on   tea.Msg
		keys []string
		did  []action
		quit bool
	}{
		"plays anywhere":                    {on: lobby, keys: []string{"p"}, did: []action{{do: sit}}},
		"sits down":                         {on: lobby, keys: []string{"enter"}, did: []action{{do: sit, sit: cards.SitDown{Table: "oak"}}}},
		"watches what is full":              {on: lobby, keys: []string{"down", "enter"}, did: []action{{do: sit, sit: cards.SitDown{Table: "elm", Watch: true}}}},
		"goes on with its own match":        {on: lobby, keys: []string{"down", "down", "down", "enter"}, did: []action{{do: sit, sit: cards.SitDown{Table: "fir"}}}},
		"watches":                           {on: lobby, keys: []string{"up", "w"}, did: []action{{do: sit, sit: cards.SitDown{Table: "oak", Watch: true}}}},
		"opens a private table":             {on: lobby, keys: []string{"x"}, did: []action{{do: sit, sit: cards.SitDown{Private: true}}}},
		"opens a table":                     {on: lobby, keys: []string{"n", "q", "u", "y", "backspace", " ", "1", "enter"}, did: []action{{do: sit, sit: cards.SitDown{Table: "qu 1"}}}},
		"enters by a code":                  {on: lobby, keys: []string{"c", "a", "2", "enter"}, did: []action{{do: enter, code: "A2"}}},
		"changes its mind":                  {on: lobby, keys: []string{"c", "a", "esc", "n", "enter", "p"}, did: []action{{do: sit}}},
		"plays the first that fits":         {on: atTable(func(v *player.View) { v.Seats[1].Hand[1] = card(2, cards.Spades) }), keys: []string{"enter"}, did: []action{{do: play, card: card(0, cards.Hearts)}}},
		"plays another":                     {on: turn, keys: []string{"right", "right", "right", "right", "right", " "}, did: []action{{do: play, card: card(10, cards.Spades)}}},
		"plays an eight":                    {on: turn, keys: []string{"enter", "x", "esc", "enter", "d"}, did: []action{{do: play, card: card(7, cards.Clubs), suit: cards.Diamonds}}},
		"plays nothing that is not allowed": {on: turn, keys: []string{"left", "enter"}},
		"draws":                             {on: turn, keys: []string{"d"}, did: []action{{do: draw}}},
		"waits for its turn":                {on: others, keys: []string{"d", "enter", " "}},
		"goes back":                         {on: others, keys: []string{"esc"}, did: []action{{do: leave}}},
		"quits":                             {on: turn, keys: []string{"q"}, quit: true},
		"quits while it types":              {on: lobby, keys: []string{"n", "q", "ctrl+c"}, quit: true},
		"does nothing without a server":     {on: trouble{"gone"}, keys: []string{"p", "d", "enter"}},
		"does nothing on the way":           {on: atTable(func(v *player.View) { v.State.Phase = client.Moving }), keys: []string{"d", "esc"}},
	} {
		_, did, quit := after(append([]tea.Msg{c.on}, keys(c.keys...)...)...)
		if !slices.Equal(did, c.did) || quit != c.quit {
			t.Errorf("%s: it did %+v, and quit: %v", what, did, quit)
		}
	}
}
