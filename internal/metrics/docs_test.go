package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/testing/golden"
)

const (
	docs  = "../../docs/METRICS.md"
	begin = "<!-- Generated from internal/metrics/table.go: make metrics -->\n"
	end   = "<!-- End of the generated part. -->\n"
)

// The series in docs/METRICS.md are those of the table, and "make metrics" writes it.
func TestEverySeriesIsDocumented(t *testing.T) {
	golden.CheckPart(t, docs, begin, end, markdown(table))
}

// markdown formats the table for the page, by name.
func markdown(rows []row) string {
	var lines []string
	for _, r := range rows {
		labels := ""
		if names := strings.Fields(r.labels); len(names) > 0 {
			labels = "`" + strings.Join(names, "`, `") + "`"
		}
		lines = append(lines, fmt.Sprintf("| `netloop_%s` | %s | %s | %s |\n", r.name, r.kind, labels, r.help))
	}
	slices.Sort(lines)
	return "| series | type | labels | meaning |\n|---|---|---|---|\n" + strings.Join(lines, "")
}
