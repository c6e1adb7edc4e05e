package loadtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/netloop/netloop/internal/tui"
)

// The smallest terminal that is drawn, and the widths from which on the charts, and the table and
// the thresholds, have two columns.
const (
	minWidth    = 60
	minHeight   = 20
	wideScreen  = 116
	widerScreen = 136
	tableWidth  = 80
	smallTable  = 6 // lines of the table on a low screen
)

// drawLocked draws the screen.
func (v *view) drawLocked() string {
	if v.width < minWidth || v.height < minHeight {
		return fmt.Sprintf("This window is %d × %d.\nThe load test needs %d × %d.\nq ends it.", v.width, v.height, minWidth, minHeight)
	}
	foot := tui.Text(tui.Soft, " q end now, and write the result")
	if v.now == nil {
		body := []tui.Line{{}, tui.Text(tui.Soft, "   connecting")}
		return tui.Screen(tui.Text(tui.Chosen, " load test "), append(body, v.messages(v.width, v.height-6)...), foot, v.width, v.height)
	}
	return tui.Screen(v.head(), v.body(v.width, v.height-4), foot, v.width, v.height)
}

// head draws the game, the phase and its progress.
func (v *view) head() tui.Line {
	st := v.now
	right := tui.Text(tui.Strong, st.phase.String()+" ")
	if st.whole > 0 {
		const width = 16
		done := []rune(tui.Bar(min(st.done.Seconds()/st.whole.Seconds(), 1), width))
		right = right.And(tui.Accent, string(done)).And(tui.Soft, strings.Repeat("░", width-len(done))).And(tui.Plain, fmt.Sprintf(" %.0f / %.0f s ", st.done.Seconds(), st.whole.Seconds()))
	}
	return tui.Apart(tui.Text(tui.Chosen, " load test ").And(tui.Plain, " "+st.title), right, v.width)
}

// body draws all below the head: in one column, or in two on a wide screen.
func (v *view) body(width, height int) []tui.Line {
	lines := append(v.tiles(width, height), tui.Line{}, tui.Text(tui.Soft, " schedule  ").And(tui.Plain, v.now.stage))
	if height > minHeight {
		lines = append(lines, tui.Line{})
	}
	table, side := v.table(width), width-tableWidth
	if height < minHeight {
		table = table[:smallTable]
	}
	if width < widerScreen {
		lines, table, side = append(lines, table...), nil, width
		if height > 30 {
			lines = append(lines, tui.Line{})
		}
	}
	// Thresholds and errors get half of the remaining lines, and more on a small screen if that
	// shows all thresholds. The charts and the messages share the others.
	rest := height - len(lines)
	room := max(rest/2, min(len(v.now.judged)+1, rest-2))
	judged := v.thresholds(side, room-1)
	judged = append(judged, v.errors(side, room-len(judged))...)
	if table != nil {
		judged = tui.Beside(table, judged, tableWidth)
	}
	lines = append(lines, judged...)
	rest = height - len(lines)
	messages := v.messages(width, rest/3)
	lines = append(lines, v.charts(width, rest-len(messages))...)
	return append(lines, messages...)
}

