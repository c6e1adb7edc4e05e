package term

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// The smallest screen size that is drawn.
const (
	leastWidth  = 60
	leastHeight = 20
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
	if m.width < leastWidth || m.height < leastHeight {
		return fmt.Sprintf("This window is %d × %d.\nThe inspector needs %d × %d.", m.width, m.height, leastWidth, leastHeight)
	}
	rows := m.height - 4 // Without the head, the foot and their rules.
	var body []line
	switch {
	case m.overview == nil:
		body = []line{{}, text(soft, "   "+m.link.text)}
	case m.view == ticksView:
		body = m.drawTicks(m.width, rows)
	case m.view == clientsView:
		body = m.drawClients(m.width, rows)
	default:
		body = m.drawOverview(m.width, rows)
	}
	for len(body) < rows {
		body = append(body, line{})
	}
	rule := text(soft, strings.Repeat("─", m.width))
	all := append([]line{m.head(), rule}, body[:rows]...)
	all = append(all, rule, m.foot())
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].render(m.width)
	}
	return strings.Join(texts, "\n")
}

// head draws the views' names, the room, and the pulse of the server.
func (m *model) head() line {
	l := line{}
	for v, name := range viewNames {
		s := soft
		if view(v) == m.view {
			s = chosen
		}
		l = l.and(s, fmt.Sprintf(" %d %s ", v+1, name))
	}
	if m.view != overviewView && (m.room != "" || len(m.allRooms) > 1) {
		l = l.and(strong, " "+m.roomName())
	}
	return apart(l, m.pulse().and(plain, " "), m.width)
}

// pulse draws the rate, the percentile, and the state of the stream.
func (m *model) pulse() line {
	l := line{}
	if o := m.overview; o != nil && m.link.up {
		w, s := &o.Windows[0], good
		switch {
		case w.Tick.P99 > o.Budget:
			s = bad
		case w.Tick.P99 > o.Budget/2:
			s = warm
		}
		l = l.and(s, fmt.Sprintf("%s Hz · p99 %s of %s ms", rate(o.Rate), ms(w.Tick.P99), ms(o.Budget))).and(plain, "  ")
	}
	switch {
	case m.held[m.view]:
		return l.and(warm, "paused")
	case m.link.up:
		if l = l.and(good, "●"); m.width < 100 {
			return l
		}
		return l.and(soft, " live")
	}
	return l.and(bad, "○ offline")
}

// foot draws a question, the typed filter, a note, or the keys of the view.
func (m *model) foot() line {
	switch f := *m.filter(); {
	case m.kick != nil:
		return text(bad, fmt.Sprintf(" Remove client %d%s? ", m.kick.Client.Client, named(m.kick.Subject))).and(plain, "y yes · n no")
	case m.typing:
		return text(strong, " filter: ").and(plain, f+"▏").and(soft, "   enter keeps it · esc clears it")
	case !m.link.up:
		return text(bad, " "+m.link.text)
	case m.note.text != "":
		s := good
		if m.note.wrong {
			s = bad
		}
		return text(s, " "+m.note.text)
	case f != "" && !m.open:
		return text(strong, " filter: "+f).and(soft, "   esc clears it · "+m.keys())
	}
	return text(soft, " "+m.keys())
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
