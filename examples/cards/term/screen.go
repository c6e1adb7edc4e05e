package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
)

// The least size of the screen.
const (
	leastWidth  = 60
	leastHeight = 20
)

var (
	strong = lipgloss.NewStyle().Bold(true)
	soft   = lipgloss.NewStyle().Faint(true)
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	gold   = lipgloss.NewStyle().Foreground(lipgloss.Yellow).Bold(true)
	alarm  = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
)

// View implements tea.Model.
func (m model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	return v
}

// screen draws the lines of the screen.
func (m model) screen() string {
	if m.width < leastWidth || m.height < leastHeight {
		return fmt.Sprintf("This window is %d × %d.\nThe game needs %d × %d.", m.width, m.height, leastWidth, leastHeight)
	}
	top, body, keys := m.lobby()
	switch {
	case !m.online:
		top, body, keys = m.offline()
	case m.view.AtTable:
		top, body, keys = m.table()
	}
	room := m.height - 4 // Without the head, the foot and their lines.
	lines := strings.Split(strings.TrimRight(body, "\n"), "\n")
	for len(lines) < room {
		lines = append(lines, "")
	}
	rule := soft.Render(strings.Repeat("─", m.width))
	all := append([]string{" " + top, rule}, lines[:room]...)
	all = append(all, rule, " "+keys)
	cut := lipgloss.NewStyle().MaxWidth(m.width)
	for i := range all {
		all[i] = cut.Render(all[i])
	}
	return strings.Join(all, "\n")
}

// offline draws the screen without a server.
func (m model) offline() (top, body, keys string) {
	kept := ""
	if m.view.Place >= 0 && m.view.AtTable {
		kept = "As soon as it is there you are back at your table."
	}
	return m.head("Crazy Eights", clean(m.name)), "\n\n   " + alarm.Render(clean(m.trouble)) + "\n\n   " + kept, "q quit"
}

// head returns the top line: the title on the left, the player on the right.
func (m model) head(left, right string) string {
	return beside(strong.Render(left), right, m.width-2)
}

// beside returns a line of a width with left at its start and right at its end, at least one space
// apart.
func beside(left, right string, width int) string {
	return left + strings.Repeat(" ", max(1, width-lipgloss.Width(left)-lipgloss.Width(right))) + right
}

// said returns the line of the last refusal, or of the connection's state.
func (m model) said() string {
	switch s := m.view.State; {
	case s.Phase == client.Reconnecting && s.Left > 0:
		return alarm.Render(fmt.Sprintf("The connection is lost. Coming back, attempt %d: your seat is kept for %d s.", s.Attempt, seconds(s.Left)))
	case s.Phase == client.Reconnecting:
		return alarm.Render(fmt.Sprintf("The connection is lost. Coming back, attempt %d.", s.Attempt))
	case s.Phase == client.Moving || s.Phase == client.Loading:
		return soft.Render("On the way…")
	case s.Closing > 0:
		return alarm.Render("The server is about to close.")
	}
	return alarm.Render(clean(m.note))
}

// seconds returns a time in whole seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// clean removes the control characters from a text of the server or of another player.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// sentence adds a capital and a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	r := []rune(text)
	return strings.TrimSuffix(string(unicode.ToUpper(r[0]))+string(r[1:]), ".") + "."
}

// symbol returns the symbol of a suit.
func symbol(s cards.Suit) string {
	if s > cards.Spades {
		return "?"
	}
	return []string{"♣", "♦", "♥", "♠"}[s]
}

// paint colours a text of a suit.
func paint(s cards.Suit, text string) string {
	if s == cards.Diamonds || s == cards.Hearts {
		return red.Render(text)
	}
	return strong.Render(text)
}
