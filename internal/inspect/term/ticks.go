package term

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/tui"
)

// causes lists the causes of slow and late ticks, with the letter and the color that mark them.
var causes = []struct {
	cause  slowtick.Cause
	letter string
	style  tui.Style
	legend string
}{
	{slowtick.CauseNone, " ", tui.Good, ""},
	{slowtick.CauseSystem, "S", tui.Warm, "one system"},
	{slowtick.CauseStage, "M", tui.BrightYellow, "many systems"},
	{slowtick.CauseGC, "G", tui.Magenta, "collector"},
	{slowtick.CauseBehind, "B", tui.Cyan, "tick before"},
	{slowtick.CauseHost, "H", tui.Red, "host"},
}

// markOf returns the letter and the color of a cause.
func markOf(c slowtick.Cause) (string, tui.Style) {
	for _, k := range causes {
		if k.cause == c {
			return k.letter, k.style
		}
	}
	return "?", tui.Bad
}

// verdict returns the reason why a tick was slow, in a line.
func verdict(t *slowtick.Record, budget time.Duration) string {
	size := "took " + tui.Span3(t.Duration) + ", on time"
	switch {
	case t.Duration > budget:
		size = "took " + tui.Span3(t.Duration) + " of " + tui.Span3(budget)
	case t.Cause != slowtick.CauseNone:
		size = "began " + tui.Span3(t.Lateness) + " late"
	}
	sender := ""
	if t.Sender.Client != 0 && t.Sender.Cost >= t.Duration/4 {
		sender = fmt.Sprintf(", above all for %s of client %d (%s)", t.Sender.Method, t.Sender.Client, tui.Span3(t.Sender.Cost))
	}
	switch t.Cause {
	case slowtick.CauseSystem:
		return fmt.Sprintf("%s: the system %s took %s at %s%s", size, t.Blame.Name, tui.Span3(t.Blame.Cost), t.Blame.Stage, sender)
	case slowtick.CauseStage:
		return fmt.Sprintf("%s: many systems, the longest is %s with %s%s", size, t.Blame.Name, tui.Span3(t.Blame.Cost), sender)
	case slowtick.CauseGC:
		return fmt.Sprintf("%s: the garbage collector used %s of CPU time", size, tui.Span3(t.GC.CPU))
	case slowtick.CauseBehind:
		return size + ", because the tick before had not ended"
	case slowtick.CauseHost:
		return size + ": the process did not run, no system used that time"
	case slowtick.CauseNone:
	}
	return size
}

// slowTable returns the table of the slowest ticks.
func slowTable() table[slowtick.Record] {
	type row = slowtick.Record
	return table[row]{
		columns: []column[row]{
			{title: "tick", width: 9, show: func(t row) string { return tui.Count(t.Tick) }, order: by(func(t row) uint64 { return t.Tick })},
			{title: "ms", width: 6, show: func(t row) string { return tui.Millis(t.Duration) }, order: by(func(t row) time.Duration { return t.Duration })},
			{title: "late ms", width: 8, rank: 3, show: func(t row) string { return tui.Millis(t.Lateness) }, order: by(func(t row) time.Duration { return t.Lateness })},
			{title: "cause", width: 8, left: true, rank: 1, show: causeText, order: by(func(t row) slowtick.Cause { return t.Cause })},
			{title: "system", width: 10, left: true, rank: 2, wide: true, show: func(t row) string { return t.Blame.Name }, order: by(func(t row) string { return t.Blame.Name })},
			{title: "client", width: 7, rank: 4, show: senderText, order: by(func(t row) uint64 { return t.Sender.Client })},
		},
		key:  func(t row) string { return strconv.FormatUint(t.Tick, 10) },
		find: func(t row) string { return fmt.Sprint(t.Tick, " ", t.Cause, " ", t.Blame.Name) },
		sort: 1, down: true, empty: "no tick has been recorded yet",
	}
}

func causeText(t slowtick.Record) string {
	letter, _ := markOf(t.Cause)
	return strings.TrimSpace(letter + " " + cmp.Or(string(t.Cause), "–"))
}

func senderText(t slowtick.Record) string {
	if t.Sender.Client == 0 {
		return "–"
	}
	return strconv.FormatUint(t.Sender.Client, 10)
}

// shownTick returns the selected tick, or else the newest; nil if there is none.
func (m *model) shownTick() *slowtick.Record {
	if m.tick != nil || len(m.ticks) == 0 {
		return m.tick
	}
	return &m.ticks[len(m.ticks)-1]
}

