package golden

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Bytes is a bound in bytes.
type Bytes int

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
		bounds[i] = written(bounds[i])
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

// boundOnAPage is what written makes of a bound.
const boundOnAPage = `\d+(?: \d{3})*(?:\.\d+)?(?: (?:bytes|KiB|MiB|ns|µs|ms|m|h|s)\b)?`

var leadingDigits = regexp.MustCompile(`^\d+`)

// written is how a page writes a bound.
func written(bound any) string {
	switch v := bound.(type) {
	case int:
		if v < 1000 {
			return fmt.Sprint(v)
		}
		return fmt.Sprintf("%s %03d", written(v/1000), v%1000)
	case Bytes:
		unit := " bytes"
		for _, larger := range []string{" KiB", " MiB"} {
			if v%1024 == 0 {
				v, unit = v/1024, larger
			}
		}
		return written(int(v)) + unit
	case time.Duration:
		return leadingDigits.ReplaceAllString(v.String(), "$0 ")
	}
	return fmt.Sprint(bound)
}
