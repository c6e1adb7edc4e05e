package app

import "strings"

// suggest returns ": did you mean NAME?" for the name that is nearest to what
// was written, or nothing if none is near.
func suggest(wrote string, names []string) string {
	const far = 3 // more slips than this are another word
	best, least := "", far+1
	for _, name := range names {
		if _, field, ok := strings.Cut(name, "."); ok && field == wrote {
			return ": did you mean " + name + "?" // Half a name: rocks for arena.rocks.
		}
		a, b := strings.TrimPrefix(wrote, envPrefix), strings.TrimPrefix(name, envPrefix)
		if max(len(a)-len(b), len(b)-len(a)) > far {
			continue // Whatever a user writes, the work below stays small.
		}
		// One slip in three letters is near: FOR is not what PORT meant.
		if d := distance(strings.ToLower(a), strings.ToLower(b)); d < least && 3*d <= len(a) {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// distance is how many slips turn a into b: a byte inserted, removed or
// replaced, or two neighbours exchanged.
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
