package term

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/tui"
)

// traffic holds the traffic of all rooms, from the counters.
type traffic struct {
	at             time.Duration
	out, in        float64 // bytes since the start
	sent, received float64 // bytes per second
	clients, lost  float64
}

func (t *traffic) take(v map[string][]metrics.Value, at time.Duration) {
	was := *t
	*t = traffic{at: at, clients: sum(v["clients"]), lost: sum(v["clients_dropped"])}
	for _, s := range v["transport_bytes_total"] {
		if len(s.Labels) > 0 && s.Labels[0] == "out" {
			t.out += s.Value
		} else {
			t.in += s.Value
		}
	}
	if s := (at - was.at).Seconds(); was.at > 0 && s > 0 {
		t.sent, t.received = max(t.out-was.out, 0)/s, max(t.in-was.in, 0)/s
	}
}

// trends are the chart values of the last seconds.
type trends struct{ tick, late, clients, sent []float64 }

func (t *trends) add(o *inspect.Overview, now *traffic) {
	for _, s := range []struct {
		to *[]float64
		v  float64
	}{{&t.tick, float64(o.Windows[0].Tick.P99)}, {&t.late, float64(o.Windows[0].Lateness.P99)}, {&t.clients, now.clients}, {&t.sent, now.sent}} {
		*s.to = append(*s.to, s.v)
		*s.to = (*s.to)[max(0, len(*s.to)-history):]
	}
}

// roomTable returns the table of rooms.
func roomTable() table[directory.Row] {
	type row = directory.Row
	return table[row]{
		columns: []column[row]{
			{title: "room", width: 12, left: true, wide: true, show: func(r row) string { return cmp.Or(r.Name, "(default)") }, order: by(func(r row) string { return r.Name })},
			{title: "kind", width: 8, left: true, rank: 3, show: func(r row) string { return cmp.Or(r.Kind, "–") }, order: by(func(r row) string { return r.Kind })},
			{title: "state", width: 7, left: true, show: func(r row) string { return r.State }, order: by(func(r row) string { return r.State }), warn: func(r row) bool { return r.State == directory.StateHung }},
			{title: "clients", width: 9, show: func(r row) string { return fmt.Sprintf("%d / %d", r.Clients, r.Max) }, order: by(func(r row) int { return r.Clients }), warn: func(r row) bool { return r.Clients >= r.Max }},
			{title: "rate", width: 7, rank: 1, show: func(r row) string { return tui.Rate(r.Rate) + " Hz" }, order: by(func(r row) float64 { return r.Rate })},
			{title: "tick p99", width: 8, show: func(r row) string { return tui.Millis(r.TickP99) }, order: by(func(r row) time.Duration { return r.TickP99 }), warn: func(r row) bool { return r.TickP99.Seconds()*r.Rate > 1 }},
			{title: "late p99", width: 8, rank: 1, show: func(r row) string { return tui.Millis(r.LateP99) }, order: by(func(r row) time.Duration { return r.LateP99 })},
			{title: "overruns", width: 8, rank: 1, show: func(r row) string { return tui.Count(r.Overruns) }, order: by(func(r row) uint64 { return r.Overruns }), warn: func(r row) bool { return r.Overruns > 0 }},
			{title: "age", width: 11, rank: 2, show: func(r row) string { return tui.Age(r.Age) }, order: by(func(r row) time.Duration { return r.Age })},
		},
		key:  func(r row) string { return "room " + r.Name }, // The name may be empty.
		find: func(r row) string { return r.Name + " " + r.Kind + " " + r.State },
		sort: 3, down: true, empty: "no room has this name",
	}
}

// tiles returns the figures of the overview; the last two are drawn on wide screens only.
func (m *model) tiles() []tui.Tile {
	o, t := m.overview, &m.traffic
	minute := &o.Windows[1]
	used := float64(minute.Tick.P99) / float64(o.Budget)
	headroom, reduced := tui.Good, tui.Good
	switch {
	case used > 1:
		headroom = tui.Bad
	case used > 0.5:
		headroom = tui.Warm
	}
	if o.Overload != overload.Normal.String() {
		reduced = tui.Bad
	}
	of := tui.Plural(o.Rooms, "room")
	if o.Rooms <= 1 {
		of = "of " + tui.Rate(1/o.Budget.Seconds()) + " Hz"
	}
	each := func(x float64) string {
		if t.clients == 0 {
			return ""
		}
		return tui.Size(x/t.clients) + "/s a client"
	}
	return []tui.Tile{
		tui.Figure("rate", tui.Rate(o.Rate)+" Hz", of, tui.Accent),
		tui.Figure("tick p99", tui.Millis(minute.Tick.P99)+" ms", "of "+tui.Millis(o.Budget)+" ms", headroom),
		tui.Figure("lateness p99", tui.Millis(minute.Lateness.P99)+" ms", "max "+tui.Millis(minute.Lateness.Max)+" ms", tui.Accent),
		tui.Figure("headroom", tui.Percent(max(0, 1-used)), tui.Count(minute.Overruns)+" of "+tui.Count(minute.Ticks)+" over", headroom),
		tui.Figure("clients", tui.Count(t.clients), tui.Count(t.lost)+" lost", tui.Accent),
		tui.Figure("overload", o.Overload, cmp.Or(o.Ready, o.Note), reduced),
		tui.Figure("sent", tui.Size(t.sent)+"/s", each(t.sent), tui.Accent),
		tui.Figure("heap", tui.Size(float64(o.Memory.Heap)), tui.Size(float64(o.Memory.Total))+" mapped", tui.Accent),
		tui.Figure("received", tui.Size(t.received)+"/s", each(t.received), tui.Accent),
		tui.Figure("collector", m.collect, tui.Count(o.Memory.Cycles)+" cycles", tui.Accent),
	}
}

