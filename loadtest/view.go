package loadtest

import (
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// view is the terminal view of a load test. It implements tea.Model. The run's goroutines write its
// data and never wait for the terminal; the program's goroutine draws it several times a second.
type view struct {
	width, height int  // of the program's goroutine
	stopped       bool // by the user; written before the program ends

	mu     sync.Mutex // guards the fields below
	now    *status    // nil before the first point
	curves curves
	said   []string // messages, the newest last
}

// curves are the chart values of the last seconds.
type curves struct{ clients, rate, age, interval, call, tick, late, errors []float64 }

const (
	viewRate    = 10 // frames a second
	viewHistory = 300
	maxSaid     = 60
)

func newView() *view { return &view{width: 80, height: 24} }

// take shows a point. A run that begins anew begins new charts.
func (v *view) take(st *status) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.now != nil && st.At < v.now.At {
		v.curves = curves{}
	}
	v.now = st
	t := &v.curves
	for _, x := range []struct {
		to *[]float64
		v  *float64
	}{
		{&t.clients, whole(int(st.Clients))}, {&t.rate, st.Snapshots}, {&t.age, st.AgeP99}, {&t.interval, st.Interval},
		{&t.call, st.CallP99}, {&t.tick, st.Tick}, {&t.late, st.late}, {&t.errors, number(&st.Errors)},
	} {
		value := 0.0
		if x.v != nil {
			value = *x.v
		}
		*x.to = append(*x.to, value)
		*x.to = (*x.to)[max(0, len(*x.to)-viewHistory):]
	}
}

// say shows a message.
func (v *view) say(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.said = append(v.said, text)
	v.said = v.said[max(0, len(v.said)-maxSaid):]
}

// redraw is the message to draw the newest data.
type redraw struct{}

func later() tea.Cmd {
	return tea.Tick(time.Second/viewRate, func(time.Time) tea.Msg { return redraw{} })
}

// Init implements tea.Model.
func (v *view) Init() tea.Cmd { return later() }

// Update implements tea.Model.
func (v *view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case redraw:
		return v, later()
	case tea.WindowSizeMsg:
		v.width, v.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if key := msg.String(); key == "q" || key == "ctrl+c" {
			v.stopped = true
			return v, tea.Quit
		}
	}
	return v, nil
}

// View implements tea.Model.
func (v *view) View() tea.View {
	v.mu.Lock()
	defer v.mu.Unlock()
	screen := tea.NewView(v.drawLocked())
	screen.AltScreen = true
	screen.WindowTitle = "netloop load test"
	return screen
}
