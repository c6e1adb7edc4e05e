package term

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop/internal/tui"
)

// The smallest screen size that is drawn.
const (
	minWidth  = 60
	minHeight = 20
)

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	v.WindowTitle = "netloop inspect"
	return v
}

// screen draws all lines.
func (m *model) screen() string {
	if m.width < minWidth || m.height < minHeight {
		return fmt.Sprintf("This window is %d × %d.\nThe inspector needs %d × %d.", m.width, m.height, minWidth, minHeight)
	}
	rows := m.height - 4 // Without the head, the foot and their rules.
	var body []tui.Line
	switch {
	case m.overview == nil:
		body = []tui.Line{{}, tui.Text(tui.Soft, "   "+m.link.text)}
	case m.view == ticksView:
		body = m.drawTicks(m.width, rows)
	case m.view == clientsView:
		body = m.drawClients(m.width, rows)
	default:
		body = m.drawOverview(m.width, rows)
	}
	return tui.Screen(m.head(), body, m.foot(), m.width, m.height)
}

// head draws the views' names, the room, and the pulse of the server.
func (m *model) head() tui.Line {
	l := tui.Line{}
	for v, name := range viewNames {
		s := tui.Soft
		if view(v) == m.view {
			s = tui.Chosen
		}
		l = l.And(s, fmt.Sprintf(" %d %s ", v+1, name))
	}
	if m.view != overviewView && (m.room != "" || len(m.allRooms) > 1) {
		l = l.And(tui.Strong, " "+m.roomName())
	}
	return tui.Apart(l, m.pulse().And(tui.Plain, " "), m.width)
}

// pulse draws the rate, the percentile, and the state of the stream.
func (m *model) pulse() tui.Line {
	l := tui.Line{}
	if o := m.overview; o != nil && m.link.up {
		w, s := &o.Windows[0], tui.Good
		switch {
		case w.Tick.P99 > o.Budget:
			s = tui.Bad
		case w.Tick.P99 > o.Budget/2:
			s = tui.Warm
		}
		l = l.And(s, fmt.Sprintf("%s Hz · p99 %s of %s ms", tui.Rate(o.Rate), tui.Millis(w.Tick.P99), tui.Millis(o.Budget))).And(tui.Plain, "  ")
	}
	switch {
	case m.held[m.view]:
		return l.And(tui.Warm, "paused")
	case m.link.up:
		if l = l.And(tui.Good, "●"); m.width < 100 {
			return l
		}
		return l.And(tui.Soft, " live")
	}
	return l.And(tui.Bad, "○ offline")
}

// foot draws a question, the typed filter, a note, or the keys of the view.
func (m *model) foot() tui.Line {
	switch f := *m.filter(); {
	case m.kick != nil:
		return tui.Text(tui.Bad, fmt.Sprintf(" Remove client %d%s? ", m.kick.Client.Client, named(m.kick.Subject))).And(tui.Plain, "y yes · n no")
	case m.typing:
		return tui.Text(tui.Strong, " filter: ").And(tui.Plain, f+"▏").And(tui.Soft, "   enter keeps it · esc clears it")
	case !m.link.up:
		return tui.Text(tui.Bad, " "+m.link.text)
	case m.note.text != "":
		s := tui.Good
		if m.note.wrong {
			s = tui.Bad
		}
		return tui.Text(s, " "+m.note.text)
	case f != "" && !m.open:
		return tui.Text(tui.Strong, " filter: "+f).And(tui.Soft, "   esc clears it · "+m.keys())
	}
	return tui.Text(tui.Soft, " "+m.keys())
}

func named(subject string) string {
	if subject == "" {
		return ""
	}
	return ", " + subject
}

// keys lists the keys of the view.
func (m *model) keys() string {
	const last = " · space pause · q quit"
	switch {
	case m.view == overviewView:
		return "↑↓ room · enter ticks · ←→ sort · r reverse · / filter" + last
	case m.view == ticksView && m.open:
		return "←→ tick · ↑↓ scroll · esc back" + last
	case m.view == ticksView:
		return "←→ tick · ↑↓ worst · enter open · esc newest · / filter" + last
	case m.open:
		return "↑↓ client · x kick · esc back" + last
	}
	return "↑↓ enter follow · ←→ r sort · / filter · x kick" + last
}
