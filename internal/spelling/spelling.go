package spelling

import "strings"

// far is the most slips between a mistyped name and the meant one.
const far = 3

// Nearest returns the name that is nearest to a mistyped one, or "" if none is near: at most three
// slips, and at most one for every three letters. Upper case does not matter.
func Nearest(wrote string, names []string) string {
	best, least := "", far+1
	for _, name := range names {
		if max(len(wrote)-len(name), len(name)-len(wrote)) > far {
			continue // This limits the work for any input.
		}
		if d := distance(strings.ToLower(wrote), strings.ToLower(name)); d < least && 3*d <= len(wrote) {
			best, least = name, d
		}
	}
	return best
}

// distance returns the least number of slips that turn a into b. A slip is a byte inserted, removed
// or replaced, or two neighbours exchanged.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			d := min(rows[i-1][j], rows[i][j-1]) + 1
			if a[i-1] == b[j-1] {
				d = min(d, rows[i-1][j-1])
			} else {
				d = min(d, rows[i-1][j-1]+1)
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
