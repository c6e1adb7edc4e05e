package term

import (
	tea "charm.land/bubbletea/v2"
)

// press handles a key.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	if key == "ctrl+c" {
		return tea.Quit
	}
	switch {
	case m.kick != nil:
		return m.confirm(key)
	case m.typing:
		m.typed(k)
		return nil
	}
	switch key {
	case "q":
		return tea.Quit
	case "1", "2", "3":
		return m.show(view(key[0] - '1'))
	case "tab":
		return m.show((m.view + 1) % numViews)
	case "shift+tab":
		return m.show((m.view + numViews - 1) % numViews)
	case "space":
		m.held[m.view] = !m.held[m.view]
		if m.view == ticksView && !m.held[m.view] {
			m.tick = nil
		}
		return nil
	case "/":
		m.typing = !m.open
		return nil
	}
	switch m.view {
	case ticksView:
		m.pressTicks(key)
	case clientsView:
		m.pressClients(key)
	default:
		return m.pressOverview(key)
	}
	return nil
}

// show shows a view.
func (m *model) show(v view) tea.Cmd {
	m.view, m.open, m.scroll = v, false, 0
	if v == ticksView {
		return m.askSlowest()
	}
	return nil
}

// filter returns the filter of the shown view.
func (m *model) filter() *string {
	return [...]*string{&m.rooms.filter, &m.slow.filter, &m.clients.filter}[m.view]
}

// maxFilter limits a typed filter, in bytes.
const maxFilter = 64

// typed handles a key while the user types a filter.
func (m *model) typed(k tea.KeyPressMsg) {
	f := m.filter()
	switch k.Code {
	case tea.KeyEscape:
		*f, m.typing = "", false
	case tea.KeyEnter:
		m.typing = false
	case tea.KeyBackspace:
		if r := []rune(*f); len(r) > 0 {
			*f = string(r[:len(r)-1])
		}
	default:
		if len(*f)+len(k.Text) <= maxFilter {
			*f += k.Text
		}
	}
}

// confirm handles the key after the question whether to remove a client.
func (m *model) confirm(key string) tea.Cmd {
	client, a, room := m.kick.Client.Client, m.acts, m.room
	switch key {
	case "y":
		m.kick = nil
		return func() tea.Msg { return a.kick(room, client) }
	case "n", "esc", "q":
		m.kick = nil
	}
	return nil
}

// step returns the direction of a key: 1 down or right, -1 up or left, 0 for any other key.
func step(key, back, on, backArrow, onArrow string) int {
	switch key {
	case back, backArrow:
		return -1
	case on, onArrow:
		return 1
	}
	return 0
}

func upDown(key string) int    { return step(key, "k", "j", "up", "down") }
func leftRight(key string) int { return step(key, "h", "l", "left", "right") }

// tableKey handles a key of a table, and reports whether the key belongs to tables.
func tableKey[T any](t *table[T], all []T, key string, width int) bool {
	switch {
	case upDown(key) != 0:
		t.move(all, upDown(key))
	case key == "pgdown" || key == "pgup":
		t.move(all, 10*step(key, "pgup", "pgdown", "", ""))
	case leftRight(key) != 0:
		t.sortBy(leftRight(key), width)
	case key == "r":
		t.down = !t.down
	case key == "esc" && t.filter != "":
		t.filter = ""
	default:
		return false
	}
	return true
}

func (m *model) pressOverview(key string) tea.Cmd {
	if tableKey(&m.rooms, m.allRooms, key, m.width) || key != "enter" {
		return nil
	}
	if r, ok := m.rooms.selected(m.allRooms); ok {
		return m.enter(r.Name)
	}
	return nil
}

func (m *model) pressTicks(key string) {
	switch {
	case key == "enter":
		if t := m.shownTick(); t != nil {
			m.choose(t)
			m.open, m.scroll = true, 0
		}
	case key == "esc" && m.open:
		m.open = false
	case key == "esc" && m.slow.filter == "":
		m.tick, m.held[ticksView], m.slow.chosen = nil, false, ""
	case leftRight(key) != 0:
		m.stepTick(leftRight(key))
	case m.open && upDown(key) != 0:
		m.scroll = max(0, m.scroll+upDown(key))
	case tableKey(&m.slow, m.slowest, key, m.width):
		if t, ok := m.slow.selected(m.slowest); ok && upDown(key) != 0 {
			m.choose(&t)
		}
	}
}

func (m *model) pressClients(key string) {
	c, ok := m.clients.selected(m.allClients)
	switch {
	case key == "x" && ok:
		m.kick = &c
	case key == "esc" && m.open:
		m.open = false
	case key == "enter" && ok:
		m.open = true
		m.followed = clientTrends{}
	case m.open && upDown(key) != 0:
		m.clients.move(m.allClients, upDown(key))
		m.followed = clientTrends{}
	case !m.open:
		tableKey(&m.clients, m.allClients, key, m.width)
	}
}
