package term

import (
	"cmp"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/tui"
)

// view is one of the views.
type view int

const (
	overviewView view = iota
	ticksView
	clientsView
	numViews
)

var viewNames = [numViews]string{"Overview", "Ticks", "Clients"}

// acts performs the effects of keys. Each method except follow may take a second.
type acts interface {
	follow(room string)
	worst(room string) tea.Msg
	kick(room string, client uint64) tea.Msg
}

// history is the number of seconds shown by charts.
const history = 300

// noteFor is the number of seconds for which a note is shown.
const noteFor = 6

// model is the state of the terminal's screen. It implements tea.Model.
type model struct {
	acts          acts
	width, height int
	link          link
	note          note
	noteLeft      int // seconds

	view   view
	held   [numViews]bool // views whose data is frozen
	typing bool           // keys change the filter
	open   bool           // the selected tick or client fills the view
	scroll int            // first shown line of an open tick
	kick   *clientRow     // the client to remove, until y or n

	room     string // room of the ticks and clients views; "" is the default room
	overview *inspect.Overview
	collect  string // CPU share of the garbage collector
	traffic  traffic
	trends   trends
	rooms    table[directory.Row]
	allRooms []directory.Row

	budget  time.Duration
	ticks   []slowtick.Record // the newest ticks
	tick    *slowtick.Record  // the selected tick; nil: the newest
	slow    table[slowtick.Record]
	slowest []slowtick.Record // slowest ticks of the last hour
	asked   int               // seconds since the last request for the slowest ticks

	clients    table[clientRow]
	allClients []clientRow
	clientsAt  time.Duration
	clientTick uint64
	more       int // number of clients that are not listed
	followed   clientTrends
}

func newModel(room string, a acts) *model {
	return &model{
		acts: a, width: 80, height: 24, room: room, link: link{text: "connecting"}, collect: "–",
		rooms: roomTable(), slow: slowTable(), clients: clientTable(),
	}
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.askSlowest() }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case overviewEvent:
		m.take(msg)
		if m.asked++; m.view == ticksView && m.asked >= 5 {
			return m, m.askSlowest()
		}
	default:
		m.take(msg)
	}
	return m, nil
}

// take handles a message of the feed.
func (m *model) take(msg tea.Msg) {
	switch msg := msg.(type) {
	case link:
		m.link = msg
	case note:
		m.note, m.noteLeft = msg, noteFor
	case overviewEvent:
		m.takeOverview(&msg.Overview)
	case valuesEvent:
		if !m.held[overviewView] {
			m.traffic.take(msg.values, msg.at)
		}
	case roomsEvent:
		if !m.held[overviewView] {
			m.allRooms = msg.Rooms
		}
	case ticksEvent:
		m.takeTicks(msg.Report)
	case worstEvent:
		if !m.held[ticksView] {
			m.slowest = msg.Ticks
		}
	case clientsEvent:
		if !m.held[clientsView] {
			m.takeClients(msg)
		}
	}
}

// takeOverview stores an overview; one arrives each second.
func (m *model) takeOverview(o *inspect.Overview) {
	if m.noteLeft--; m.noteLeft <= 0 {
		m.note = note{}
	}
	was := m.overview
	if was != nil && was.Instance != o.Instance {
		m.note, m.noteLeft = note{text: "the server has restarted: these are figures of the new one"}, noteFor
		m.ticks, m.tick, m.slowest, m.allClients, m.open, m.held = nil, nil, nil, nil, false, [numViews]bool{}
		was = nil
	}
	if m.held[overviewView] {
		return
	}
	m.overview = o
	m.collect = "–"
	if was != nil && o.Memory.CPU > was.Memory.CPU {
		m.collect = tui.Percent((o.Memory.GC - was.Memory.GC) / (o.Memory.CPU - was.Memory.CPU))
	}
	m.trends.add(o, &m.traffic)
}

// takeTicks appends new ticks.
func (m *model) takeTicks(r slowtick.Report) {
	m.budget = r.Budget
	if m.held[ticksView] || len(r.Ticks) == 0 {
		return
	}
	if n := len(m.ticks); n > 0 && r.Ticks[0].Tick <= m.ticks[n-1].Tick {
		m.ticks = nil // The stream was opened again.
	}
	m.ticks = append(m.ticks, r.Ticks...)
	m.ticks = slices.Clone(m.ticks[max(0, len(m.ticks)-slowtick.LastTicks):])
}

// askSlowest requests the slowest ticks.
func (m *model) askSlowest() tea.Cmd {
	a, room := m.acts, m.room
	m.asked = 0
	return func() tea.Msg { return a.worst(room) }
}

// enter shows the ticks and clients of another room.
func (m *model) enter(room string) tea.Cmd {
	if m.overview != nil && room == m.overview.Room {
		room = ""
	}
	m.view, m.open = ticksView, false
	if room == m.room {
		return m.askSlowest()
	}
	m.room = room
	m.ticks, m.tick, m.slowest, m.allClients, m.more = nil, nil, nil, nil, 0
	m.held[ticksView], m.held[clientsView] = false, false
	m.acts.follow(room)
	return m.askSlowest()
}

// roomName returns the name of the shown room.
func (m *model) roomName() string {
	if m.room == "" && m.overview != nil {
		return cmp.Or(m.overview.Room, "(default)")
	}
	return cmp.Or(m.room, "(default)")
}

// sum returns the sum of a family's values.
func sum(all []metrics.Value) (total float64) {
	for _, v := range all {
		total += v.Value
	}
	return total
}
