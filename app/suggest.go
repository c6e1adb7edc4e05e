package app

import (
	"slices"
	"strings"

	"github.com/netloop/netloop/internal/spelling"
)

// suggest returns ": did you mean NAME?" for the name nearest to a misspelled one, or "" if none is
// near.
func suggest(wrote string, names []string) string {
	short := make([]string, len(names))
	for i, name := range names {
		if _, field, ok := strings.Cut(name, "."); ok && field == wrote {
			return ": did you mean " + name + "?" // Half a name: rocks for arena.rocks.
		}
		short[i] = strings.TrimPrefix(name, envPrefix)
	}
	best := spelling.Nearest(strings.TrimPrefix(wrote, envPrefix), short)
	if best == "" {
		return ""
	}
	return ": did you mean " + names[slices.Index(short, best)] + "?"
}
