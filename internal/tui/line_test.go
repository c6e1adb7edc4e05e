package tui

import (
	"slices"
	"strings"
	"testing"
)

// Bars and charts fill eighths of a cell, and show any value above 0.
func TestBarsFillEighths(t *testing.T) {
	for _, c := range []struct {
		share float64
		width int
		want  string
	}{{0, 4, ""}, {-1, 4, ""}, {0.001, 4, "▏"}, {0.5, 3, "█▌"}, {1, 4, "████"}, {2, 4, "████"}, {0.25, 1, "▎"}} {
		if got := Bar(c.share, c.width); got != c.want {
			t.Errorf("%v of %d cells: %q, want %q", c.share, c.width, got, c.want)
		}
	}
	for _, c := range []struct {
		value, top float64
		row, rows  int
		want       rune
	}{{0, 8, 0, 1, ' '}, {0.01, 8, 0, 1, '▁'}, {8, 8, 0, 1, '█'}, {9, 8, 0, 1, '█'}, {1, 0, 0, 1, ' '}, {4, 8, 0, 2, '█'}, {4, 8, 1, 2, ' '}, {5, 8, 1, 2, '▂'}, {-1, 8, 0, 1, ' '}} {
		if got := Cell(c.value, c.top, c.row, c.rows); got != c.want {
			t.Errorf("%v of %v in row %d of %d: %q, want %q", c.value, c.top, c.row, c.rows, got, c.want)
		}
	}
}

// Lines are cut, padded and joined to the width.
func TestLinesFitTheirWidth(t *testing.T) {
	plainText := func(l Line) (all string) {
		for _, s := range l {
			all += s.Text
		}
		return all
	}
	if l := Chart("x", "1", Accent, make([]float64, 99), 40, 1)[0]; l.Width() != 39 {
		t.Errorf("a chart of 40 columns has %d", l.Width())
	}
	for want, l := range map[string]Line{
		"ab  x": Apart(Text(Plain, "ab"), Text(Plain, "x"), 5), "a… x": Apart(Text(Plain, "abcd"), Text(Plain, "x"), 4), " xyz": Apart(Text(Plain, "ab"), Text(Plain, "xyz"), 3),
		"abc": Text(Plain, "abc").Fit(3), "a…": Text(Plain, "abc").And(Soft, "d").Fit(2), "abc ": Text(Plain, "abc").Fit(4),
		"ab1": Beside([]Line{Text(Plain, "ab")}, []Line{Text(Plain, "1")}, 2)[0], "  2": Beside(nil, []Line{Text(Plain, "2")}, 2)[0], "a ": Beside([]Line{Text(Plain, "a")}, nil, 2)[0],
		Left("a", 3): Text(Plain, "a  "), Right("a", 3): Text(Plain, "  a"), Cut("日本", 3): Text(Plain, "日…"),
	} {
		if got := plainText(l); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for width, want := range map[int]int{5: 1, 4: 2, 1: 2} {
		if got := Wrap(Plain, "ab cd", width); len(got) != want || plainText(got[len(got)-1]) != []string{"", "ab cd", "cd"}[want] {
			t.Errorf("within %d columns: %q", width, got)
		}
	}
}

// A chart of several rows begins with an empty one. Tiles have three lines, and an empty line
// between two rows.
func TestRowsOfChartsAndTiles(t *testing.T) {
	texts := func(lines []Line) (all []string) {
		for _, l := range lines {
			text := ""
			for _, s := range l {
				text += s.Text
			}
			all = append(all, strings.TrimSpace(text))
		}
		return all
	}
	for rows, want := range map[int][]string{1: {"x                      1  █▄"}, 3: {"", "█", "x                      1  ██"}} {
		if got := texts(Chart("x", "1", Accent, []float64{2, 1}, 40, rows)); !slices.Equal(got, want) {
			t.Errorf("%d rows: %q, want %q", rows, got, want)
		}
	}
	tiles := []Tile{Figure("a", "1", "x", Accent), Figure("b", "2", "y", Bad), Figure("c", "3", "z", Accent)}
	want := []string{"▌a    ▌b", "▌1    ▌2 !", "▌x    ▌y", "", "▌c", "▌3", "▌z"}
	if got := texts(Tiles(tiles, 6, 2)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