// choose selects a tick, and freezes the strip of ticks.
func (m *model) choose(t *slowtick.Record) {
	kept := *t
	m.tick, m.held[ticksView] = &kept, true
	m.slow.chosen = strconv.FormatUint(t.Tick, 10)
}

// stepTick selects a neighbor of the shown tick in the strip.
func (m *model) stepTick(by int) {
	if len(m.ticks) == 0 {
		return
	}
	i := len(m.ticks)
	if m.tick != nil {
		if at := slices.IndexFunc(m.ticks, func(t slowtick.Record) bool { return t.Tick == m.tick.Tick }); at >= 0 {
			i = at
		}
	}
	m.choose(&m.ticks[min(max(i+by, 0), len(m.ticks)-1)])
}

// gutter is the width of the strip's labels.
const gutter = 9

func (m *model) drawTicks(width, height int) []tui.Line {
	t := m.shownTick()
	if t == nil {
		return []tui.Line{{}, tui.Text(tui.Soft, "   no tick has been recorded yet")}
	}
	title := tui.Wrap(tui.Strong, "Tick "+tui.Count(t.Tick)+" "+verdict(t, m.budget), width-2)
	for i := range title {
		title[i] = append(tui.Text(tui.Plain, " "), title[i]...)
	}
	if m.open {
		return m.drawTick(t, title, width, height)
	}
	lines := append(m.strip(width, min(max(height/3-2, 4), 14)), legend(), tui.Line{})
	lines = append(append(lines, append(title, tui.Line{})[:2]...), tui.Text(tui.Soft, " "+facts(t)))
	rest := height - len(lines) - 1
	half := max(width-64, width/2)
	longest := append([]tui.Line{tui.Text(tui.Soft, " most of it")}, bars(t, half-2, rest-1)...)
	lines = append(lines, tui.Line{})
	return append(lines, tui.Beside(longest, m.slow.draw(m.slowest, width-half-1, rest), half)...)
}

// drawTick draws a tick with all its stages.
func (m *model) drawTick(t *slowtick.Record, title []tui.Line, width, height int) []tui.Line {
	lines := slices.Clone(title)
	for _, l := range tui.Wrap(tui.Soft, facts(t), width-2) {
		lines = append(lines, append(tui.Text(tui.Plain, " "), l...))
	}
	if t.Sender.Client != 0 {
		lines = append(lines, tui.Text(tui.Soft, fmt.Sprintf(" Client %d sent the messages that took the most time: %s, mostly %s.", t.Sender.Client, tui.Span3(t.Sender.Cost), t.Sender.Method)))
	}
	lines = append(lines, tui.Line{})
	all := stages(t, width-2)
	rest := height - len(lines)
	m.scroll = min(m.scroll, max(0, len(all)-rest))
	return append(lines, all[m.scroll:min(len(all), m.scroll+rest)]...)
}

// facts describes a tick besides its systems.
func facts(t *slowtick.Record) string {
	waiting := 0
	for _, n := range t.Queues {
		waiting += n
	}
	s := fmt.Sprintf("%s, %s, %s, %s waiting, %d running, overload level %d, %s (%s CPU, %s paused)", tui.Plural(t.Clients, "client"), tui.Plural(t.Arrivals, "arrival"),
		tui.Plural(t.FixedSteps, "fixed step"), tui.Plural(waiting, "message"), t.Work, t.Overload, tui.Plural(int(t.GC.Cycles), "collector cycle"), tui.Span3(t.GC.CPU), tui.Span3(t.GC.Pauses))
	if t.Dropped > 0 {
		s += fmt.Sprintf(", %d ticks dropped before it", t.Dropped)
	}
	return s
}

// window returns the ticks of the strip: the newest ticks, or the selected tick and its neighbors.
func (m *model) window(width int) []slowtick.Record {
	end := len(m.ticks)
	if m.tick != nil {
		at := slices.IndexFunc(m.ticks, func(t slowtick.Record) bool { return t.Tick == m.tick.Tick })
		if at >= 0 && at < end-width {
			end = max(width, min(end, at+width/2))
		}
	}
	return m.ticks[max(0, end-width):end]
}

