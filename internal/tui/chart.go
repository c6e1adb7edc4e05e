package tui

import (
	"math"
	"strings"
)

// Characters that fill eighths of a cell, from the bottom and from the left.
var (
	columnEighths = []rune(" ▁▂▃▄▅▆▇█")
	barEighths    = []rune(" ▏▎▍▌▋▊▉█")
)

// Bar returns a bar that fills a share (0 to 1) of the width.
func Bar(share float64, width int) string {
	n := min(max(int(math.Round(share*float64(width*8))), 0), width*8)
	if n == 0 && share > 0 {
		n = 1
	}
	t := strings.Repeat("█", n/8)
	if n%8 > 0 {
		t += string(barEighths[n%8])
	}
	return t
}

// Cell returns the character of one row of a chart's column; row 0 is the lowest of rows. A value
// above 0 is always visible.
func Cell(value, top float64, row, rows int) rune {
	n := 0
	if top > 0 && value > 0 {
		n = max(1, int(math.Round(min(value/top, 1)*float64(rows*8))))
	}
	return columnEighths[min(max(n-row*8, 0), 8)]
}

// Chart draws the last values of a figure as columns, after its name and its newest value. With
// several rows the first row is empty.
func Chart(name, value string, s Style, values []float64, width, rows int) []Line {
	return MarkedChart(name, value, s, values, 0, width, rows)
}

// MarkedChart draws a chart with a dotted line at a value, such as a budget; 0 is none. Without
// values it has only the name.
func MarkedChart(name, value string, s Style, values []float64, mark float64, width, rows int) (lines []Line) {
	const label = 27
	columns := width - label - 1
	values = values[max(0, len(values)-columns):]
	top := mark
	for _, v := range values {
		top = max(top, v)
	}
	if rows > 1 {
		rows--
		lines = append(lines, Line{})
	}
	for row := rows - 1; row >= 0; row-- {
		l := Text(Plain, strings.Repeat(" ", label))
		if row == 0 {
			l = Text(Soft, " "+Left(name, 13)).And(Strong, Right(value, label-16)).And(Plain, "  ")
		}
		empty, end := Span{" ", s}, len(values)
		if mark > 0 && rows > 1 && row == min(int(mark/top*float64(rows)), rows-1) {
			empty, end = Span{"┄", Soft}, columns
		}
		for column := range end {
			c := ' '
			if column < len(values) {
				c = Cell(values[column], top, row, rows)
			}
			if c == ' ' {
				l = append(l, empty)
			} else {
				l = l.And(s, string(c))
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// Tile is one figure with its name and a further text.
type Tile struct {
	name, value, more string
	style             Style
}

// Figure returns a tile.
func Figure(name, value, more string, s Style) Tile { return Tile{name, value, more, s} }

// Tiles draws figures in rows of three lines, with an empty line between two rows. A bad figure has
// a mark besides its color.
func Tiles(all []Tile, width, perRow int) (lines []Line) {
	for from := 0; from < len(all); from += perRow {
		row := [3]Line{Text(Plain, " "), Text(Plain, " "), Text(Plain, " ")}
		for _, t := range all[from:min(from+perRow, len(all))] {
			value := t.value
			if t.style == Bad {
				value += " !"
			}
			row[0] = row[0].And(t.style, "▌").And(Soft, Left(t.name, width-1))
			row[1] = row[1].And(t.style, "▌").And(Strong, Left(value, width-1))
			row[2] = row[2].And(t.style, "▌").And(Soft, Left(t.more, width-2)+" ")
		}
		if from > 0 {
			lines = append(lines, Line{})
		}
		lines = append(lines, row[:]...)
	}
	return lines
}

// Screen draws a head, a body that is cut or filled with empty lines, and a foot, with rules
// between them.
func Screen(head Line, body []Line, foot Line, width, height int) string {
	rule := Text(Soft, strings.Repeat("─", width))
	lines := make([]Line, height)
	lines[0], lines[1] = head, rule
	copy(lines[2:height-2], body)
	lines[height-2], lines[height-1] = rule, foot
	texts := make([]string, len(lines))
	for i := range lines {
		texts[i] = lines[i].Render(width)
	}
	return strings.Join(texts, "\n")
}
