package main

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/seats"
)

// table draws the table with the player's hand.
func (m model) table() (top, body, keys string) {
	v := &m.view
	title := "Table " + clean(v.Table.Name)
	if v.Table.Round > 0 {
		title += fmt.Sprintf(" · round %d · to %d points", v.Table.Round, v.Table.Goal)
	}
	right := clean(m.name)
	if v.Table.Code != "" {
		right = "code " + gold.Render(clean(v.Table.Code)) + " · " + right
	}
	if v.Place < 0 {
		right += " (watching)"
	}
	parts := []string{m.seats(), m.middle(), "   " + m.event(), "   " + m.said(), m.hands()}
	return m.head(title, right), strings.Join(parts, "\n"), m.tableKeys()
}

// seats draws the players of the table.
func (m model) seats() string {
	var b strings.Builder
	v := &m.view
	for i, s := range v.Seats {
		mark, name := "  ", clean(s.Player)
		if v.Table.Phase == cards.Playing && i == int(v.Table.Turn) {
			mark = "▸ "
		}
		if i == v.Place {
			name += " (you)"
		}
		if s.Presence.Status != seats.Here {
			name += " · away"
		}
		held := fmt.Sprintf("%2d %s", s.Cards, plural(int(s.Cards), "card"))
		line := " " + mark + fit(name, 32) + " " + fit(strings.Repeat("▮", min(int(s.Cards), 16)), 16) + " " + fit(held, 9) + fmt.Sprintf("%5d points", s.Score)
		switch {
		case mark != "  ":
			line = gold.Render(line)
		case s.Presence.Status != seats.Here:
			line = soft.Render(line)
		}
		b.WriteString(line + "\n")
	}
	for range cards.MaxPlayers - len(v.Seats) {
		b.WriteString("\n")
	}
	return b.String()
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// middle draws the discards and the pile.
func (m model) middle() string {
	t := m.view.Table
	if t.Phase == cards.Waiting {
		left := int(t.Players) - len(m.view.Seats)
		text := fmt.Sprintf("Waiting for %d more %s.", left, plural(left, "player"))
		if t.Code != "" {
			text += " Tell them the code " + clean(t.Code) + "."
		}
		return "\n\n   " + strong.Render(text) + "\n\n\n"
	}
	rank := strings.TrimSuffix(t.Top.String(), symbol(t.Top.Suit()))
	face := paint(t.Top.Suit(), fmt.Sprintf("┌─────┐\n│%-2s   │\n│  %s  │\n│   %2s│\n└─────┘", rank, symbol(t.Top.Suit()), rank))
	pile := soft.Render("┌─────┐\n│░░░░░│\n│░░░░░│\n│░░░░░│\n└─────┘")
	follow := ""
	if t.Suit != t.Top.Suit() {
		follow = "\n\n follow " + paint(t.Suit, symbol(t.Suit))
	}
	return lipgloss.JoinHorizontal(lipgloss.Top, "      ", pile, "  ", face, follow) +
		"\n" + soft.Render(fmt.Sprintf("       %2d left", t.Pile))
}

// event describes the last event, and the next turn.
func (m model) event() string {
	v := &m.view
	t, left := v.Table, seconds(v.Left)
	who := func(place uint8) string {
		if int(place) >= len(v.Seats) {
			return "Somebody"
		}
		if int(place) == v.Place {
			return "You"
		}
		return clean(v.Seats[place].Player)
	}
	has := func(place uint8, rest string) string {
		if int(place) == v.Place {
			return "You have " + rest
		}
		return who(place) + " has " + rest
	}
	switch t.Phase {
	case cards.Pausing:
		return strong.Render(has(t.Winner, fmt.Sprintf("won round %d.", t.Round))) + fmt.Sprintf(" The next one begins in %d s.", left)
	case cards.Over:
		return gold.Render(has(t.Winner, "won the match!")) + fmt.Sprintf(" Who stays plays again in %d s.", left)
	case cards.Waiting:
		return ""
	case cards.Playing:
	}
	last := "The cards are dealt. "
	switch {
	case t.Turns > 0 && t.Drew:
		last = who(t.Mover) + " drew a card. "
	case t.Turns > 0:
		last = who(t.Mover) + " played " + t.Top.String() + ". "
	}
	if v.MyTurn() {
		return last + gold.Render(fmt.Sprintf("Your turn: %d s", left))
	}
	return last + fmt.Sprintf("%s to play: %d s", who(t.Turn), left)
}

// cell is the width of a card of the hand.
const cell = 6

// hands draws the player's cards. A fitting card has a dot below it.
func (m model) hands() string {
	v := &m.view
	hand := v.Hand()
	perLine := max(1, (m.width-6)/cell)
	var b strings.Builder
	for from := 0; from < len(hand); from += perLine {
		var faces, marks strings.Builder
		for i := from; i < min(len(hand), from+perLine); i++ {
			face := " " + hand[i].String() + " "
			if i == m.card {
				face = "[" + hand[i].String() + "]"
			}
			mark := ""
			if v.MyTurn() && v.Fits(hand[i]) {
				mark = "  •"
			}
			faces.WriteString(paint(hand[i].Suit(), face) + strings.Repeat(" ", max(0, cell-lipgloss.Width(face))))
			marks.WriteString(fit(mark, cell))
		}
		b.WriteString("\n   " + faces.String() + "\n   " + strings.TrimRight(marks.String(), " "))
	}
	return b.String()
}

func (m model) tableKeys() string {
	v := &m.view
	switch {
	case m.mode == suiting:
		return gold.Render("Which suit?") + "  c ♣   d ♦   h ♥   s ♠   esc back"
	case v.Place < 0:
		return "esc lobby · q quit"
	case v.Table.Phase == cards.Over:
		return "esc lobby · q quit · or stay for the next match"
	case v.MyTurn():
		return "←→ choose · enter play · d draw · esc lobby · q quit"
	}
	return "esc lobby · q quit"
}
