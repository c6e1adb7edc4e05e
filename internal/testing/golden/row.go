package golden

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/limits"
)

// Row checks that a page has a table with a row of this subject, and that its second cell begins
// with what is said: a bound that the page names is the one that the code has. Bounds are written
// as pages do: 1 024, 64 KiB, 50 ms. With -rewrite the bounds of the row become those of the code.
func Row(tb testing.TB, page, subject, says string, bounds ...any) {
	tb.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range bounds {
		bounds[i] = limits.Written(bounds[i])
	}
	row := "| " + subject + " | " + fmt.Sprintf(says, bounds...)
	if *rewrite {
		if b = rowOf(subject, says).ReplaceAllLiteral(b, []byte("\n"+row)); os.WriteFile(page, b, 0o600) != nil {
			tb.Fatalf("%s cannot be written", page)
		}
	}
	if !strings.Contains(string(b), "\n"+row) {
		tb.Errorf("%s has no row %s", page, row)
	}
}

// rowOf finds what a row of this subject says, whatever its bounds.
func rowOf(subject, says string) *regexp.Regexp {
	parts := strings.Split(says, "%v")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	last := len(parts) - 1
	if last > 0 && parts[last] == "" { // Nothing follows the last bound but the rest of the row.
		parts[last] = `\b`
	}
	return regexp.MustCompile(`\n` + regexp.QuoteMeta("| "+subject+" | ") + strings.Join(parts, boundOnAPage))
}

// boundOnAPage is what limits.Written makes of a bound.
const boundOnAPage = `\d+(?: \d{3})*(?:\.\d+)?(?: (?:bytes|KiB|MiB|ns|µs|ms|min|h|s)\b)?`
