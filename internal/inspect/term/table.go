package term

import (
	"cmp"
	"slices"
	"strings"

	"github.com/netloop/netloop/internal/tui"
)

// column is one column of a table.
type column[T any] struct {
	title string
	width int
	left  bool // aligned to the left, for texts
	rank  int  // columns with a high rank are left out on a narrow screen
	wide  bool // takes the rest of the width
	show  func(T) string
	order func(a, b T) int
	warn  func(T) bool // reports whether the cell of a row is marked
}

// table is a sorted and filtered list with a selected row. The key of a row identifies it while the
// order changes.
type table[T any] struct {
	columns []column[T]
	key     func(T) string
	find    func(T) string // the text that must contain the filter
	empty   string

	chosen string
	sort   int // index of a column
	down   bool
	filter string
}

// by returns a comparison of rows by one value of each.
func by[T any, V cmp.Ordered](value func(T) V) func(a, b T) int {
	return func(a, b T) int { return cmp.Compare(value(a), value(b)) }
}

// rows returns the rows that pass the filter, sorted.
func (t *table[T]) rows(all []T) []T {
	shown := make([]T, 0, len(all))
	for _, row := range all {
		if t.filter == "" || strings.Contains(strings.ToLower(t.find(row)), strings.ToLower(t.filter)) {
			shown = append(shown, row)
		}
	}
	slices.SortStableFunc(shown, func(a, b T) int {
		if t.down {
			a, b = b, a
		}
		return t.columns[t.sort].order(a, b)
	})
	return shown
}

// index returns the selected row's index in rows, or -1.
func (t *table[T]) index(rows []T) int {
	return slices.IndexFunc(rows, func(row T) bool { return t.key(row) == t.chosen })
}

// move selects another row.
func (t *table[T]) move(all []T, by int) {
	rows := t.rows(all)
	if len(rows) == 0 {
		return
	}
	i := t.index(rows)
	if i < 0 && by > 0 {
		by-- // The first step selects the first row.
	}
	t.chosen = t.key(rows[min(max(max(i, 0)+by, 0), len(rows)-1)])
}

// selected returns the selected row.
func (t *table[T]) selected(all []T) (row T, ok bool) {
	rows := t.rows(all)
	if i := t.index(rows); i >= 0 {
		return rows[i], true
	}
	return row, false
}

// sortBy sorts by the next visible column, or by the one before.
func (t *table[T]) sortBy(step, width int) {
	shown := t.visible(width)
	i := max(slices.Index(shown, t.sort), 0) + step
	t.sort = shown[(i+len(shown))%len(shown)]
	t.down = !t.columns[t.sort].left
}

// visible returns the indices of the columns that fit a width.
func (t *table[T]) visible(width int) (shown []int) {
	order := make([]int, len(t.columns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return t.columns[a].rank - t.columns[b].rank })
	for _, i := range order {
		if width -= t.columns[i].width + 1; width < 0 {
			break
		}
		shown = append(shown, i)
	}
	slices.Sort(shown)
	return shown
}

// draw returns the head of the table and as many rows as fit the height, including the selected
// row.
func (t *table[T]) draw(all []T, width, height int) []tui.Line {
	shown := t.visible(width)
	rest := width
	for _, i := range shown {
		rest -= t.columns[i].width + 1
	}
	widths := make([]int, len(t.columns))
	for _, i := range shown {
		widths[i] = t.columns[i].width
		if t.columns[i].wide {
			widths[i], rest = widths[i]+max(rest, 0), 0
		}
	}
	lines := []tui.Line{t.head(shown, widths)}
	rows := t.rows(all)
	if len(rows) == 0 {
		return append(lines, tui.Text(tui.Soft, "  "+t.empty))
	}
	height = max(height-1, 1)
	first := max(0, min(t.index(rows)-height/2, len(rows)-height))
	for _, row := range rows[first:min(first+height, len(rows))] {
		lines = append(lines, t.row(row, shown, widths))
	}
	return lines
}

func (t *table[T]) head(shown, widths []int) tui.Line {
	head := tui.Line{}
	for _, i := range shown {
		title, s := t.columns[i].title, tui.Soft
		if i == t.sort {
			s = tui.Strong
			if title += "↑"; t.down {
				title = t.columns[i].title + "↓"
			}
		}
		head = head.And(s, " "+t.align(i, title, widths))
	}
	return head
}

func (t *table[T]) row(row T, shown, widths []int) tui.Line {
	picked := t.key(row) == t.chosen
	l := tui.Line{}
	for n, i := range shown {
		c := &t.columns[i]
		gap, s := " ", tui.Plain
		if c.warn != nil && c.warn(row) {
			s = tui.Bad
		}
		if picked {
			s = tui.Chosen
			if n == 0 {
				gap = "▸"
			}
		}
		l = l.And(s, gap+t.align(i, c.show(row), widths))
	}
	return l
}

func (t *table[T]) align(i int, s string, widths []int) string {
	if t.columns[i].left {
		return tui.Left(s, widths[i])
	}
	return tui.Right(s, widths[i])
}