// tiles draws the main figures.
func (v *view) tiles(width, height int) []tui.Line {
	st := v.now
	style := func(worse bool, s tui.Style) tui.Style {
		if worse {
			return s
		}
		return tui.Good
	}
	of := func(x *float64, unit string) string {
		if x == nil {
			return ""
		}
		return "of " + short(x, unit)
	}
	hertz := new(float64)
	if st.tick != nil && *st.tick > 0 {
		*hertz = 1000 / *st.tick
	}
	server := "no --admin"
	if st.Tick != nil {
		server = of(st.tick, "ms")
	}
	failed := 0
	for _, n := range st.errors {
		failed += int(n)
	}
	over := func(x, bound *float64, share float64) bool { return x != nil && bound != nil && *x > *bound*share }
	all := []tui.Tile{
		tui.Figure("clients", tui.Count(int(st.Clients)), "of "+tui.Count(st.wanted), style(st.Clients < int64(st.wanted), tui.Warm)),
		tui.Figure("snapshots", short(st.Snapshots, "Hz"), of(hertz, "Hz"), style(st.Snapshots != nil && *st.Snapshots < 0.99**hertz, tui.Warm)),
		tui.Figure("tick p99", short(st.Tick, "ms"), server, style(over(st.Tick, st.tick, 0.5), tui.Warm)),
		tui.Figure("load client", short(st.own.CPU, "cores"), "late "+short(st.late, "ms"), style(over(st.late, st.tick, 1), tui.Bad)),
		tui.Figure("age p99", short(st.AgeP99, "ms"), "p50 "+short(st.AgeP50, "ms"), tui.Accent),
		tui.Figure("calls p99", short(st.CallP99, "ms"), "p50 "+short(st.CallP50, "ms"), tui.Accent),
		tui.Figure("joins", tui.Count(int(st.Joins))+"/s", tui.Count(int(st.joined))+" in all", tui.Accent),
		tui.Figure("errors", tui.Count(int(st.Errors))+"/s", tui.Count(failed)+" in all", style(st.Errors > 0, tui.Bad)),
	}
	perRow := 4
	if width >= wideScreen {
		perRow = 8
	} else if height < 30 {
		all = all[:4]
	}
	return tui.Tiles(all, (width-1)/perRow, perRow)
}

// short formats a figure with three digits.
func short(x *float64, unit string) string {
	return orDash(x, func(x float64) string { return tui.Digits(x) + " " + unit })
}

// table draws the percentiles of the last second and, unless the screen is narrow, of the measured
// window until now.
func (v *view) table(width int) []tui.Line {
	cells, head := 8, " milliseconds         the last second                measured until now"
	if width < tableWidth {
		cells, head = 4, " milliseconds         the last second"
	}
	row := func(s tui.Style, name string, all ...string) tui.Line {
		l := tui.Text(tui.Soft, " "+tui.Left(name, 18))
		for i, c := range all[:cells] {
			width := 7
			if i == 4 {
				width = 9
			}
			l = l.And(s, tui.Right(c, width))
		}
		return l
	}
	lines := []tui.Line{
		tui.Text(tui.Soft, head),
		row(tui.Soft, "", "p50", "p99", "p99.9", "max", "p50", "p99", "p99.9", "max"),
	}
	ms := func(x *float64) string { return orDash(x, tui.Digits) }
	for _, t := range v.now.times {
		a, b := &t.second, &t.window
		lines = append(lines, row(tui.Plain, t.name, ms(a.P50), ms(a.P99), ms(a.P999), ms(a.Max), ms(b.P50), ms(b.P99), ms(b.P999), ms(b.Max)))
	}
	return lines
}

// thresholds draws whether each threshold is met until now, in at most so many lines: the ones that
// are not met first.
func (v *view) thresholds(width, most int) []tui.Line {
	judged := v.now.judged
	if judged == nil {
		return []tui.Line{tui.Text(tui.Soft, " thresholds are judged from the measured window on")}
	}
	if len(judged) == 0 {
		return []tui.Line{tui.Text(tui.Soft, " no --threshold")}
	}
	rank := func(j Judgement) int {
		switch {
		case j.Value == nil || j.Bound == nil:
			return 1
		case j.Met:
			return 2
		}
		return 0
	}
	judged = slices.SortedStableFunc(slices.Values(judged), func(a, b Judgement) int { return cmp.Compare(rank(a), rank(b)) })
	var lines []tui.Line
	for i, j := range judged {
		if i == most-1 && len(judged) > most {
			return append(lines, tui.Text(tui.Soft, fmt.Sprintf("   and %d more", len(judged)-i)))
		}
		mark, s, value := []string{"✗", "·", "✓"}[rank(j)], []tui.Style{tui.Bad, tui.Soft, tui.Good}[rank(j)], "known at the end"
		if rank(j) != 1 {
			value = show(j.Value, unit(j.Unit))
			if of := show(j.Bound, unit(j.Unit)); !strings.HasSuffix(j.Threshold, strings.ReplaceAll(of, " ", "")) {
				value += ", bound " + of
			}
		}
		room := min(max(width-34, 20), 44)
		lines = append(lines, tui.Text(s, " "+mark+" ").And(tui.Plain, tui.Left(j.Threshold, room)).And(s, " "+value))
	}
	return lines
}

