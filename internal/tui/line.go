package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/netloop/netloop/internal/logging"
)

// Style is the color and weight of a text. The colors are from the terminal's palette, so that
// they fit its background.
type Style uint8

const (
	Plain Style = iota
	Soft
	Strong
	Accent
	Good
	Warm
	Bad
	Chosen // the selected row of a table
	BrightYellow
	Magenta
	Cyan
	Red
)

// styles are the parameters of the escape sequences that set each style (SGR of ECMA-48).
var styles = [...]string{
	Plain: "", Soft: "2", Strong: "1", Accent: "34", Good: "32", Warm: "33", Bad: "1;31", Chosen: "7",
	BrightYellow: "93", Magenta: "35", Cyan: "36", Red: "31",
}

// Paint returns a text within the escape sequences of the style.
func (s Style) Paint(t string) string {
	if s == Plain {
		return t
	}
	return "\x1b[" + styles[s] + "m" + t + "\x1b[m"
}

// Span is a part of a line with one style.
type Span struct {
	Text  string
	Style Style
}

// Line is one line of the screen. Only Render writes its texts to the terminal.
type Line []Span

// Text returns a line with one style.
func Text(s Style, t string) Line { return Line{{t, s}} }

// And returns the line with a span appended.
func (l Line) And(s Style, t string) Line { return append(l, Span{t, s}) }

// Width returns the number of columns of a line.
func (l Line) Width() (w int) {
	for _, s := range l {
		w += ansi.StringWidth(logging.Escape(s.Text))
	}
	return w
}

// Fit returns the line cut or padded to a number of columns.
func (l Line) Fit(width int) Line {
	out := make(Line, 0, len(l)+1)
	for _, s := range l {
		if width == 0 {
			break
		}
		t := Cut(s.Text, width)
		width -= ansi.StringWidth(t)
		out = append(out, Span{t, s.Style})
	}
	if width > 0 {
		out = append(out, Span{strings.Repeat(" ", width), Plain})
	}
	return out
}

// Render returns the line as the terminal's bytes, cut to a width. It escapes control characters,
// so that the name of a client cannot change the screen.
func (l Line) Render(width int) string {
	var b strings.Builder
	l = l.Fit(width)
	for i := 0; i < len(l); {
		t, s := "", l[i].Style
		for ; i < len(l) && l[i].Style == s; i++ {
			t += logging.Escape(l[i].Text)
		}
		b.WriteString(s.Paint(t))
	}
	return strings.TrimRight(b.String(), " ")
}

// Cut escapes a text and shortens it to a width; a shortened text ends with an ellipsis.
func Cut(t string, width int) string {
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

// Left returns a text cut or padded to a width.
func Left(t string, width int) string {
	t = Cut(t, width)
	return t + strings.Repeat(" ", width-ansi.StringWidth(t))
}

// Right returns a text cut or padded to a width, at its right end.
func Right(t string, width int) string {
	t = Cut(t, width)
	return strings.Repeat(" ", width-ansi.StringWidth(t)) + t
}

// Apart returns a line of the given width with a at its left end and b at its right end.
func Apart(a, b Line, width int) Line {
	a = a.Fit(min(a.Width(), max(0, width-b.Width()-1)))
	return append(a.And(Plain, strings.Repeat(" ", max(1, width-a.Width()-b.Width()))), b...)
}

// Beside returns block b to the right of block a, which gets the given width.
func Beside(a, b []Line, width int) []Line {
	all := make([]Line, max(len(a), len(b)))
	for i := range all {
		if i < len(a) {
			all[i] = a[i].Fit(width)
		} else {
			all[i] = Line{}.Fit(width)
		}
		if i < len(b) {
			all[i] = append(all[i], b[i]...)
		}
	}
	return all
}

// Wrap breaks a text into lines between words.
func Wrap(s Style, t string, width int) (all []Line) {
	rest := ""
	for _, word := range strings.Fields(logging.Escape(t)) {
		if rest != "" && ansi.StringWidth(rest)+1+ansi.StringWidth(word) > width {
			all, rest = append(all, Text(s, rest)), ""
		}
		if rest != "" {
			rest += " "
		}
		rest += word
	}
	return append(all, Text(s, rest))
}
