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
			{title: "rate", width: 7, rank: 1, show: func(r row) string { return rate(r.Rate) + " Hz" }, order: by(func(r row) float64 { return r.Rate })},
			{title: "tick p99", width: 8, show: func(r row) string { return ms(r.TickP99) }, order: by(func(r row) time.Duration { return r.TickP99 }), warn: func(r row) bool { return r.TickP99.Seconds()*r.Rate > 1 }},
			{title: "late p99", width: 8, rank: 1, show: func(r row) string { return ms(r.LateP99) }, order: by(func(r row) time.Duration { return r.LateP99 })},
			{title: "overruns", width: 8, rank: 1, show: func(r row) string { return count(r.Overruns) }, order: by(func(r row) uint64 { return r.Overruns }), warn: func(r row) bool { return r.Overruns > 0 }},
			{title: "age", width: 11, rank: 2, show: func(r row) string { return age(r.Age) }, order: by(func(r row) time.Duration { return r.Age })},
		},
		key:  func(r row) string { return "room " + r.Name }, // The name may be empty.
		find: func(r row) string { return r.Name + " " + r.Kind + " " + r.State },
		sort: 3, down: true, empty: "no room has this name",
	}
}

// tile is one figure with its name.
type tile struct {
	name, value, more string
	style             style
}

// tiles returns the figures of the overview; the last two are drawn on wide screens only.
func (m *model) tiles() []tile {
	o, t := m.overview, &m.traffic
	minute := &o.Windows[1]
	used := float64(minute.Tick.P99) / float64(o.Budget)
	headroom, reduced := good, good
	switch {
	case used > 1:
		headroom = bad
	case used > 0.5:
		headroom = warm
	}
	if o.Overload != overload.Normal.String() {
		reduced = bad
	}
	of := plural(o.Rooms, "room")
	if o.Rooms <= 1 {
		of = "of " + rate(1/o.Budget.Seconds()) + " Hz"
	}
	each := func(x float64) string {
		if t.clients == 0 {
			return ""
		}
		return size(x/t.clients) + "/s a client"
	}
	return []tile{
		{"rate", rate(o.Rate) + " Hz", of, accent},
		{"tick p99", ms(minute.Tick.P99) + " ms", "of " + ms(o.Budget) + " ms", headroom},
		{"lateness p99", ms(minute.Lateness.P99) + " ms", "max " + ms(minute.Lateness.Max) + " ms", accent},
		{"headroom", percent(max(0, 1-used)), count(minute.Overruns) + " of " + count(minute.Ticks) + " over", headroom},
		{"clients", count(t.clients), count(t.lost) + " lost", accent},
		{"overload", o.Overload, cmp.Or(o.Ready, o.Note), reduced},
		{"sent", size(t.sent) + "/s", each(t.sent), accent},
		{"heap", size(float64(o.Memory.Heap)), size(float64(o.Memory.Total)) + " mapped", accent},
		{"received", size(t.received) + "/s", each(t.received), accent},
		{"collector", m.collect, count(o.Memory.Cycles) + " cycles", accent},
	}
}

// drawTiles draws the tiles in rows.
func (m *model) drawTiles(width int) (lines []line) {
	all, perRow := m.tiles(), 5
	switch {
	case width < 100:
		all, perRow = all[:8], 4
	case width >= 200:
		perRow = 10
	}
	wide := (width - 1) / perRow
	for from := 0; from < len(all); from += perRow {
		row := make([]line, 3)
		for i := range row {
			row[i] = text(plain, " ")
		}
		for _, t := range all[from:min(from+perRow, len(all))] {
			value := t.value
			if t.style == bad {
				value += " !"
			}
			row[0] = row[0].and(t.style, "▌").and(soft, left(t.name, wide-1))
			row[1] = row[1].and(t.style, "▌").and(strong, left(value, wide-1))
			row[2] = row[2].and(t.style, "▌").and(soft, left(t.more, wide-2)+" ")
		}
		lines = append(append(lines, row...), line{})
	}
	return lines
}

// drawWindows draws the table of the last minutes.
func (m *model) drawWindows() []line {
	row := func(s style, name string, cells ...string) line {
		l := text(s, " "+left(name, 6))
		for i, width := range []int{7, 9, 6, 6, 6, 9, 6, 6, 6, 6, 6} {
			if i < len(cells) {
				l = l.and(s, right(cells[i], width))
			}
		}
		return l
	}
	lines := []line{row(soft, "last", "ticks", "tick p50", "p95", "p99", "max", "late p50", "p95", "p99", "max", "over", "drop")}
	for i, w := range m.overview.Windows[:3] {
		l := row(plain, []string{"10 s", "minute", "5 min"}[i], count(w.Ticks), ms(w.Tick.P50), ms(w.Tick.P95), ms(w.Tick.P99), ms(w.Tick.Max),
			ms(w.Lateness.P50), ms(w.Lateness.P95), ms(w.Lateness.P99), ms(w.Lateness.Max))
		for _, n := range []uint64{w.Overruns, w.Dropped} {
			s := plain
			if n > 0 {
				s = bad
			}
			l = l.and(s, right(count(n), 6))
		}
		lines = append(lines, l)
	}
	return lines
}

// drawTrends draws the charts of the last minutes, each with the given number of rows.
func (m *model) drawTrends(width, rows int) []line {
	t, o := &m.trends, m.overview
	return slices.Concat(
		chart("tick p99", ms(o.Windows[0].Tick.P99)+" ms", accent, t.tick, width, rows),
		chart("lateness p99", ms(o.Windows[0].Lateness.P99)+" ms", warm, t.late, width, rows),
		chart("clients", count(m.traffic.clients), good, t.clients, width, rows),
		chart("sent", size(m.traffic.sent)+"/s", accent, t.sent, width, rows))
}

func (m *model) drawOverview(width, height int) []line {
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
		lines = append(lines, line{}, text(bad, " "+left(cmp.Or(o.Ladder.Room, "(default)")+": "+o.Ladder.Text, width-2)))
	}
	// The table of rooms takes at most half of the remaining lines; the four charts share the
	// others.
	rest := height - len(lines)
	if rows := min((rest-4-min(len(m.allRooms), rest/2))/4, 4); rows > 0 {
		lines = append(append(lines, line{}), m.drawTrends(width, rows)...)
	}
	facts := fmt.Sprintf(" %s · up for %s · %s · %s · %s · netloop %s", o.Game, age(time.Duration(o.Uptime*1e9)), state, plural(o.Rooms, "room"), plural(o.Memory.Goroutines, "goroutine"), o.Version)
	lines = append(lines, line{}, text(soft, facts))
	return append(lines, m.rooms.draw(m.allRooms, width-1, height-len(lines))...)
}

// summary returns the server's main figures as one line, for an output that is not a terminal.
func (m *model) summary() string {
	o := m.overview
	w := &o.Windows[0]
	s := fmt.Sprintf("%s %s Hz, tick p99 %s of %s ms, lateness p99 %s ms, %s, overload %s, heap %s", o.Time.UTC().Format(time.RFC3339),
		rate(o.Rate), ms(w.Tick.P99), ms(o.Budget), ms(w.Lateness.P99), plural(int(m.traffic.clients), "client"), o.Overload, size(float64(o.Memory.Heap)))
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