// errors draws the reasons of errors, the most frequent first, in at most so many lines.
func (v *view) errors(width, most int) []tui.Line {
	all := v.now.errors
	reasons := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b))
	})
	if len(reasons) == 0 {
		return []tui.Line{tui.Text(tui.Good, " ✓ ").And(tui.Plain, "no call, join or connection has failed")}
	}
	var lines []tui.Line
	for i, why := range reasons {
		if i == most-1 && len(reasons) > most {
			return append(lines, tui.Text(tui.Soft, fmt.Sprintf("   and %d other reasons", len(reasons)-i)))
		}
		lines = append(lines, tui.Text(tui.Bad, tui.Right(tui.Count(all[why])+"×", 8)).And(tui.Plain, " "+tui.Cut(why, width-10)))
	}
	return lines
}

// charts draws the last minutes in a number of lines, on a wide screen in two columns. A dotted
// line is the budget of a tick, or the number of all clients.
func (v *view) charts(width, height int) []tui.Line {
	columns := 1
	if width >= wideScreen {
		columns = 2
	}
	rows := min(max((height-1)*columns/8, 1), 12)
	if columns == 1 && height < 8*2 {
		rows = 1
	}
	width /= columns
	st, t := v.now, &v.curves
	budget := 0.0
	if st.tick != nil {
		budget = *st.tick
	}
	all := [][]tui.Line{
		tui.MarkedChart("age p99", short(st.AgeP99, "ms"), tui.Accent, t.age, 0, width, rows),
		tui.MarkedChart("tick p99", short(st.Tick, "ms"), tui.Warm, t.tick, budget, width, rows),
		tui.MarkedChart("clients", tui.Count(int(st.Clients)), tui.Good, t.clients, float64(st.wanted), width, rows),
		tui.MarkedChart("snapshots", short(st.Snapshots, "Hz"), tui.Accent, t.rate, 0, width, rows),
		tui.MarkedChart("calls p99", short(st.CallP99, "ms"), tui.Magenta, t.call, 0, width, rows),
		tui.MarkedChart("own late p99", short(st.late, "ms"), tui.Cyan, t.late, budget, width, rows),
		tui.MarkedChart("interval p99", short(st.Interval, "ms"), tui.Accent, t.interval, 0, width, rows),
		tui.MarkedChart("errors", tui.Count(int(st.Errors))+"/s", tui.Red, t.errors, 0, width, rows),
	}
	lines := []tui.Line{}
	if rows == 1 && height > 2 {
		lines = append(lines, tui.Line{})
	}
	for i := 0; i < len(all) && len(lines)+rows <= height; i += columns {
		chart := all[i]
		if columns == 2 && i+1 < len(all) {
			chart = tui.Beside(chart, all[i+1], width)
		}
		lines = append(lines, chart...)
	}
	return lines
}

// messages draws the newest messages, as far as they fit.
func (v *view) messages(width, room int) (lines []tui.Line) {
	if room < 2 {
		return nil
	}
	for _, text := range v.said[max(0, len(v.said)-(room-1)):] {
		lines = append(lines, tui.Text(tui.Soft, " "+tui.Cut(text, width-2)))
	}
	if len(lines) > 0 {
		lines = append([]tui.Line{{}}, lines...)
	}
	return lines
}