// strip draws the last ticks as columns, scaled to the budget. Below each column are the tick's
// lateness, the letter of its cause, and a mark if it is selected.
func (m *model) strip(width, rows int) []tui.Line {
	shown := m.window(width - gutter - 1)
	longest := time.Duration(0)
	for i := range shown {
		longest = max(longest, shown[i].Duration)
	}
	top := max(2*m.budget, min(3*m.budget, longest))
	budgetRow := int(float64(m.budget) / float64(top) * float64(rows))
	lines := make([]tui.Line, 0, rows+3)
	for row := rows - 1; row >= 0; row-- {
		label := ""
		switch row {
		case budgetRow:
			label = tui.Millis(m.budget) + " ms"
		case rows - 1:
			label = tui.Millis(top)
		}
		l := tui.Text(tui.Soft, tui.Right(label, gutter-1)+" ")
		for i := range shown {
			r := tui.Cell(float64(shown[i].Duration), float64(top), row, rows)
			_, s := markOf(shown[i].Cause)
			if r == ' ' && row == budgetRow {
				r, s = '┈', tui.Soft
			}
			l = l.And(s, string(r))
		}
		lines = append(lines, l)
	}
	late, letters, mark := tui.Text(tui.Soft, tui.Right("late", gutter-1)+" "), tui.Text(tui.Soft, tui.Right("cause", gutter-1)+" "), tui.Text(tui.Plain, strings.Repeat(" ", gutter))
	for i := range shown {
		t := &shown[i]
		letter, s := markOf(t.Cause)
		letters = letters.And(s, letter)
		if t.Lateness <= m.budget/4 {
			s = tui.Soft
		}
		late = late.And(s, string(tui.Cell(float64(t.Lateness), float64(m.budget), 0, 1)))
		pointer := " "
		if m.tick != nil && t.Tick == m.tick.Tick {
			pointer = "▲"
		}
		mark = mark.And(tui.Strong, pointer)
	}
	return append(lines, late, letters, mark)
}

// legend explains the letters and colors.
func legend() tui.Line {
	l := tui.Text(tui.Soft, " causes:")
	for _, k := range causes[1:] {
		l = l.And(k.style, "  "+k.letter+" ").And(tui.Soft, k.legend)
	}
	return l
}

// barRow draws the cost of one part of a tick as a bar, as a share of the whole tick.
func barRow(t *slowtick.Record, name string, s tui.Style, cost time.Duration, names, width int) tui.Line {
	most := max(width-names-11, 4)
	l := tui.Text(tui.Plain, " "+tui.Left(name, names)+" ")
	if s == tui.Strong {
		l[0].Style, s = tui.Strong, tui.Soft
	}
	return l.And(s, tui.Left(tui.Bar(float64(cost)/float64(max(t.Duration, 1)), most), most)).And(tui.Plain, tui.Right(tui.Span3(cost), 9))
}

// styleOf returns the color of a system's bar. The blamed system gets the color of the tick's
// cause.
func styleOf(t *slowtick.Record, s *slowtick.System) tui.Style {
	if t.Cause == slowtick.CauseNone || s.Name != t.Blame.Name || s.Stage != t.Blame.Stage {
		return tui.Accent
	}
	_, c := markOf(t.Cause)
	return c
}

// bars draws the slowest systems of a tick as bars.
func bars(t *slowtick.Record, width, rows int) (lines []tui.Line) {
	names := min(max(width/2, 12), 28)
	systems := slices.SortedStableFunc(slices.Values(t.Systems), func(a, b slowtick.System) int { return cmp.Compare(b.Cost, a.Cost) })
	known := t.Others.Cost
	for i := range systems {
		known += systems[i].Cost
		if i < rows-1 {
			lines = append(lines, barRow(t, systems[i].Name, styleOf(t, &systems[i]), systems[i].Cost, names, width))
		}
	}
	return append(lines, barRow(t, "(no system)", tui.Soft, max(t.Duration-known, 0), names, width))
}

// stages draws the stages of a tick with their systems, in the order of running.
func stages(t *slowtick.Record, width int) (lines []tui.Line) {
	names := min(max(width/3, 24), 40)
	known := t.Others.Cost
	for i, stage := range loop.Stages() {
		lines = append(lines, barRow(t, stage.String(), tui.Strong, t.Stages[i], names, width))
		for j := range t.Systems {
			s := &t.Systems[j]
			if s.Stage != stage.String() {
				continue
			}
			known += s.Cost
			name := "  " + s.Name
			if s.Runs > 1 {
				name += fmt.Sprintf(" × %d", s.Runs)
			}
			lines = append(lines, barRow(t, name, styleOf(t, s), s.Cost, names, width))
		}
	}
	if t.Others.Systems > 0 {
		lines = append(lines, barRow(t, tui.Plural(t.Others.Systems, "further system"), tui.Soft, t.Others.Cost, names, width))
	}
	return append(lines, barRow(t, "(no system)", tui.Soft, max(t.Duration-known, 0), names, width))
}
