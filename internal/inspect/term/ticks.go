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
)

// causes lists the causes of slow and late ticks, with the letter and the color that mark them.
var causes = []struct {
	cause  slowtick.Cause
	letter string
	style  style
	legend string
}{
	{slowtick.CauseNone, " ", good, ""},
	{slowtick.CauseSystem, "S", causeSystem, "one system"},
	{slowtick.CauseStage, "M", causeStage, "many systems"},
	{slowtick.CauseGC, "G", causeGC, "collector"},
	{slowtick.CauseBehind, "B", causeBehind, "tick before"},
	{slowtick.CauseHost, "H", causeHost, "host"},
}

// markOf returns the letter and the color of a cause.
func markOf(c slowtick.Cause) (string, style) {
	for _, k := range causes {
		if k.cause == c {
			return k.letter, k.style
		}
	}
	return "?", bad
}

// verdict returns the reason why a tick was slow, in a line.
func verdict(t *slowtick.Record, budget time.Duration) string {
	size := "took " + span3(t.Duration) + ", on time"
	switch {
	case t.Duration > budget:
		size = "took " + span3(t.Duration) + " of " + span3(budget)
	case t.Cause != slowtick.CauseNone:
		size = "began " + span3(t.Lateness) + " late"
	}
	sender := ""
	if t.Sender.Client != 0 && t.Sender.Cost >= t.Duration/4 {
		sender = fmt.Sprintf(", above all for %s of client %d (%s)", t.Sender.Method, t.Sender.Client, span3(t.Sender.Cost))
	}
	switch t.Cause {
	case slowtick.CauseSystem:
		return fmt.Sprintf("%s: the system %s took %s at %s%s", size, t.Blame.Name, span3(t.Blame.Cost), t.Blame.Stage, sender)
	case slowtick.CauseStage:
		return fmt.Sprintf("%s: many systems, the longest is %s with %s%s", size, t.Blame.Name, span3(t.Blame.Cost), sender)
	case slowtick.CauseGC:
		return fmt.Sprintf("%s: the garbage collector used %s of CPU time", size, span3(t.GC.CPU))
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
			{title: "tick", width: 9, show: func(t row) string { return count(t.Tick) }, order: by(func(t row) uint64 { return t.Tick })},
			{title: "ms", width: 6, show: func(t row) string { return ms(t.Duration) }, order: by(func(t row) time.Duration { return t.Duration })},
			{title: "late ms", width: 8, rank: 3, show: func(t row) string { return ms(t.Lateness) }, order: by(func(t row) time.Duration { return t.Lateness })},
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

func (m *model) drawTicks(width, height int) []line {
	t := m.shownTick()
	if t == nil {
		return []line{{}, text(soft, "   no tick has been recorded yet")}
	}
	title := wrap(strong, "Tick "+count(t.Tick)+" "+verdict(t, m.budget), width-2)
	for i := range title {
		title[i] = append(line{{" ", plain}}, title[i]...)
	}
	if m.open {
		return m.drawTick(t, title, width, height)
	}
	lines := append(m.strip(width, min(max(height/3-2, 4), 14)), legend(), line{})
	lines = append(append(lines, append(title, line{})[:2]...), text(soft, " "+facts(t)))
	rest := height - len(lines) - 1
	half := max(width-64, width/2)
	longest := append([]line{text(soft, " most of it")}, bars(t, half-2, rest-1)...)
	lines = append(lines, line{})
	return append(lines, beside(longest, m.slow.draw(m.slowest, width-half-1, rest), half)...)
}

// drawTick draws a tick with all its stages.
func (m *model) drawTick(t *slowtick.Record, title []line, width, height int) []line {
	lines := slices.Clone(title)
	for _, l := range wrap(soft, facts(t), width-2) {
		lines = append(lines, append(line{{" ", plain}}, l...))
	}
	if t.Sender.Client != 0 {
		lines = append(lines, text(soft, fmt.Sprintf(" Client %d sent the messages that took the most time: %s, mostly %s.", t.Sender.Client, span3(t.Sender.Cost), t.Sender.Method)))
	}
	lines = append(lines, line{})
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
	s := fmt.Sprintf("%s, %s, %s, %s waiting, %d running, overload level %d, %s (%s CPU, %s paused)", plural(t.Clients, "client"), plural(t.Arrivals, "arrival"),
		plural(t.FixedSteps, "fixed step"), plural(waiting, "message"), t.Work, t.Overload, plural(int(t.GC.Cycles), "collector cycle"), span3(t.GC.CPU), span3(t.GC.Pauses))
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
func (m *model) strip(width, rows int) []line {
	shown := m.window(width - gutter - 1)
	longest := time.Duration(0)
	for i := range shown {
		longest = max(longest, shown[i].Duration)
	}
	top := max(2*m.budget, min(3*m.budget, longest))
	budgetRow := int(float64(m.budget) / float64(top) * float64(rows))
	lines := make([]line, 0, rows+3)
	for row := rows - 1; row >= 0; row-- {
		label := ""
		switch row {
		case budgetRow:
			label = ms(m.budget) + " ms"
		case rows - 1:
			label = ms(top)
		}
		l := text(soft, right(label, gutter-1)+" ")
		for i := range shown {
			r := cell(float64(shown[i].Duration), float64(top), row, rows)
			_, s := markOf(shown[i].Cause)
			if r == ' ' && row == budgetRow {
				r, s = '┈', soft
			}
			l = l.and(s, string(r))
		}
		lines = append(lines, l)
	}
	late, letters, mark := text(soft, right("late", gutter-1)+" "), text(soft, right("cause", gutter-1)+" "), text(plain, strings.Repeat(" ", gutter))
	for i := range shown {
		t := &shown[i]
		letter, s := markOf(t.Cause)
		letters = letters.and(s, letter)
		if t.Lateness <= m.budget/4 {
			s = soft
		}
		late = late.and(s, string(cell(float64(t.Lateness), float64(m.budget), 0, 1)))
		pointer := " "
		if m.tick != nil && t.Tick == m.tick.Tick {
			pointer = "▲"
		}
		mark = mark.and(strong, pointer)
	}
	return append(lines, late, letters, mark)
}

// legend explains the letters and colors.
func legend() line {
	l := text(soft, " causes:")
	for _, k := range causes[1:] {
		l = l.and(k.style, "  "+k.letter+" ").and(soft, k.legend)
	}
	return l
}

// barRow draws the cost of one part of a tick as a bar, as a share of the whole tick.
func barRow(t *slowtick.Record, name string, s style, cost time.Duration, names, width int) line {
	most := max(width-names-11, 4)
	l := text(plain, " "+left(name, names)+" ")
	if s == strong {
		l[0].style, s = strong, soft
	}
	return l.and(s, left(bar(float64(cost)/float64(max(t.Duration, 1)), most), most)).and(plain, right(span3(cost), 9))
}

// styleOf returns the color of a system's bar. The blamed system gets the color of the tick's
// cause.
func styleOf(t *slowtick.Record, s *slowtick.System) style {
	if t.Cause == slowtick.CauseNone || s.Name != t.Blame.Name || s.Stage != t.Blame.Stage {
		return accent
	}
	_, c := markOf(t.Cause)
	return c
}

// bars draws the slowest systems of a tick as bars.
func bars(t *slowtick.Record, width, rows int) (lines []line) {
	names := min(max(width/2, 12), 28)
	systems := slices.Clone(t.Systems)
	slices.SortStableFunc(systems, func(a, b slowtick.System) int { return cmp.Compare(b.Cost, a.Cost) })
	known := t.Others.Cost
	for i := range systems {
		known += systems[i].Cost
		if i < rows-1 {
			lines = append(lines, barRow(t, systems[i].Name, styleOf(t, &systems[i]), systems[i].Cost, names, width))
		}
	}
	return append(lines, barRow(t, "(no system)", soft, max(t.Duration-known, 0), names, width))
}

// stages draws the stages of a tick with their systems, in the order of running.
func stages(t *slowtick.Record, width int) (lines []line) {
	names := min(max(width/3, 24), 40)
	known := t.Others.Cost
	for i, stage := range loop.Stages() {
		lines = append(lines, barRow(t, stage.String(), strong, t.Stages[i], names, width))
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
		lines = append(lines, barRow(t, plural(t.Others.Systems, "further system"), soft, t.Others.Cost, names, width))
	}
	return append(lines, barRow(t, "(no system)", soft, max(t.Duration-known, 0), names, width))
}
