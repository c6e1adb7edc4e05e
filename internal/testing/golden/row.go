package golden

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Row checks that a table of a page has a row with this beginning, in which each %v is a bound: the
// page has the bounds of the code. Bounds are formatted by [Written]. With -rewrite the bounds of
// the row become those of the code. Row returns the beginning with its bounds.
func Row(tb testing.TB, page, begin string, bounds ...any) string {
	tb.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range bounds {
		bounds[i] = Written(bounds[i])
	}
	row := "| " + fmt.Sprintf(begin, bounds...)
	if *rewrite {
		if b = rowOf(begin).ReplaceAllLiteral(b, []byte("\n"+row)); os.WriteFile(page, b, 0o600) != nil {
			tb.Fatalf("%s cannot be written", page)
		}
	}
	if !strings.Contains(string(b), "\n"+row) {
		tb.Errorf("%s has no row %s", page, row)
	}
	return row
}

// rowOf matches a row with this beginning and any bounds.
func rowOf(begin string) *regexp.Regexp {
	parts := strings.Split("| "+begin, "%v")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	last := len(parts) - 1
	if last > 0 && parts[last] == "" { // The rest of the row follows the last bound.
		parts[last] = `\b`
	}
	return regexp.MustCompile(`\n` + strings.Join(parts, boundOnAPage))
}

// boundOnAPage matches the output of Written.
const boundOnAPage = `\d+(?: \d{3})*(?:\.\d+)?(?: (?:bytes|KiB|MiB|ns|µs|ms|min|h|s)\b)?`
