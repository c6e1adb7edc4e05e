package main

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/player"
)

// model is the state of the screen. It implements tea.Model, and is a value: each Update returns
// another.
type model struct {
	name          string
	act           func(action)
	width, height int

	view    player.View // the newest
	online  bool
	trouble string // why it is offline
	note    string // the last refusal
	won     cards.Won

	row   int        // in the lobby's list
	card  int        // in the hand
	mode  mode       // selects the actions of keys
	typed string     // so far
	hand  cards.Card // an eight, while its suit is being chosen
}

// mode selects the actions of keys.
type mode uint8

const (
	browsing mode = iota // in the list or in the hand
	naming               // a new table
	coding               // the code of a private table
	suiting              // an eight
)

func newModel(name string, act func(action)) model {
	return model{name: name, act: act, width: 80, height: 24, trouble: "Connecting…"}
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case seen:
		m = m.see(msg.view)
	case trouble:
		m.online, m.trouble, m.mode = false, msg.text, browsing
	case refused:
		m.note = msg.text
	case record:
		m.won = msg.won
	case tea.KeyPressMsg:
		return m.press(msg)
	}
	return m, nil
}

// see takes a new view of the client.
func (m model) see(v *player.View) model {
	was := m.view
	m.view, m.online = *v, v.State.Phase != client.Closed
	if was.AtTable != v.AtTable {
		m.mode, m.card, m.typed = browsing, 0, ""
		if v.AtTable {
			m.note = ""
		}
	}
	if m.mode == suiting && !v.MyTurn() {
		m.mode = browsing
	}
	m.row = max(0, min(m.row, len(v.Listings)-1))
	m.card = max(0, min(m.card, len(v.Hand())-1))
	if v.MyTurn() && !was.MyTurn() { // The first fitting card is usually the wanted one.
		m.note = ""
		if i := slices.IndexFunc(v.Hand(), v.Fits); i >= 0 {
			m.card = i
		}
	}
	return m
}

// press takes a key.
func (m model) press(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch key := k.String(); {
	case key == "ctrl+c" || key == "q" && m.mode != naming && m.mode != coding:
		return m, tea.Quit
	case !m.online || m.view.State.Phase != client.Playing:
		return m, nil
	case m.mode == naming || m.mode == coding:
		return m.typing(k)
	case m.mode == suiting:
		return m.suit(key)
	case m.view.AtTable:
		return m.atTable(key)
	default:
		return m.inLobby(key)
	}
}

// does sends an action of the player.
func (m model) does(a action) (tea.Model, tea.Cmd) {
	m.note, m.mode, m.typed = "", browsing, ""
	act := m.act
	return m, func() tea.Msg { act(a); return nil }
}

// inLobby takes a key in the lobby.
func (m model) inLobby(key string) (tea.Model, tea.Cmd) {
	list := m.view.Listings
	switch key {
	case "up", "k":
		m.row = max(0, m.row-1)
	case "down", "j":
		m.row = max(0, min(len(list)-1, m.row+1))
	case "p":
		return m.does(action{do: sit})
	case "x":
		return m.does(action{do: sit, sit: cards.SitDown{Private: true}})
	case "n":
		m.mode, m.typed, m.note = naming, "", ""
	case "c":
		m.mode, m.typed, m.note = coding, "", ""
	case "enter", "w":
		if m.row < len(list) {
			l := list[m.row]
			return m.does(action{do: sit, sit: cards.SitDown{Table: l.Table, Watch: key == "w" || m.onlyWatch(l)}})
		}
	}
	return m, nil
}

// onlyWatch reports whether the player can only watch at a table.
func (m model) onlyWatch(l cards.Listing) bool {
	if l.Phase == cards.Playing || l.Phase == cards.Pausing {
		return !slices.Contains(l.Players, m.name)
	}
	return l.Taken >= l.Seats
}

// typing takes a key of a text.
func (m model) typing(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	most := 24
	switch k.Code {
	case tea.KeyEscape:
		m.mode, m.typed = browsing, ""
	case tea.KeyBackspace:
		if r := []rune(m.typed); len(r) > 0 {
			m.typed = string(r[:len(r)-1])
		}
	case tea.KeyEnter:
		text := strings.TrimSpace(m.typed)
		switch {
		case text == "":
			m.mode = browsing
		case m.mode == coding:
			return m.does(action{do: enter, code: strings.ToUpper(text)})
		default:
			return m.does(action{do: sit, sit: cards.SitDown{Table: text}})
		}
	default:
		if text := m.typed + k.Text; len(text) <= most {
			m.typed = text
		}
	}
	return m, nil
}

// atTable takes a key at a table.
func (m model) atTable(key string) (tea.Model, tea.Cmd) {
	hand := m.view.Hand()
	switch key {
	case "left", "h":
		m.card = max(0, m.card-1)
	case "right", "l":
		m.card = max(0, min(len(hand)-1, m.card+1))
	case "esc":
		return m.does(action{do: leave})
	case "d":
		if m.view.MyTurn() {
			return m.does(action{do: draw})
		}
	case "enter", "space":
		switch {
		case !m.view.MyTurn() || m.card >= len(hand):
		case !m.view.Fits(hand[m.card]):
			m.note = hand[m.card].String() + " does not fit: follow " + symbol(m.view.Table.Suit) + " or the rank, or draw (d)."
		case hand[m.card].Eight():
			m.mode, m.hand, m.note = suiting, hand[m.card], ""
		default:
			return m.does(action{do: play, card: hand[m.card]})
		}
	}
	return m, nil
}

// suit takes the key that chooses the suit of an eight.
func (m model) suit(key string) (tea.Model, tea.Cmd) {
	if i := slices.Index([]string{"c", "d", "h", "s"}, key); i >= 0 {
		return m.does(action{do: play, card: m.hand, suit: cards.Suit(i)})
	}
	if key == "esc" {
		m.mode = browsing
	}
	return m, nil
}
