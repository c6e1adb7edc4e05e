package main

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
)

// lobby draws the list of tables.
func (m model) lobby() (top, body, keys string) {
	who := clean(m.name)
	if m.won.Played > 0 {
		who += fmt.Sprintf(" · won %d of %d", m.won.Won, m.won.Played)
	}
	var b strings.Builder
	list := m.view.Listings
	switch {
	case len(list) == 0 && m.view.State.Phase != client.Playing: // The list has not arrived yet.
	case len(list) == 0:
		b.WriteString("\n   There is no table yet. Press p to play: others will find you.\n")
	default:
		b.WriteString(soft.Render(m.columns("table", "players", "seats", "")) + "\n")
	}
	room := max(1, m.height-9)
	first := max(0, min(m.row-room/2, len(list)-room))
	for i := first; i < min(len(list), first+room); i++ {
		line := m.listing(list[i])
		if i == m.row {
			line = gold.Render(">" + strings.TrimPrefix(line, " "))
		}
		b.WriteString(line + "\n")
	}
	if more := len(list) - first - room; more > 0 {
		b.WriteString(soft.Render(fmt.Sprintf("   … and %d more", more)) + "\n")
	}
	b.WriteString("\n   " + m.prompt() + "\n")
	return m.head("Crazy Eights · lobby", who), b.String(), m.lobbyKeys()
}

// columns writes a row of the list.
func (m model) columns(table, players, seats, state string) string {
	wide := m.width - 2 - 20 - 8 - 12
	return " " + fit(table, 20) + " " + fit(players, wide-2) + " " + fit(seats, 7) + " " + state
}

// fit cuts or pads a text to a width.
func fit(text string, width int) string {
	if lipgloss.Width(text) > width {
		r := []rune(text)
		for len(r) > 0 && lipgloss.Width(string(r)) >= width {
			r = r[:len(r)-1]
		}
		text = string(r) + "…"
	}
	return text + strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
}

func (m model) listing(l cards.Listing) string {
	state := fmt.Sprintf("round %d", l.Round)
	switch {
	case slices.Contains(l.Players, m.name) && l.Phase != cards.Waiting:
		state = "your match"
	case l.Phase == cards.Waiting:
		state = "waiting"
	case l.Phase == cards.Over:
		state = "over"
	}
	return m.columns(" "+clean(l.Table), clean(strings.Join(l.Players, ", ")), fmt.Sprintf("%d/%d", l.Taken, l.Seats), state)
}

// prompt returns the line under the list: the typed text, or a message.
func (m model) prompt() string {
	switch m.mode {
	case naming:
		return strong.Render("Name of the table: ") + clean(m.typed) + "▏"
	case coding:
		return strong.Render("Code of the private table: ") + clean(strings.ToUpper(m.typed)) + "▏"
	default:
		return m.said()
	}
}

func (m model) lobbyKeys() string {
	if m.mode == naming || m.mode == coding {
		return "enter go · esc back"
	}
	doing := "enter sit"
	if m.row < len(m.view.Listings) && m.onlyWatch(m.view.Listings[m.row]) {
		doing = "enter watch"
	}
	return "p play · ↑↓ " + doing + " · w watch · n new · x private · c code · q quit"
}
