package golden

import (
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// colors are the sequences that set a color or a weight.
var colors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// Screen compares a screen of a terminal, without its colors, with a file. The screen must fit into
// width columns, fill height lines, except with height 0, and have no control character.
func Screen(tb testing.TB, file, screen string, width, height int) {
	tb.Helper()
	got := colors.ReplaceAllString(screen, "")
	lines := strings.Split(got, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
		if n := ansi.StringWidth(line); n > width {
			tb.Errorf("%s: line %d is %d columns wide", file, i, n)
		}
	}
	if height > 0 && len(lines) != height {
		tb.Errorf("%s has %d lines", file, len(lines))
	}
	if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' }) {
		tb.Errorf("%s: a control character reaches the screen: %q", file, got)
	}
	Check(tb, file, strings.Join(lines, "\n")+"\n")
}