// drawTiles draws the tiles in rows.
func (m *model) drawTiles(width int) (lines []tui.Line) {
	all, perRow := m.tiles(), 5
	switch {
	case width < 100:
		all, perRow = all[:8], 4
	case width >= 200:
		perRow = 10
	}
	return append(tui.Tiles(all, (width-1)/perRow, perRow), tui.Line{})
}

// drawWindows draws the table of the last minutes.
func (m *model) drawWindows() []tui.Line {
	row := func(s tui.Style, name string, cells ...string) tui.Line {
		l := tui.Text(s, " "+tui.Left(name, 6))
		for i, width := range []int{7, 9, 6, 6, 6, 9, 6, 6, 6, 6, 6} {
			if i < len(cells) {
				l = l.And(s, tui.Right(cells[i], width))
			}
		}
		return l
	}
	lines := []tui.Line{row(tui.Soft, "last", "ticks", "tick p50", "p95", "p99", "max", "late p50", "p95", "p99", "max", "over", "drop")}
	for i, w := range m.overview.Windows[:3] {
		l := row(tui.Plain, []string{"10 s", "minute", "5 min"}[i], tui.Count(w.Ticks), tui.Millis(w.Tick.P50), tui.Millis(w.Tick.P95), tui.Millis(w.Tick.P99), tui.Millis(w.Tick.Max),
			tui.Millis(w.Lateness.P50), tui.Millis(w.Lateness.P95), tui.Millis(w.Lateness.P99), tui.Millis(w.Lateness.Max))
		for _, n := range []uint64{w.Overruns, w.Dropped} {
			s := tui.Plain
			if n > 0 {
				s = tui.Bad
			}
			l = l.And(s, tui.Right(tui.Count(n), 6))
		}
		lines = append(lines, l)
	}
	return lines
}

// drawTrends draws the charts of the last minutes, each with the given number of rows.
func (m *model) drawTrends(width, rows int) []tui.Line {
	t, o := &m.trends, m.overview
	return slices.Concat(
		tui.Chart("tick p99", tui.Millis(o.Windows[0].Tick.P99)+" ms", tui.Accent, t.tick, width, rows),
		tui.Chart("lateness p99", tui.Millis(o.Windows[0].Lateness.P99)+" ms", tui.Warm, t.late, width, rows),
		tui.Chart("clients", tui.Count(m.traffic.clients), tui.Good, t.clients, width, rows),
		tui.Chart("sent", tui.Size(m.traffic.sent)+"/s", tui.Accent, t.sent, width, rows))
}

func (m *model) drawOverview(width, height int) []tui.Line {
	o := m.overview
	state := "clients may come"
	switch {
	case o.Ready != "":
		state = "refuses clients: " + o.Ready
	case o.Note != "":
		state = o.Note
	}
	lines := append(m.drawTiles(width), m.drawWindows()...)
	if o.Overload != overload.Normal.String() {
		lines = append(lines, tui.Line{}, tui.Text(tui.Bad, " "+tui.Left(cmp.Or(o.Ladder.Room, "(default)")+": "+o.Ladder.Text, width-2)))
	}
	// The table of rooms takes at most half of the remaining lines; the four charts share the
	// others.
	rest := height - len(lines)
	if rows := min((rest-4-min(len(m.allRooms), rest/2))/4, 4); rows > 0 {
		lines = append(append(lines, tui.Line{}), m.drawTrends(width, rows)...)
	}
	facts := fmt.Sprintf(" %s · up for %s · %s · %s · %s · netloop %s", o.Game, tui.Age(time.Duration(o.Uptime*1e9)), state, tui.Plural(o.Rooms, "room"), tui.Plural(o.Memory.Goroutines, "goroutine"), o.Version)
	lines = append(lines, tui.Line{}, tui.Text(tui.Soft, facts))
	return append(lines, m.rooms.draw(m.allRooms, width-1, height-len(lines))...)
}

// summary returns the server's main figures as one line, for an output that is not a terminal.
func (m *model) summary() string {
	o := m.overview
	w := &o.Windows[0]
	s := fmt.Sprintf("%s %s Hz, tick p99 %s of %s ms, lateness p99 %s ms, %s, overload %s, heap %s", o.Time.UTC().Format(time.RFC3339),
		tui.Rate(o.Rate), tui.Millis(w.Tick.P99), tui.Millis(o.Budget), tui.Millis(w.Lateness.P99), tui.Plural(int(m.traffic.clients), "client"), o.Overload, tui.Size(float64(o.Memory.Heap)))
	if o.Ready != "" {
		s += ", refuses clients: " + o.Ready
	}
	for i := range m.ticks {
		if t := &m.ticks[i]; t.Cause != "" && (m.tick == nil || t.Duration > m.tick.Duration) {
			m.tick = t
		}
	}
	if m.tick != nil {
		s += fmt.Sprintf(", tick %d %s", m.tick.Tick, verdict(m.tick, m.budget))
		m.tick = nil
	}
	m.ticks = m.ticks[:0]
	return s
}
