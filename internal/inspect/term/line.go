package term

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/netloop/netloop/internal/logging"
)

// style is the color and weight of a text. The colors are from the terminal's palette, so that
// they fit its background.
type style uint8

const (
	plain style = iota
	soft
	strong
	accent
	good
	warm
	bad
	chosen // the selected row of a table
	causeSystem
	causeStage
	causeGC
	causeBehind
	causeHost
)

// styles are the parameters of the escape sequences that set each style (SGR of ECMA-48).
var styles = [...]string{
	plain: "", soft: "2", strong: "1", accent: "34", good: "32", warm: "33", bad: "1;31", chosen: "7",
	causeSystem: "33", causeStage: "93", causeGC: "35", causeBehind: "36", causeHost: "31",
}

// paint returns a text within the escape sequences of the style.
func (s style) paint(t string) string {
	if s == plain {
		return t
	}
	return "\x1b[" + styles[s] + "m" + t + "\x1b[m"
}

// span is a part of a line with one style.
type span struct {
	text  string
	style style
}

// line is one line of the screen. Only render writes its texts to the terminal.
type line []span

// text returns a line with one style.
func text(s style, t string) line { return line{{t, s}} }

// and returns the line with a span appended.
func (l line) and(s style, t string) line { return append(l, span{t, s}) }

// width returns the number of columns of a line.
func (l line) width() (w int) {
	for _, s := range l {
		w += ansi.StringWidth(logging.Escape(s.text))
	}
	return w
}

// fit returns the line cut or padded to a number of columns.
func (l line) fit(width int) line {
	out := make(line, 0, len(l)+1)
	for _, s := range l {
		if width == 0 {
			break
		}
		t := cut(s.text, width)
		width -= ansi.StringWidth(t)
		out = append(out, span{t, s.style})
	}
	if width > 0 {
		out = append(out, span{strings.Repeat(" ", width), plain})
	}
	return out
}

// render returns the line as the terminal's bytes, cut to a width. It escapes control characters,
// so that the name of a client cannot change the screen.
func (l line) render(width int) string {
	var b strings.Builder
	l = l.fit(width)
	for i := 0; i < len(l); {
		t, s := "", l[i].style
		for ; i < len(l) && l[i].style == s; i++ {
			t += logging.Escape(l[i].text)
		}
		b.WriteString(s.paint(t))
	}
	return strings.TrimRight(b.String(), " ")
}

// cut escapes a text and shortens it to a width; a shortened text ends with an ellipsis.
func cut(t string, width int) string {
	t = logging.Escape(t)
	if ansi.StringWidth(t) <= width {
		return t
	}
	r := []rune(t)
	for len(r) > 0 && ansi.StringWidth(string(r)) >= width {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}

// left and right return a text cut or padded to a width.
func left(t string, width int) string {
	t = cut(t, width)
	return t + strings.Repeat(" ", width-ansi.StringWidth(t))
}

func right(t string, width int) string {
	t = cut(t, width)
	return strings.Repeat(" ", width-ansi.StringWidth(t)) + t
}

// apart returns a line of the given width with a at its left end and b at its right end.
func apart(a, b line, width int) line {
	a = a.fit(min(a.width(), max(0, width-b.width()-1)))
	return append(a.and(plain, strings.Repeat(" ", max(1, width-a.width()-b.width()))), b...)
}

// beside returns block b to the right of block a, which gets the given width.
func beside(a, b []line, width int) []line {
	all := make([]line, max(len(a), len(b)))
	for i := range all {
		if i < len(a) {
			all[i] = a[i].fit(width)
		} else {
			all[i] = line{}.fit(width)
		}
		if i < len(b) {
			all[i] = append(all[i], b[i]...)
		}
	}
	return all
}

// wrap breaks a text into lines between words.
func wrap(s style, t string, width int) (all []line) {
	rest := ""
	for _, word := range strings.Fields(logging.Escape(t)) {
		if rest != "" && ansi.StringWidth(rest)+1+ansi.StringWidth(word) > width {
			all, rest = append(all, text(s, rest)), ""
		}
		if rest != "" {
			rest += " "
		}
		rest += word
	}
	return append(all, text(s, rest))
}

// Characters that fill eighths of a cell, from the bottom and from the left.
var (
	columnEighths = []rune(" ▁▂▃▄▅▆▇█")
	barEighths    = []rune(" ▏▎▍▌▋▊▉█")
)

// bar returns a bar that fills a share (0 to 1) of the width.
func bar(share float64, width int) string {
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

// cell returns the character of one row of a chart's column; row 0 is the lowest of rows. A value
// above 0 is always visible.
func cell(value, top float64, row, rows int) rune {
	n := 0
	if top > 0 && value > 0 {
		n = max(1, int(math.Round(min(value/top, 1)*float64(rows*8))))
	}
	return columnEighths[min(max(n-row*8, 0), 8)]
}

// chart draws the last values of a figure as columns, after its name and its newest value. With
// several rows the first row is empty.
func chart(name, value string, s style, values []float64, width, rows int) (lines []line) {
	const label = 27
	values = values[max(0, len(values)-(width-label-1)):]
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	if rows > 1 {
		rows--
		lines = append(lines, line{})
	}
	for row := rows - 1; row >= 0; row-- {
		l := text(plain, strings.Repeat(" ", label))
		if row == 0 {
			l = text(soft, " "+left(name, 13)).and(strong, right(value, label-16)).and(plain, "  ")
		}
		var b strings.Builder
		for _, v := range values {
			b.WriteRune(cell(v, top, row, rows))
		}
		lines = append(lines, l.and(s, b.String()))
	}
	return lines
}
